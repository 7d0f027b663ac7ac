//! The formats that a form may ask for.
//!
//! `format` is an annotation in JSON Schema, so schemas in general do not assert it. A form is different: its answer
//! comes from a person who was shown what is wanted, and `elicitation/create` knows just these four.

/// A format that can be asserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Date,
    DateTime,
    Email,
    Uri,
}

impl Format {
    pub(super) const ALL: [Self; 4] = [Self::Date, Self::DateTime, Self::Email, Self::Uri];

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Email => "email",
            Self::Uri => "uri",
        }
    }

    /// What a text of this format is, for a person.
    pub(super) const fn described(self) -> &'static str {
        match self {
            Self::Date => "a date such as 2026-07-28",
            Self::DateTime => "a time such as 2026-07-28T12:30:00Z",
            Self::Email => "an email address",
            Self::Uri => "a URI such as https://example.com/",
        }
    }

    pub(super) fn holds(self, text: &str) -> bool {
        match self {
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
        }
    }
}

/// `full-date` of RFC 3339.
fn is_date(text: &str) -> bool {
    let [year, month, day] = text.splitn(3, '-').collect::<Vec<_>>()[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// `date-time` of RFC 3339.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let Some((clock, offset)) = time.find(['Z', 'z', '+', '-']).and_then(|at| time.split_at_checked(at))
    else {
        return false;
    };
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, rest)| (clock, Some(rest)));
    let is_fraction = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let [hour, minute, second] = clock.splitn(3, ':').collect::<Vec<_>>()[..] else { return false };
    let is_clock = is_hour_and_minute(hour, minute) && number(second, 2).is_some_and(|second| second <= 60);
    let is_offset = matches!(offset, "Z" | "z")
        || offset
            .strip_prefix(['+', '-'])
            .and_then(|offset| offset.split_once(':'))
            .is_some_and(|(hour, minute)| is_hour_and_minute(hour, minute));
    is_date(date) && is_clock && fraction.is_none_or(is_fraction) && is_offset
}

fn is_hour_and_minute(hour: &str, minute: &str) -> bool {
    number(hour, 2).is_some_and(|hour| hour < 24) && number(minute, 2).is_some_and(|minute| minute < 60)
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let fits = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| fits)
}

/// An address as people have them: dots and atoms before the last `@`, the name of a host after it. Letters beyond
/// ASCII are letters.
fn is_email(text: &str) -> bool {
    let Some((local, host)) = text.rsplit_once('@') else { return false };
    let is_atom = |atom: &str| {
        let plain = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
        !atom.is_empty() && atom.chars().all(plain)
    };
    let is_label = |label: &str| {
        let plain = label.chars().all(|c| c.is_alphanumeric() || c == '-');
        !label.is_empty() && label.len() <= 63 && plain && !label.starts_with('-') && !label.ends_with('-')
    };
    local.len() <= 64 && local.split('.').all(is_atom) && host.len() <= 255 && host.split('.').all(is_label)
}

/// A URI of RFC 3986 with a scheme, which is what tells it from a reference.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    let mut pieces = rest.split('%');
    pieces.next();
    let is_encoded = |piece: &str| {
        piece.as_bytes().first_chunk::<2>().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    is_scheme
        && !rest.is_empty()
        && rest.bytes().all(is_plain)
        && pieces.all(is_encoded)
        && rest.matches('#').count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_knows_its_own() {
        for (format, good, bad) in [
            (
                Format::Date,
                &["2026-07-28", "2024-02-29", "2000-02-29", "0001-12-31"][..],
                &[
                    "",
                    "2026-7-28",
                    "2023-02-29",
                    "1900-02-29",
                    "2026-13-01",
                    "2026-04-31",
                    "2026-00-10",
                    "26-07-28",
                    "2026-07-28T",
                    "2026-07-2x",
                ][..],
            ),
            (
                Format::DateTime,
                &[
                    "2026-07-28T12:30:00Z",
                    "2026-07-28t23:59:60.123z",
                    "2026-07-28T00:00:00+02:00",
                    "2026-07-28T00:00:00-11:30",
                ],
                &[
                    "2026-07-28",
                    "2026-07-28T12:30Z",
                    "2026-07-28T12:30:00",
                    "2026-07-28T24:00:00Z",
                    "2026-07-28T12:60:00Z",
                    "2026-07-28T12:30:61Z",
                    "2026-07-28T12:30:00.Z",
                    "2026-07-28T12:30:00+2",
                    "2026-07-28 12:30:00Z",
                    "2026-07-28T12:30:00ZZ",
                ],
            ),
            (
                Format::Email,
                &["a@b", "ada.lovelace+x@example.com", "jörg@bücher.example", "o'brien@mail.example.org"],
                &[
                    "", "nope", "@b", "a@", "a b@c", "a..b@c", ".a@b", "a@-b", "a@b..c", "a@b c", "a@b@c d",
                    "a\n@b",
                ],
            ),
            (
                Format::Uri,
                &["https://example.com/", "urn:isbn:0451450523", "mailto:a@b", "file:///x%20y", "a:b?c#d"],
                &[
                    "",
                    "example.com",
                    "/path",
                    "https:",
                    "1a:b",
                    "https://a b",
                    "https://a/%zz",
                    "https://a/%2",
                    "a:b#c#d",
                    "https://ä",
                    "a:<b>",
                ],
            ),
        ] {
            assert_eq!(Format::of(format.name()), Some(format));
            for text in good {
                assert!(format.holds(text), "{} {text:?}", format.name());
            }
            for text in bad {
                assert!(!format.holds(text), "{} {text:?}", format.name());
            }
        }
        assert_eq!(Format::of("uuid"), None);
    }
}
