//! The time, in UTC: a program that talks to servers anywhere has no better one.

use std::fmt;

use jiff::Timestamp;

/// A moment, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(Timestamp);

impl Moment {
    /// This one.
    pub(crate) fn now() -> Self {
        Self(Timestamp::now())
    }

    /// The time of the day, such as `12:30:05Z`.
    pub(crate) fn clock(self) -> String {
        self.0.strftime("%H:%M:%SZ").to_string()
    }

    /// The moment to the second, as RFC 3339 writes it.
    pub(crate) fn to_second(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl From<std::time::SystemTime> for Moment {
    /// What no calendar has is its end.
    fn from(time: std::time::SystemTime) -> Self {
        Self(Timestamp::try_from(time).unwrap_or(Timestamp::MAX))
    }
}

/// As RFC 3339 has it.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_to_the_millisecond_and_to_the_second() {
        let moment = Moment(Timestamp::from_millisecond(1_785_241_805_042).unwrap());
        assert_eq!(moment.to_string(), "2026-07-28T12:30:05.042Z");
        assert_eq!(moment.to_second(), "2026-07-28T12:30:05Z");
        assert_eq!(moment.clock(), "12:30:05Z");
    }
}
