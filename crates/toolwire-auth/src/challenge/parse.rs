//! Reading challenges (RFC 9110, 11.6.1).

use http::{HeaderMap, header::WWW_AUTHENTICATE};

use super::Challenge;

/// The most bytes of all `WWW-Authenticate` lines together that are looked at.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The most challenges that are read.
pub const MAX_CHALLENGES: usize = 16;
/// The most parameters of one challenge.
pub const MAX_PARAMETERS: usize = 32;

/// What was found in the `WWW-Authenticate` lines of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The challenges that could be read, in their order.
    pub challenges: Vec<Challenge>,
    /// How many lines had something that could not. Where the next challenge would begin is then unknown, so the rest
    /// of such a line counts as unreadable, too.
    pub unreadable: usize,
}

/// The challenges of an answer, without those that cannot be read.
pub fn parse(headers: &HeaderMap) -> Vec<Challenge> {
    read(headers).challenges
}

/// The challenges of an answer, and how many lines could not be read to their end.
pub fn read(headers: &HeaderMap) -> Reading {
    let (mut reading, mut bytes) = (Reading::default(), 0);
    for line in headers.get_all(WWW_AUTHENTICATE) {
        bytes += line.len();
        // A line is read whole or not at all when it is too much: a cut one could mean something else.
        let text = std::str::from_utf8(line.as_bytes()).ok().filter(|_| bytes <= MAX_HEADER_BYTES);
        let readable = text.is_some_and(|text| Line { rest: text }.read(&mut reading.challenges).is_some());
        reading.unreadable += usize::from(!readable);
    }
    reading
}

/// What is left of a line.
struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// Reads all challenges of the line; `None` if something in it is not one. The ones before it are kept.
    fn read(mut self, into: &mut Vec<Challenge>) -> Option<()> {
        self.separators();
        while !self.rest.is_empty() {
            let challenge = self.challenge()?;
            if into.len() == MAX_CHALLENGES {
                return None;
            }
            into.push(challenge);
        }
        Some(())
    }

    fn challenge(&mut self) -> Option<Challenge> {
        let mut challenge = Challenge::new(self.token()?);
        if self.ended() {
            self.separators();
            return Some(challenge);
        }
        if !self.rest.starts_with(' ') {
            return None;
        }
        self.spaces();
        if let Some(text) = self.token68() {
            challenge.token68 = Some(text.to_owned());
        } else {
            self.parameters(&mut challenge)?;
        }
        self.separators();
        Some(challenge)
    }

    fn parameters(&mut self, challenge: &mut Challenge) -> Option<()> {
        // An empty list is a bare scheme with spaces behind it.
        while let Some((name, rest)) = parameter_name(self.rest) {
            self.rest = rest;
            let value = if self.rest.starts_with('"') { self.quoted()? } else { self.token()?.to_owned() };
            if challenge.get(name).is_some() || challenge.parameters.len() == MAX_PARAMETERS {
                return None;
            }
            challenge.parameters.push((name.to_owned(), value));
            if !self.ended() {
                return None;
            }
            self.separators();
        }
        (!challenge.parameters.is_empty() || self.ended()).then_some(())
    }

    fn token(&mut self) -> Option<&'a str> {
        let (token, rest) = token(self.rest)?;
        self.rest = rest;
        Some(token)
    }

    /// A text of its own instead of parameters: it ends the challenge, which `name=value` does not.
    fn token68(&mut self) -> Option<&'a str> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let padded = self.rest[length..].find(|c| c != '=').map_or(self.rest.len(), |more| length + more);
        let (text, rest) = self.rest.split_at(padded);
        let after = Self { rest };
        (length > 0 && after.ended()).then(|| {
            self.rest = rest;
            text
        })
    }

    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(chars.next().map(|(_, c)| c).filter(|c| is_text(*c))?),
                c if is_text(c) => value.push(c),
                _ => return None,
            }
        }
        None
    }

    /// Whether nothing, or a comma, comes next.
    fn ended(&self) -> bool {
        matches!(self.rest.trim_start_matches([' ', '\t']).chars().next(), None | Some(','))
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn separators(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', ',']);
    }
}

