//! What was found out about tokens lately, so that a token that comes with every request is not verified with each.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use toolwire_transport::internal::QuickHash;
use zeroize::Zeroizing;

/// How many tokens are remembered.
const MAX_SEEN: usize = 4_096;

/// How many bytes the tokens may have that are remembered, all together.
const MAX_SEEN_BYTES: usize = 8 * 1024 * 1024;

/// How long something is remembered about a token at most, and so how long a token works after it was revoked.
pub const MAX_SEEN_AGE: Duration = Duration::from_secs(60);

/// What was found out about tokens, each by the very text that it was presented with.
///
/// The text itself is kept for that, and wiped when the first token is put here after it has expired. A digest in its place
/// would have to be one that nobody can find two texts for; SHA-256 is more than twenty operations for each byte where the
/// processor has none of its own for it. A quick hash, and a comparison of everything, are less than one.
pub(crate) struct TokenCache<T> {
    hash: QuickHash,
    kept: Mutex<Entries<T>>,
}

struct Entries<T> {
    /// By their hashes. Should two have the same one, which is chance, the later takes the place of the earlier.
    found: HashMap<u64, Entry<T>, QuickHash>,
    /// The hashes in the order in which they came; the first go when there are too many. One that came again is here
    /// more than once, and then goes a little early.
    order: VecDeque<u64>,
    /// How many bytes all texts have.
    bytes: usize,
}

struct Entry<T> {
    text: Zeroizing<Box<[u8]>>,
    found: T,
    until: SystemTime,
}

impl<T: Clone> TokenCache<T> {
    /// Remembers nothing yet.
    pub(crate) fn new() -> Self {
        let kept = Entries { found: HashMap::default(), order: VecDeque::new(), bytes: 0 };
        Self { hash: QuickHash::default(), kept: Mutex::new(kept) }
    }

    /// What was found out about a token.
    pub(crate) fn get(&self, text: &[u8], now: SystemTime) -> Option<T> {
        let hash = self.hash.hash_one(text);
        let mut kept = self.lock();
        // How long this takes tells nobody anything: who does not have the token does not have its hash either, since
        // that has a key.
        let entry = kept.found.get(&hash).filter(|entry| **entry.text == *text)?;
        // When the clock was set back, nobody knows how old it is.
        let left = entry.until.duration_since(now).ok();
        if left.is_some_and(|left| !left.is_zero() && left <= MAX_SEEN_AGE) {
            return Some(entry.found.clone());
        }
        kept.remove(hash);
        None
    }

    /// Remembers something about a token, until `until` but for no longer than [`MAX_SEEN_AGE`].
    pub(crate) fn put(&self, text: &[u8], found: T, until: SystemTime, now: SystemTime) {
        let until = until.min(now + MAX_SEEN_AGE);
        if until <= now || text.len() > MAX_SEEN_BYTES {
            return;
        }
        let hash = self.hash.hash_one(text);
        let mut kept = self.lock();
        kept.remove(hash);
        while let Some(&oldest) = kept.order.front() {
            let over = kept.order.len() >= MAX_SEEN || kept.bytes + text.len() > MAX_SEEN_BYTES;
            if !over && kept.found.get(&oldest).is_some_and(|entry| now < entry.until) {
                break;
            }
            kept.order.pop_front();
            kept.remove(oldest);
        }
        kept.order.push_back(hash);
        kept.bytes += text.len();
        kept.found.insert(hash, Entry { text: Zeroizing::new(text.into()), found, until });
    }

    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Entries<T> {
    fn remove(&mut self, hash: u64) {
        if let Some(entry) = self.found.remove(&hash) {
            self.bytes -= entry.text.len();
        }
    }
}

impl<T: Clone> Default for TokenCache<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TokenCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "TokenCache({} tokens)", kept.found.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn token(number: usize) -> Vec<u8> {
        format!("Bearer token-{number}").into()
    }

