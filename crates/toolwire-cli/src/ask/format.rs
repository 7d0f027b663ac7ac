//! The formats that a field of a form may ask for.

use toolwire::wire::StringFormat;

/// Says what is wrong with a text of this format, if anything.
pub(super) fn check(format: &StringFormat, text: &str) -> Result<(), &'static str> {
    let (fits, otherwise) = match format {
        StringFormat::Email => (is_email(text), "an e-mail address looks like this: ada@example.com"),
        StringFormat::Uri => (is_uri(text), "a URI looks like this: https://example.com/path"),
        StringFormat::Date => (is_date(text), "a date looks like this: 2026-07-28"),
        StringFormat::DateTime => (is_date_time(text), "a time looks like this: 2026-07-28T12:30:00Z"),
        _ => (true, ""),
    };
    if fits { Ok(()) } else { Err(otherwise) }
}

fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let plain =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
    plain(name) && plain(host) && !name.contains('@') && !host.starts_with('.') && !host.ends_with('.')
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let letters = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(letters)
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Exactly so many digits, as a number.
fn digits(text: &str, count: usize) -> Option<u32> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let zone = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    is_date(date)
        && is_clock(time, true)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && (zone.eq_ignore_ascii_case("z") || zone.get(1..).is_some_and(|offset| is_clock(offset, false)))
}

fn is_clock(text: &str, seconds: bool) -> bool {
    let mut parts = text.split(':');
    let mut part =
        |below: u32| parts.next().and_then(|part| digits(part, 2)).is_some_and(|number| number < below);
    // A minute may have a leap second.
    let fits = part(24) && part(60) && (!seconds || part(61));
    fits && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        for (format, good, bad) in [
            (
                StringFormat::Email,
                &["ada@example.com", "a+b@c"][..],
                &["ada", "@x", "a b@c", "a@", "a@b@c"][..],
            ),
            (
                StringFormat::Uri,
                &["https://example.com", "urn:x"],
                &["example.com", "://x", "http:", "1a:b", "a:b c"],
            ),
            (
                StringFormat::Date,
                &["2024-02-29", "2026-12-31"],
                &["2026-02-29", "2026-13-01", "26-1-1", "2026-01-00", "2026-01-01-"],
            ),
            (
                StringFormat::DateTime,
                &["2026-07-28T12:30:00Z", "2026-07-28T23:59:60.5+02:00"],
                &[
                    "2026-07-28",
                    "2026-07-28T12:30Z",
                    "2026-07-28T24:00:00Z",
                    "2026-07-28T12:30:00",
                    "2026-07-28T12:30:00.Z",
                ],
            ),
        ] {
            for text in good {
                assert_eq!(check(&format, text), Ok(()), "{format:?} {text}");
            }
            for text in bad {
                assert!(check(&format, text).is_err(), "{format:?} {text}");
            }
        }
    }
}
