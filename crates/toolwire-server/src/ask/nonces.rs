//! Which states have been used, for those that may be used only once.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use toolwire_protocol::seal::NONCE_BYTES;
use toolwire_transport::BoxFuture;

use crate::CallerKey;

/// Remembers which states have been used, for those that may be used only once.
pub trait NonceStore: Send + Sync {
    /// Takes a nonce for a caller, where that is known. Says `false` when it was taken before, or cannot be
    /// remembered. It need not be remembered after `until`.
    fn consume<'a>(
        &'a self,
        caller: Option<&'a CallerKey>,
        nonce: [u8; NONCE_BYTES],
        until: SystemTime,
    ) -> BoxFuture<'a, bool>;
}

/// Remembers used states in this process, within a limit. Replicas need a store that they share.
#[derive(Debug)]
pub struct MemoryNonces {
    used: Mutex<Used>,
    limit: usize,
    limit_per_caller: usize,
}

#[derive(Debug, Default)]
struct Used {
    nonces: HashSet<[u8; NONCE_BYTES]>,
    /// The same in the order in which they expire, with the one who has used them.
    by_expiry: BTreeMap<(SystemTime, [u8; NONCE_BYTES]), Option<CallerKey>>,
    per_caller: HashMap<Option<CallerKey>, usize>,
}

impl MemoryNonces {
    /// How many states are remembered unless told otherwise. Each takes some two hundred bytes.
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
    ) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.expire(now);
        let caller = caller.cloned();
        let of_caller = used.per_caller.get(&caller).copied().unwrap_or_default();
        if used.nonces.len() >= self.limit || of_caller >= self.limit_per_caller || !used.nonces.insert(nonce)
        {
            return false;
        }
        used.per_caller.insert(caller.clone(), of_caller + 1);
        used.by_expiry.insert((until, nonce), caller);
        true
    }
}

impl Used {
    fn expire(&mut self, now: SystemTime) {
        while let Some(first) = self.by_expiry.first_entry() {
            if first.key().0 > now {
                return;
            }
            let ((_, nonce), caller) = first.remove_entry();
            self.nonces.remove(&nonce);
            match self.per_caller.get_mut(&caller) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    self.per_caller.remove(&caller);
                }
            }
        }
    }
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
    ) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(self.take(caller, nonce, until, SystemTime::now())))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn nonces_are_taken_once_and_forgotten_when_they_have_expired() {
        let store = MemoryNonces::new(2).limit_per_caller(2);
        assert!(store.take(None, [1; NONCE_BYTES], at(10), at(0)));
        assert!(!store.take(None, [1; NONCE_BYTES], at(10), at(0)));
        assert!(store.take(None, [2; NONCE_BYTES], at(20), at(0)));
        assert!(!store.take(None, [3; NONCE_BYTES], at(30), at(5)), "full");
        assert!(store.take(None, [3; NONCE_BYTES], at(30), at(15)), "the first has expired");
        assert!(store.take(None, [1; NONCE_BYTES], at(40), at(25)), "and the second");
        let used = store.used.lock().unwrap();
        assert_eq!((used.nonces.len(), used.by_expiry.len(), used.per_caller[&None]), (2, 2, 2));
    }

    #[test]
    fn one_caller_leaves_room_for_the_others() {
        let [eve, ada] = ["eve", "ada"].map(|name| CallerKey::principal(crate::Principal::new(name).key()));
        let store = MemoryNonces::new(32);
        for nonce in 0..2 {
            assert!(store.take(Some(&eve), [nonce; NONCE_BYTES], at(10), at(0)));
        }
        assert!(!store.take(Some(&eve), [3; NONCE_BYTES], at(10), at(0)));
        assert!(store.take(Some(&ada), [3; NONCE_BYTES], at(10), at(0)));
        assert!(store.take(Some(&eve), [4; NONCE_BYTES], at(20), at(10)), "hers have expired");
        assert_eq!(store.used.lock().unwrap().per_caller.len(), 1);
    }
}
