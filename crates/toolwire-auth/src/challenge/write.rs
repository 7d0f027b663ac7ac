//! Writing challenges.

use std::{error, fmt};

use http::HeaderValue;

use super::{Challenge, parse::is_token};

impl Challenge {
    /// The value of one `WWW-Authenticate` line. Every parameter is quoted, which all clients can read.
    pub fn to_header_value(&self) -> Result<HeaderValue, Unwritable> {
        if !is_name(&self.scheme) {
            return Err(Unwritable("the scheme is not a token"));
        }
        let mut line = self.scheme.clone();
        if let Some(text) = &self.token68 {
            line.push(' ');
            line.push_str(text);
        }
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            if !is_name(name) {
                return Err(Unwritable("the name of a parameter is not a token"));
            }
            line.push_str(if at == 0 { " " } else { ", " });
            line.push_str(name);
            line.push_str("=\"");
            quote(value, &mut line)?;
            line.push('"');
        }
        HeaderValue::from_str(&line).map_err(|_| Unwritable("it is not a header value"))
    }
}

/// A challenge with something that no header can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritable(&'static str);

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the challenge cannot be written: {}", self.0)
    }
}

impl error::Error for Unwritable {}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token)
}

fn quote(value: &str, line: &mut String) -> Result<(), Unwritable> {
    for c in value.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            ' '..='~' => line.push(c),
            _ => return Err(Unwritable("a parameter has characters beyond visible ASCII")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header::WWW_AUTHENTICATE};

    use super::*;
    use crate::challenge::parse;

    #[test]
    fn what_is_written_is_read() {
        let challenge = Challenge::new("Bearer")
            .with("resource_metadata", "https://a.example/.well-known/oauth-protected-resource")
            .with("error_description", r#"it is "so", \ or not"#)
            .with("scope", "");
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, challenge.to_header_value().unwrap());
        headers.append(WWW_AUTHENTICATE, Challenge::new("DPoP").to_header_value().unwrap());
        assert_eq!(parse(&headers), [challenge, Challenge::new("DPoP")]);
    }

    #[test]
    fn a_later_value_replaces_an_earlier_one() {
        let value = Challenge::new("Bearer").with("scope", "a").with("Scope", "b").to_header_value().unwrap();
        assert_eq!(value, r#"Bearer Scope="b""#);
    }

    #[test]
    fn nothing_that_splits_a_line_is_written() {
        for challenge in [
            Challenge::new("Bearer").with("realm", "a\r\nSet-Cookie: b"),
            Challenge::new("Bearer").with("realm", "é"),
            Challenge::new("Bearer").with("a b", "c"),
            Challenge::new("Bearer x"),
            Challenge::new(""),
        ] {
            assert!(challenge.to_header_value().is_err());
        }
    }
}
