//! What was found out about tokens lately, so that a token that comes with every request is not verified with each.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// How many tokens are remembered. Each takes some hundred bytes and what was found out about it.
const MAX_SEEN: usize = 4_096;

/// How long something is remembered about a token at most, and so how long a token works after it was revoked.
pub const MAX_SEEN_AGE: Duration = Duration::from_secs(60);

/// What was found out about tokens, by the SHA-256 of each. The tokens themselves are not kept.
pub(crate) struct Seen<T> {
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    found: HashMap<[u8; 32], (T, SystemTime)>,
    /// The digests in the order in which they came; the first go when there are too many. One that came again is here
    /// more than once, and then goes a little early.
    order: VecDeque<[u8; 32]>,
}

impl<T: Clone> Seen<T> {
    /// Remembers nothing yet.
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::new(Kept { found: HashMap::new(), order: VecDeque::new() }) }
    }

    /// What was found out about a token.
    pub(crate) fn get(&self, digest: &[u8; 32], now: SystemTime) -> Option<T> {
        let mut kept = self.lock();
        let (found, until) = kept.found.get(digest)?;
        // When the clock was set back, nobody knows how old it is.
        let left = until.duration_since(now).ok().filter(|left| !left.is_zero() && *left <= MAX_SEEN_AGE);
        if left.is_some() {
            return Some(found.clone());
        }
        kept.found.remove(digest);
        None
    }

    /// Remembers something about a token, until `until` but for no longer than [`MAX_SEEN_AGE`].
    pub(crate) fn put(&self, digest: [u8; 32], found: T, until: SystemTime, now: SystemTime) {
        let until = until.min(now + MAX_SEEN_AGE);
        if until <= now {
            return;
        }
        let mut kept = self.lock();
        while kept.order.len() >= MAX_SEEN {
            let Some(oldest) = kept.order.pop_front() else { break };
            kept.found.remove(&oldest);
        }
        kept.order.push_back(digest);
        kept.found.insert(digest, (found, until));
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Default for Seen<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Seen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Seen({} tokens)", kept.found.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn digest(number: usize) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&(number as u64).to_be_bytes());
        digest
    }

    #[test]
    fn a_token_is_remembered_for_a_minute_and_never_beyond_its_end() {
        let seen = Seen::new();
        seen.put(digest(1), "long", at(10_000), at(100));
        seen.put(digest(2), "short", at(110), at(100));
        seen.put(digest(3), "over", at(100), at(100));
        assert_eq!(seen.get(&digest(1), at(159)), Some("long"));
        assert_eq!(seen.get(&digest(1), at(160)), None);
        assert_eq!(seen.get(&digest(2), at(109)), Some("short"));
        assert_eq!(seen.get(&digest(2), at(110)), None);
        assert_eq!(seen.get(&digest(3), at(100)), None);
        assert_eq!(seen.get(&digest(4), at(100)), None);
    }

    #[test]
    fn nothing_is_believed_when_the_clock_was_set_back() {
        let seen = Seen::new();
        seen.put(digest(1), (), at(10_000), at(5_000));
        assert_eq!(seen.get(&digest(1), at(4_000)), None);
    }

    #[test]
    fn there_are_never_more_than_the_limit_and_the_first_go_first() {
        let seen = Seen::new();
        for round in 0..3 {
            for number in 0..MAX_SEEN + 10 {
                seen.put(digest(number), round, at(1_000), at(100));
            }
        }
        let kept = seen.lock();
        assert_eq!((kept.found.len(), kept.order.len()), (MAX_SEEN, MAX_SEEN));
        drop(kept);
        assert_eq!(seen.get(&digest(9), at(101)), None);
        assert_eq!(seen.get(&digest(10), at(101)), Some(2));
    }

    #[test]
    fn one_token_that_comes_again_and_again_takes_one_place() {
        let seen = Seen::new();
        for time in 0..10 * MAX_SEEN as u64 {
            seen.put(digest(1), time, at(time + 1), at(time));
        }
        assert!(seen.lock().order.len() <= MAX_SEEN);
        assert_eq!(seen.lock().found.len(), 1);
    }
}
