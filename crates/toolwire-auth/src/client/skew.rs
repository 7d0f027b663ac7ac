//! Clocks that differ: what is signed for a peer is dated by the clock of that peer, within a limit.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};

/// A difference between the clock of a peer and ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Skew {
    #[default]
    None,
    Ahead(Duration),
    Behind(Duration),
}

impl Skew {
    /// Reads it from the date of an answer. A difference up to `tolerated` counts as none, and one of more than `most` as
    /// `most`: a peer that could date what is signed at will could have it last as long as it likes. `None` if the answer has
    /// no date.
    pub(super) fn of(
        headers: &HeaderMap,
        now: SystemTime,
        tolerated: Duration,
        most: Duration,
    ) -> Option<Self> {
        let date = headers.get(header::DATE).and_then(|value| value.to_str().ok());
        let theirs = date.and_then(|date| httpdate::parse_http_date(date).ok())?;
        Some(match (theirs.duration_since(now), now.duration_since(theirs)) {
            (Ok(by), _) if by > tolerated => Self::Ahead(by.min(most)),
            (_, Ok(by)) if by > tolerated => Self::Behind(by.min(most)),
            _ => Self::None,
        })
    }

    /// Returns the time as the peer sees it.
    pub(super) fn applied_to(self, now: SystemTime) -> SystemTime {
        match self {
            Self::None => now,
            Self::Ahead(by) => now.checked_add(by).unwrap_or(now),
            Self::Behind(by) => now.checked_sub(by).unwrap_or(now),
        }
    }

    /// Returns whether a time differs by more than `tolerated` from what it was with another skew.
    pub(super) fn differs_from(self, other: Self, now: SystemTime, tolerated: Duration) -> bool {
        let (one, two) = (self.applied_to(now), other.applied_to(now));
        let apart = one.duration_since(two).or_else(|_| two.duration_since(one));
        apart.is_ok_and(|apart| apart > tolerated)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const TOLERATED: Duration = Duration::from_secs(5);
    const MOST: Duration = Duration::from_secs(300);

    fn of(date: u64, now: u64) -> Option<Skew> {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let date = httpdate::fmt_http_date(at(date)).parse().unwrap();
        Skew::of(&HeaderMap::from_iter([(header::DATE, date)]), at(now), TOLERATED, MOST)
    }

    #[test]
    fn a_date_is_followed_up_to_a_limit_both_ways() {
        for (date, skew, becomes) in [
            (10_000, Skew::None, 10_000),
            (10_005, Skew::None, 10_000),
            (10_006, Skew::Ahead(Duration::from_secs(6)), 10_006),
            (9_900, Skew::Behind(Duration::from_secs(100)), 9_900),
            (99_999, Skew::Ahead(MOST), 10_300),
            (0, Skew::Behind(MOST), 9_700),
        ] {
            assert_eq!(of(date, 10_000), Some(skew), "{date}");
            let now = UNIX_EPOCH + Duration::from_secs(10_000);
            assert_eq!(skew.applied_to(now), UNIX_EPOCH + Duration::from_secs(becomes), "{date}");
        }
        for date in ["", "yesterday", "Thu, 01 Jan 1970 00:00:00 CET"] {
            let headers = HeaderMap::from_iter([(header::DATE, date.parse().unwrap())]);
            assert_eq!(Skew::of(&headers, UNIX_EPOCH, TOLERATED, MOST), None, "{date}");
        }
        assert_eq!(Skew::of(&HeaderMap::new(), UNIX_EPOCH, TOLERATED, MOST), None);
    }

    #[test]
    fn a_second_more_or_less_is_no_news() {
        let (now, by) = (UNIX_EPOCH + Duration::from_secs(10_000), Duration::from_secs);
        for (one, two, differ) in [
            (Skew::Ahead(by(60)), Skew::Ahead(by(65)), false),
            (Skew::Ahead(by(60)), Skew::Ahead(by(66)), true),
            (Skew::Ahead(by(6)), Skew::None, true),
            (Skew::Ahead(by(6)), Skew::Behind(by(6)), true),
            (Skew::None, Skew::None, false),
        ] {
            assert_eq!(one.differs_from(two, now, TOLERATED), differ, "{one:?} {two:?}");
            assert_eq!(two.differs_from(one, now, TOLERATED), differ, "{two:?} {one:?}");
        }
    }
}
