//! Times as the wire has them: RFC 3339, in UTC, with milliseconds.

const MS_PER_DAY: u64 = 86_400_000;

/// The last millisecond that can be written with a year of four digits.
const LAST_MS: u64 = 253_402_300_799_999;

/// A time in milliseconds since 1970, as RFC 3339 text in UTC. What is beyond the year 9999 is written as its end.
///
/// ```
/// assert_eq!(toolwire_protocol::time::rfc3339(1_795_000_000_123), "2026-11-18T11:06:40.123Z");
/// ```
pub fn rfc3339(unix_ms: u64) -> String {
    let unix_ms = unix_ms.min(LAST_MS);
    let (year, month, day) = date(unix_ms / MS_PER_DAY);
    let ms = unix_ms % MS_PER_DAY;
    let (hour, minute, second, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Milliseconds since 1970 of an RFC 3339 time, whatever its offset; `None` for what is not one or lies before 1970. A
/// leap second is the first of the next minute, and what is finer than a millisecond is cut off.
pub fn from_rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.split_at_checked(10)?;
    let (year, month, day) = (digits(date, 0, 4)?, digits(date, 5, 2)?, digits(date, 8, 2)?);
    let shape = |text: &str, at: usize, byte: u8| text.as_bytes().get(at) == Some(&byte);
    if !shape(date, 4, b'-') || !shape(date, 7, b'-') || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let (hour, minute, second) = (digits(time, 1, 2)?, digits(time, 4, 2)?, digits(time, 7, 2)?);
    if !matches!(time.as_bytes().first(), Some(b'T' | b't' | b' '))
        || !shape(time, 3, b':')
        || !shape(time, 6, b':')
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let (fraction, offset) = fraction(time.get(9..)?)?;
    let minutes = offset_minutes(offset)?;
    let ms = days(year, month, day) * 86_400_000
        + ((hour * 60 + minute - minutes) * 60 + second) * 1000
        + fraction;
    u64::try_from(ms).ok()
}

/// The digits of a number of so many of them.
fn digits(text: &str, at: usize, count: usize) -> Option<i64> {
    let part = text.as_bytes().get(at..at + count)?;
    part.iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

/// The milliseconds of a fraction, and what comes after it.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (part, rest) = rest.split_at_checked(count)?;
    if part.is_empty() {
        return None;
    }
    let ms = part.bytes().chain([b'0', b'0']).take(3).fold(0, |ms, byte| ms * 10 + i64::from(byte - b'0'));
    Some((ms, rest))
}

fn offset_minutes(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = (digits(text, 1, 2)?, digits(text, 4, 2)?);
    if text.len() != 6 || text.as_bytes().get(3) != Some(&b':') || hours > 23 || minutes > 59 {
        return None;
    }
    Some(sign * (hours * 60 + minutes))
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days from 1970 to a date of the proleptic Gregorian calendar. Years begin in March here, so that the leap day is
/// the last of its year.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date so many days after 1970.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_799_999, "2024-02-28T23:59:59.999Z"),
            (1_795_000_000_123, "2026-11-18T11:06:40.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LAST_MS, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
            assert_eq!(from_rfc3339(text), Some(ms));
        }
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_some_centuries_goes_there_and_back() {
        for day in 0..200_000 {
            let ms = day * MS_PER_DAY + day % MS_PER_DAY;
            assert_eq!(from_rfc3339(&rfc3339(ms)), Some(ms));
        }
    }

    #[test]
    fn other_ways_to_write_a_time_are_read() {
        for (text, ms) in [
            ("2025-11-25T10:30:00Z", 1_764_066_600_000),
            ("2025-11-25t10:30:00z", 1_764_066_600_000),
            ("2025-11-25 10:30:00.5Z", 1_764_066_600_500),
            ("2025-11-25T10:30:00.1239999Z", 1_764_066_600_123),
            ("2025-11-25T12:30:00+02:00", 1_764_066_600_000),
            ("2025-11-25T04:45:00-05:45", 1_764_066_600_000),
            ("1970-01-01T00:59:60+01:00", 0),
        ] {
            assert_eq!(from_rfc3339(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_time_is_not_read() {
        for text in [
            "",
            "2025-11-25",
            "2025-11-25T10:30:00",
            "2025-11-25T10:30:00.Z",
            "2025-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-00-10T00:00:00Z",
            "2025-01-00T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:60:00Z",
            "2025-01-01T00:00:61Z",
            "2025-01-01T00:00:00+1:00",
            "2025-01-01T00:00:00+01:00 ",
            "+025-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2025/01/01T00:00:00Z",
            "2025-01-01X00:00:00Z",
            "2025-01-01T00:00:00Zx",
            "2025-01-0éT00:00:00Z",
            "1970-01-01T00:00:00+00:01",
        ] {
            assert_eq!(from_rfc3339(text), None, "{text}");
        }
    }
}