/// A name with its equals sign, and what comes behind both.
fn parameter_name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = token(text)?;
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix('=')?;
    Some((name, value.trim_start_matches([' ', '\t'])))
}

fn token(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

pub(super) fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// What may be inside of quotes.
fn is_text(c: char) -> bool {
    c == '\t' || !c.is_control()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn reading(lines: &[&str]) -> Reading {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        read(&headers)
    }

    fn readable(lines: &[&str]) -> Vec<Challenge> {
        let reading = reading(lines);
        assert_eq!(reading.unreadable, 0, "{lines:?}");
        reading.challenges
    }

    #[test]
    fn several_challenges_in_one_line_and_in_several() {
        let expected = [
            Challenge::new("Bearer").with("realm", "a, b").with("scope", "x y"),
            Challenge::new("DPoP").with("algs", "ES256"),
        ];
        let one = r#"Bearer realm="a, b", scope="x y", DPoP algs="ES256""#;
        assert_eq!(readable(&[one]), expected);
        assert_eq!(readable(&[r#"Bearer realm="a, b" , scope="x y""#, ",DPoP  algs = ES256 ,"]), expected);
    }

    #[test]
    fn schemes_and_names_are_read_without_case() {
        let found = readable(&[r#"bEARER Scope="x""#]);
        assert!(found[0].is("Bearer"));
        assert_eq!(found[0].scope(), Some("x"));
    }

    #[test]
    fn a_bare_scheme_and_an_opaque_text() {
        let found = readable(&["Negotiate, Basic  , NTLM TlRMTVNTUAAB==, Bearer error=invalid_token"]);
        assert_eq!(
            found.iter().map(Challenge::scheme).collect::<Vec<_>>(),
            ["Negotiate", "Basic", "NTLM", "Bearer"]
        );
        assert_eq!(found[2].token68(), Some("TlRMTVNTUAAB=="));
        assert_eq!(found[3].error(), Some("invalid_token"));
        assert_eq!(readable(&["Bearer "]).len(), 1);
    }

    #[test]
    fn quoted_strings_are_unescaped() {
        let found = readable(&[r#"Bearer error_description="a \"b\" \\ \c é""#]);
        assert_eq!(found[0].get("error_description"), Some(r#"a "b" \ c é"#));
    }

    #[test]
    fn what_cannot_be_read_is_skipped_with_the_rest_of_its_line() {
        for line in [
            r#"Bearer realm="open"#,
            r#"Bearer realm="a" scope="b""#,
            r#"Bearer scope="a", scope="b""#,
            r#"Bearer scope="a", SCOPE="b""#,
            "Bearer resource_metadata=https://a.example/",
            "Bearer =x",
            "=",
            r#""Bearer""#,
            "Bearer\trealm=x",
            r#"Bearer realm="\"#,
            "Bearer a b",
        ] {
            let found = reading(&[line, "DPoP"]);
            assert_eq!((found.unreadable, found.challenges), (1, vec![Challenge::new("DPoP")]), "{line}");
        }
        let found = reading(&[r#"Bearer scope="a", DPoP algs="open"#]);
        assert_eq!((found.unreadable, found.challenges.len()), (1, 1));
        let mut latin = HeaderMap::new();
        latin.append(WWW_AUTHENTICATE, HeaderValue::from_bytes(b"Bearer realm=\"\xe9\"").unwrap());
        assert_eq!(read(&latin).unreadable, 1);
    }

    #[test]
    fn there_is_a_limit_to_everything() {
        let long = format!("Bearer realm=\"{}\"", "a".repeat(MAX_HEADER_BYTES));
        assert_eq!(reading(&["Basic", &long]).challenges.len(), 1);
        let many = "Basic,".repeat(MAX_CHALLENGES + 1);
        let found = reading(&[&many]);
        assert_eq!((found.challenges.len(), found.unreadable), (MAX_CHALLENGES, 1));
        let parameters = |count: usize| (0..count).map(|n| format!("p{n}=x")).collect::<Vec<_>>().join(",");
        assert_eq!(readable(&[&format!("Bearer {}", parameters(MAX_PARAMETERS))]).len(), 1);
        assert_eq!(reading(&[&format!("Bearer {}", parameters(MAX_PARAMETERS + 1))]).challenges, []);
    }
}
