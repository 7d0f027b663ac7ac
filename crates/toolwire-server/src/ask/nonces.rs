//! Which states have been used, for those that may be used only once.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    error, fmt,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use toolwire_protocol::seal::NONCE_BYTES;
use toolwire_transport::BoxFuture;

use crate::CallerKey;

/// The number of seconds between nonces that are forgotten together.
const STEP: u64 = 16;

/// Remembers which states have been used, for those that may be used only once.
pub trait NonceStore: Send + Sync {
    /// Takes a nonce for a caller, where that is known, at the time `now`. It need not be remembered after `until`.
    ///
    /// # Errors
    /// When it was taken before, or cannot be remembered.
    fn consume<'a>(
        &'a self,
        caller: Option<&'a CallerKey>,
        nonce: [u8; NONCE_BYTES],
        until: SystemTime,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), NonceError>>;
}

/// Why a nonce was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NonceError {
    /// It was taken before.
    Used,
    /// No more can be remembered, for all or for this caller. It may not have been taken before.
    Full,
    /// The store does not answer. The nonce may or may not have been taken.
    Unavailable,
}

impl fmt::Display for NonceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Used => "it was used before",
            Self::Full => "there is no room to remember that it was used",
            Self::Unavailable => "the store that remembers what was used does not answer",
        })
    }
}

impl error::Error for NonceError {}

/// Remembers used states in this process, within a limit. Replicas need a store that they share.
#[derive(Debug)]
pub struct MemoryNonces {
    used: Mutex<Used>,
    limit: usize,
    limit_per_caller: usize,
}

/// Used nonces by the step at whose start they have all expired. A step is forgotten as a whole, up to [`STEP`] seconds
/// late.
#[derive(Debug, Default)]
struct Used(BTreeMap<u64, Step>);

#[derive(Debug, Default)]
struct Step {
    nonces: HashSet<[u8; NONCE_BYTES]>,
    per_caller: HashMap<Option<CallerKey>, usize>,
}

impl MemoryNonces {
    /// The number of states that are remembered unless told otherwise. Each takes 30 to 60 bytes, and up to 110 more where each is
    /// of another caller.
    pub const DEFAULT_LIMIT: usize = 100_000;

    /// Remembers at most `limit` states that have not expired, and at most a sixteenth of them for one caller: a
    /// principal, or else an address. When that is full, further ones are refused: it is better that a user has to
    /// start again than that something happens twice.
    pub fn new(limit: usize) -> Self {
        Self { used: Mutex::default(), limit, limit_per_caller: limit.div_ceil(16) }
    }

    /// Remembers at most so many for one caller.
    #[must_use]
    pub fn limit_per_caller(mut self, limit: usize) -> Self {
        self.limit_per_caller = limit;
        self
    }

    fn take(
        &self,
        caller: Option<&CallerKey>,
        nonce: [u8; NONCE_BYTES],
        until: SystemTime,
        now: SystemTime,
    ) -> Result<(), NonceError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.expire(now);
        if used.0.values().any(|step| step.nonces.contains(&nonce)) {
            return Err(NonceError::Used);
        }
        let caller = caller.cloned();
        let of_caller: usize = used.0.values().filter_map(|step| step.per_caller.get(&caller)).sum();
        let of_all: usize = used.0.values().map(|step| step.nonces.len()).sum();
        if of_all >= self.limit || of_caller >= self.limit_per_caller {
            return Err(NonceError::Full);
        }
        let step = used.0.entry(seconds(until) / STEP + 1).or_default();
        step.nonces.insert(nonce);
        *step.per_caller.entry(caller).or_default() += 1;
        Ok(())
    }
}

impl Used {
    /// Forgets the steps that have ended.
    fn expire(&mut self, now: SystemTime) {
        while let Some(first) = self.0.first_entry() {
            if first.key().saturating_mul(STEP) > seconds(now) {
                return;
            }
            first.remove();
        }
    }
}

/// Returns the whole seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Default for MemoryNonces {
    fn default() -> Self {
        Self::new(Self::DEFAULT_LIMIT)
    }
}

impl NonceStore for MemoryNonces {
    fn consume<'a>(
        &'a self,
        caller: Option<&'a CallerKey>,
        nonce: [u8; NONCE_BYTES],
        until: SystemTime,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), NonceError>> {
        Box::pin(std::future::ready(self.take(caller, nonce, until, now)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const USED: Result<(), NonceError> = Err(NonceError::Used);
    const FULL: Result<(), NonceError> = Err(NonceError::Full);

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn nonces_are_taken_once_and_forgotten_when_they_have_expired() {
        let store = MemoryNonces::new(2).limit_per_caller(2);
        let take = |nonce: u8, until, now| store.take(None, [nonce; NONCE_BYTES], at(until), at(now));
        assert_eq!(take(1, 100, 0), Ok(()));
        assert_eq!(take(1, 100, 0), USED);
        assert_eq!(take(1, 130, 0), USED, "said to last for longer");
        assert_eq!(take(2, 200, 0), Ok(()));
        assert_eq!(take(3, 300, 50), FULL);
        assert_eq!(take(1, 100, 50), USED, "and not full");
        assert_eq!(take(3, 300, 100 + STEP), Ok(()), "the first has expired");
        assert_eq!(take(1, 400, 200 + STEP), Ok(()), "and the second");
        assert_eq!(take(3, 300, 200 + STEP), USED);
        assert_eq!(store.used.lock().unwrap().0.len(), 2);
    }

    #[test]
    fn no_nonce_is_forgotten_before_it_has_expired_or_long_after() {
        for milliseconds in (0..40_000).step_by(250) {
            let (store, until) = (MemoryNonces::new(2), at(1_000) + Duration::from_millis(milliseconds));
            let nonce = [1; NONCE_BYTES];
            assert_eq!(store.take(None, nonce, until, at(0)), Ok(()));
            assert_eq!(store.take(None, nonce, until, until - Duration::from_nanos(1)), USED);
            assert_eq!(store.take(None, nonce, until, until + Duration::from_secs(STEP)), Ok(()));
        }
    }

    #[test]
    fn one_caller_leaves_room_for_the_others() {
        let [eve, ada] = ["eve", "ada"].map(|name| CallerKey::principal(crate::Principal::new(name).key()));
        let store = MemoryNonces::new(32);
        let take = |who, nonce: u8, now| store.take(Some(who), [nonce; NONCE_BYTES], at(now + 10), at(now));
        assert_eq!(take(&eve, 0, 0), Ok(()));
        assert_eq!(take(&eve, 1, 8), Ok(()), "in another step");
        assert_eq!(take(&eve, 3, 8), FULL);
        assert_eq!(take(&ada, 3, 8), Ok(()));
        assert_eq!(take(&eve, 4, 17), Ok(()), "her first has expired");
        assert_eq!(take(&eve, 5, 17), FULL, "and her second has not");
    }
}
