//! The time of day, and a clock for tests.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Tells the time of day.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> SystemTime;
}

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that stands still until it is told to go on. Clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<SystemTime>>);

impl ManualClock {
    /// A clock that stands at so many seconds after 1970.
    pub fn at(seconds: u64) -> Self {
        Self(Arc::new(Mutex::new(UNIX_EPOCH + Duration::from_secs(seconds))))
    }

    /// Goes on.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whole seconds since 1970; a clock before that stands at 0.
pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time of a `Date` header in the one form that may be sent: `Sun, 06 Nov 1994 08:49:37 GMT`.
#[cfg(any(test, feature = "client"))]
pub(crate) fn http_date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let parts: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts[..] else { return None };
    let number = |text: &str, digits: usize| -> Option<u64> {
        (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let time: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = time[..] else { return None };
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let (day, year) = (number(day, 2)?, number(year, 4)?);
    if !(1..=31).contains(&day) || year < 1970 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970, with years that begin in March, so that the odd day is the last one.
    let (month_from_march, year) = ((month + 10) % 12, if month < 2 { year - 1 } else { year });
    let days_before_year = year * 365 + year / 4 - year / 100 + year / 400;
    let days = (days_before_year + (month_from_march * 153 + 2) / 5 + day - 1).checked_sub(719_468)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_goes_on_for_all_its_clones() {
        let clock = ManualClock::at(1_000);
        let other = clock.clone();
        clock.advance(Duration::from_secs(5));
        assert_eq!(unix_seconds(other.now()), 1_005);
    }

    #[test]
    fn a_clock_before_1970_stands_at_zero() {
        assert_eq!(unix_seconds(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }

    #[test]
    fn dates_of_headers_are_read() {
        let at = |text| http_date(text).map(unix_seconds);
        assert_eq!(at("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(at("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(at("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        assert_eq!(at("Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
        assert_eq!(at("Tue, 31 Dec 2024 23:59:59 GMT"), Some(1_735_689_599));
        for bad in
            ["", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37", "x, 99 Nov 1994 08:49:37 GMT"]
        {
            assert_eq!(at(bad), None, "{bad}");
        }
    }
}
