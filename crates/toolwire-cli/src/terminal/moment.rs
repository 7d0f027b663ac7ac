//! The time, in UTC: a program that talks to servers anywhere has no better one.

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

/// A moment, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Since 1970.
    milliseconds: u64,
}

impl Moment {
    /// This one.
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { milliseconds: u64::try_from(since.as_millis()).unwrap_or_default() }
    }

    /// The time of the day, such as `12:30:05Z`.
    pub(crate) fn clock(self) -> String {
        let seconds = self.milliseconds / 1000 % 86_400;
        format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// The moment to the second, as RFC 3339 writes it.
    pub(crate) fn to_second(self) -> String {
        let (year, month, day) = self.date();
        format!("{year:04}-{month:02}-{day:02}T{}", self.clock())
    }

    /// Year, month and day, counted in eras of 400 years that begin in March.
    fn date(self) -> (u64, u64, u64) {
        let days = self.milliseconds / 86_400_000 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (era * 400 + year_of_era + u64::from(month <= 2), month, day)
    }
}

/// As RFC 3339 has it.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let clock = self.clock();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{}.{:03}Z",
            clock.trim_end_matches('Z'),
            self.milliseconds % 1000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_where_calendars_have_them() {
        for (milliseconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_785_241_805_042, "2026-07-28T12:30:05.042Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let moment = Moment { milliseconds };
            assert_eq!(moment.to_string(), expected);
            let second = expected.split('.').next().unwrap();
            assert_eq!(moment.to_second(), format!("{second}Z"));
        }
    }
}
