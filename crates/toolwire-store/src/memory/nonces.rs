//! What may be used once, in memory.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{Clock, MemoryLimits, RuntimeClock, lock};
use crate::{NonceStore, Op, Quota, StoreError, life::milliseconds};

type Nonce = [u8; 24];

/// Remembers what has been used in this process, within a limit.
///
/// When that is full, for all or for one caller, more is refused: it is better that somebody has to start again than that
/// something happens twice.
pub struct MemoryNonces {
    limits: MemoryLimits,
    clock: Arc<dyn Clock>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    nonces: HashSet<Nonce>,
    /// The same in the order in which they expire, with the one who has used them.
    by_expiry: BTreeMap<(u64, Nonce), Quota>,
    per_caller: HashMap<Quota, usize>,
}

impl MemoryNonces {
    /// One that remembers nothing yet, with a clock of its own.
    pub fn new(limits: MemoryLimits) -> Self {
        Self::with(limits, Arc::new(RuntimeClock::new()))
    }

    /// The same, with this clock.
    pub fn with(limits: MemoryLimits, clock: Arc<dyn Clock>) -> Self {
        Self { limits, clock, used: Mutex::default() }
    }

    fn take(&self, by: &Quota, nonce: Nonce, keep: Duration) -> Result<bool, StoreError> {
        let mut used = lock(&self.used);
        let now = self.clock.now_ms();
        used.expire(now);
        if used.nonces.contains(&nonce) {
            return Ok(false);
        }
        if used.nonces.len() >= self.limits.nonces {
            return Err(StoreError::Full("nonces"));
        }
        let of_caller = used.per_caller.get(by).copied().unwrap_or_default();
        if of_caller >= self.limits.caller_nonces {
            return Err(StoreError::Full("nonces of this caller"));
        }
        used.nonces.insert(nonce);
        used.per_caller.insert(*by, of_caller + 1);
        used.by_expiry.insert((now.saturating_add(milliseconds(keep)), nonce), *by);
        Ok(true)
    }
}

impl Used {
    fn expire(&mut self, now: u64) {
        while let Some(first) = self.by_expiry.first_entry() {
            if first.key().0 > now {
                return;
            }
            let ((_, nonce), caller) = first.remove_entry();
            self.nonces.remove(&nonce);
            if let hash_map::Entry::Occupied(mut count) = self.per_caller.entry(caller) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }
}

impl NonceStore for MemoryNonces {
    fn consume<'a>(&'a self, by: &'a Quota, nonce: Nonce, keep: Duration) -> Op<'a, bool> {
        Box::pin(async move { self.take(by, nonce, keep) })
    }
}

impl fmt::Debug for MemoryNonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = lock(&self.used);
        f.debug_struct("MemoryNonces").field("used", &used.nonces.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_caller_leaves_room_for_the_others_and_what_expires_makes_room() {
        let store =
            MemoryNonces::new(MemoryLimits { nonces: 3, caller_nonces: 2, ..MemoryLimits::default() });
        let [eve, ada] = [1, 2].map(|byte| Quota::from_bytes([byte; 32]));
        let keep = Duration::from_secs(10);
        assert!(store.consume(&eve, [1; 24], keep).await.unwrap());
        assert!(!store.consume(&ada, [1; 24], keep).await.unwrap());
        assert!(store.consume(&eve, [2; 24], keep * 2).await.unwrap());
        assert!(matches!(store.consume(&eve, [3; 24], keep).await, Err(StoreError::Full(_))));
        assert!(store.consume(&ada, [3; 24], keep * 2).await.unwrap());
        assert!(matches!(store.consume(&ada, [4; 24], keep).await, Err(StoreError::Full(_))));
        tokio::time::advance(keep).await;
        assert!(store.consume(&eve, [4; 24], keep).await.unwrap());
        tokio::time::advance(keep).await;
        assert!(store.consume(&ada, [1; 24], keep).await.unwrap(), "it is forgotten");
        assert_eq!(lock(&store.used).per_caller.len(), 1);
    }
}
