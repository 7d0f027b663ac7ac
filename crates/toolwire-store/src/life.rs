//! When a task expires: one rule for all stores, in milliseconds of the store's clock.

use std::time::Duration;

/// How long a task is kept. Stores keep these numbers with it and go by [`expires_ms`](Self::expires_ms).
///
/// A task that waits or has ended is kept for `keep` from then on. One that works, or will by itself, is kept until
/// `ttl` after its creation; what it *shows* is only what is certain: that it would be kept for `keep` if it were to
/// wait or to end now. So what was shown once always holds.
///
/// ```
/// use std::time::Duration;
/// use toolwire_store::Life;
///
/// let mut life = Life::new(1_000, Duration::from_secs(10), Duration::from_secs(100));
/// assert_eq!((life.shown_ms(1_000), life.expires_ms()), (11_000, 101_000));
/// life.park(3_000);
/// assert_eq!((life.shown_ms(9_000), life.expires_ms()), (13_000, 13_000));
/// life.end(4_000, Duration::from_secs(20));
/// assert_eq!((life.shown_ms(9_000), life.expires_ms()), (24_000, 24_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Life {
    /// When it was created.
    pub created_ms: u64,
    /// How long it is kept after a change.
    pub keep_ms: u64,
    /// How long it is kept while it works.
    pub ttl_ms: u64,
    /// Until when it is kept whatever happens, because that was shown.
    pub floor_ms: u64,
    /// Whether it works, so that what it shows moves on with the clock.
    pub works: bool,
    /// When it expires unless it changes before.
    pub until_ms: u64,
}

impl Life {
    /// That of a task that begins to work now.
    pub fn new(now_ms: u64, keep: Duration, ttl: Duration) -> Self {
        let mut life = Self {
            created_ms: now_ms,
            keep_ms: milliseconds(keep),
            ttl_ms: milliseconds(ttl),
            floor_ms: now_ms,
            works: true,
            until_ms: 0,
        };
        life.work(now_ms);
        life
    }

    /// Until when the task is there for certain, if it is looked at now.
    pub fn shown_ms(&self, now_ms: u64) -> u64 {
        let certain = now_ms.saturating_add(self.keep_ms).min(self.end_of_ttl());
        if self.works { self.floor_ms.max(certain) } else { self.floor_ms }
    }

    /// When it expires unless it changes before.
    pub fn expires_ms(&self) -> u64 {
        self.until_ms
    }

    /// It works from now on, or is ready to.
    pub fn work(&mut self, now_ms: u64) {
        self.floor_ms = self.shown_ms(now_ms);
        self.works = true;
        self.until_ms = self.floor_ms.max(self.end_of_ttl());
    }

    /// It waits for a moment.
    pub fn sleep(&mut self, now_ms: u64, due_ms: u64) {
        self.wait(now_ms, due_ms.max(now_ms).saturating_add(self.keep_ms));
        self.until_ms = self.floor_ms.max(self.end_of_ttl());
    }

    /// It waits for an answer.
    pub fn park(&mut self, now_ms: u64) {
        self.wait(now_ms, now_ms.saturating_add(self.keep_ms));
        self.until_ms = self.floor_ms;
    }

    /// It has ended, and is to be kept for `keep`, or as long as was said at its creation.
    pub fn end(&mut self, now_ms: u64, keep: Duration) {
        self.wait(now_ms, now_ms.saturating_add(self.keep_ms.max(milliseconds(keep))));
        self.until_ms = self.floor_ms;
    }

    fn wait(&mut self, now_ms: u64, until_ms: u64) {
        self.floor_ms = self.shown_ms(now_ms).max(until_ms);
        self.works = false;
    }

    fn end_of_ttl(&self) -> u64 {
        self.created_ms.saturating_add(self.ttl_ms)
    }
}

/// Whole milliseconds, rounded up: nothing lasts shorter than it was said.
#[doc(hidden)]
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60 * 1000;

    fn life() -> Life {
        Life::new(0, Duration::from_millis(DAY), Duration::from_millis(30 * DAY))
    }

    #[test]
    fn what_was_shown_holds_whatever_happens_next() {
        let changes: [fn(&mut Life, u64); 5] = [
            |life, now| life.work(now),
            |life, now| life.sleep(now, now + 5 * DAY),
            |life, now| life.sleep(now, now),
            |life, now| life.park(now),
            |life, now| life.end(now, Duration::ZERO),
        ];
        for first in changes {
            for second in changes {
                for third in changes {
                    let (mut life, mut shown) = (life(), 0);
                    for (day, change) in [(1, first), (3, second), (31, third)] {
                        let now = day * DAY;
                        shown = shown.max(life.shown_ms(now - 1));
                        change(&mut life, now);
                        assert!(life.shown_ms(now) >= shown, "{life:?}");
                        assert!(life.expires_ms() >= life.shown_ms(now), "{life:?}");
                        shown = life.shown_ms(now);
                    }
                }
            }
        }
    }

    #[test]
    fn work_is_kept_for_its_ttl_and_what_waits_only_for_a_while() {
        let mut life = life();
        assert_eq!((life.shown_ms(0), life.expires_ms()), (DAY, 30 * DAY));
        assert_eq!(life.shown_ms(7 * DAY), 8 * DAY);
        assert_eq!(life.shown_ms(40 * DAY), 30 * DAY);
        life.sleep(DAY, 9 * DAY);
        assert_eq!((life.shown_ms(DAY), life.expires_ms()), (10 * DAY, 30 * DAY));
        life.end(2 * DAY, Duration::ZERO);
        assert_eq!(life.expires_ms(), 10 * DAY, "that was shown");
    }
}