    #[test]
    fn a_token_is_remembered_for_a_minute_and_never_beyond_its_end() {
        let seen = TokenCache::new();
        seen.put(&token(1), "long", at(10_000), at(100));
        seen.put(&token(2), "short", at(110), at(100));
        seen.put(&token(3), "over", at(100), at(100));
        assert_eq!(seen.get(&token(1), at(159)), Some("long"));
        assert_eq!(seen.get(&token(1), at(160)), None);
        assert_eq!(seen.get(&token(2), at(109)), Some("short"));
        assert_eq!(seen.get(&token(2), at(110)), None);
        assert_eq!(seen.get(&token(3), at(100)), None);
        assert_eq!(seen.get(&token(4), at(100)), None);
    }

    #[test]
    fn nothing_is_believed_when_the_clock_was_set_back() {
        let seen = TokenCache::new();
        seen.put(&token(1), (), at(10_000), at(5_000));
        assert_eq!(seen.get(&token(1), at(4_000)), None);
    }

    #[test]
    fn there_are_never_more_than_the_limit_and_the_first_go_first() {
        let seen = TokenCache::new();
        for round in 0..3 {
            for number in 0..MAX_SEEN + 10 {
                seen.put(&token(number), round, at(1_000), at(100));
            }
        }
        let kept = seen.lock();
        assert_eq!((kept.found.len(), kept.order.len()), (MAX_SEEN, MAX_SEEN));
        drop(kept);
        assert_eq!(seen.get(&token(9), at(101)), None);
        assert_eq!(seen.get(&token(10), at(101)), Some(2));
    }

    #[test]
    fn one_token_that_comes_again_and_again_takes_one_place() {
        let seen = TokenCache::new();
        for time in 0..10 * MAX_SEEN as u64 {
            seen.put(&token(1), time, at(time + 1), at(time));
        }
        assert!(seen.lock().order.len() <= MAX_SEEN);
        assert_eq!(seen.lock().found.len(), 1);
    }

    #[test]
    fn only_the_very_same_text_is_known() {
        let seen = TokenCache::new();
        let text = "Bearer ".to_owned() + &"abcdefgh".repeat(20) + "xyz";
        seen.put(text.as_bytes(), (), at(1_000), at(100));
        assert!(seen.get(text.as_bytes(), at(100)).is_some());
        for place in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[place] ^= 1;
            assert!(seen.get(&other, at(100)).is_none());
            assert!(seen.get(&text.as_bytes()[..place], at(100)).is_none());
        }
        // Not even if it has the same hash.
        for entry in seen.lock().found.values_mut() {
            entry.text[0] ^= 1;
        }
        assert!(seen.get(text.as_bytes(), at(100)).is_none());
    }

    #[test]
    fn the_texts_together_never_have_more_bytes_than_the_limit() {
        let seen = TokenCache::new();
        let long = |number: usize| format!("{number:>16384}").into_bytes();
        for number in 0..MAX_SEEN {
            seen.put(&long(number), number, at(1_000), at(100));
            assert!(seen.lock().bytes <= MAX_SEEN_BYTES);
        }
        assert_eq!(seen.lock().found.len(), MAX_SEEN_BYTES / 16_384);
        assert_eq!(seen.get(&long(0), at(101)), None);
        assert_eq!(seen.get(&long(MAX_SEEN - 1), at(101)), Some(MAX_SEEN - 1));
        seen.put(&vec![0; MAX_SEEN_BYTES + 1], 0, at(1_000), at(100));
        assert!(seen.lock().bytes <= MAX_SEEN_BYTES);
        // What has expired is not counted any longer, nor kept when something else comes.
        let before = seen.lock().bytes;
        assert_eq!(seen.get(&long(MAX_SEEN - 1), at(500)), None);
        assert_eq!(seen.lock().bytes, before - 16_384);
        seen.put(b"Bearer short", 0, at(1_000), at(500));
        assert_eq!(seen.lock().bytes, "Bearer short".len());
    }
}
