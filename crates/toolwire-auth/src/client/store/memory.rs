//! Keeping records for as long as the program runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::time::timeout;

use super::{CredentialStore, Key, Kind, LOCK_TIMEOUT, Record, StoreError, StoreErrorKind, StoreLock};
use crate::fetch::BoxFuture;

/// Keeps records in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    records: Mutex<BTreeMap<Key, Record>>,
    locks: Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<Key, Record>) -> R) -> BoxFuture<'static, R>
    where
        R: Send + 'static,
    {
        let done = act(&mut self.0.records.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(std::future::ready(done))
    }
}

impl CredentialStore for MemoryStore {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.with(|records| Ok(records.get(key).cloned()))
    }

    fn clients(&self) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        let is_client = |(key, _): &(&Key, &Record)| key.kind() == Kind::Client;
        self.with(|records| Ok(records.iter().filter(is_client).map(|(_, record)| record.clone()).collect()))
    }

    fn save<'a>(
        &'a self,
        key: &'a Key,
        record: Record,
        expected: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|records| {
            check(records.get(key), expected)?;
            records.insert(key.clone(), record);
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a Key, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|records| {
            check(records.get(key), expected)?;
            records.remove(key);
            Ok(())
        })
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<StoreLock>, StoreError>> {
        let mut locks = self.0.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = Arc::clone(locks.entry(key.clone()).or_default());
        Box::pin(async move {
            let guard = timeout(LOCK_TIMEOUT, lock.lock_owned()).await;
            guard.map(|guard| Some(StoreLock::new(guard))).map_err(|_| super::lock::busy())
        })
    }
}

/// Whether what is there is what was expected.
pub(super) fn check(found: Option<&Record>, expected: u64) -> Result<(), StoreError> {
    if found.map_or(0, Record::generation) == expected {
        return Ok(());
    }
    Err(StoreError::new(StoreErrorKind::Conflict, "the record was replaced by somebody else in the meantime"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_record_is_replaced_only_by_whoever_has_seen_it() {
        let (store, key) = (MemoryStore::new(), Key::credential("https://files.example/mcp", ""));
        let first = Record::empty().after(0);
        store.save(&key, first.clone(), 0).await.unwrap();
        assert_eq!(store.save(&key, first.clone(), 0).await.unwrap_err().kind(), StoreErrorKind::Conflict);
        store.save(&key, first.after(1), 1).await.unwrap();
        assert_eq!(store.load(&key).await.unwrap().unwrap().generation(), 2);
        assert!(store.remove(&key, 1).await.is_err());
        store.remove(&key, 2).await.unwrap();
        assert_eq!(store.load(&key).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_is_waited_for_and_not_for_ever() {
        let (store, key) = (MemoryStore::new(), Key::client("https://login.example"));
        let held = store.lock(&key).await.unwrap();
        assert_eq!(store.lock(&key).await.unwrap_err().kind(), StoreErrorKind::Busy);
        drop(held);
        store.lock(&key).await.unwrap();
    }
}
