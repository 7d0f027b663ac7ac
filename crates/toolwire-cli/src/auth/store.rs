//! Where logins are kept. What is secret in them is hidden from everything that is printed.

use serde_json::Value;
use toolwire::auth::{
    client::store::{CredentialStore, FileStore, Key, Record, StoreError, StoreLock},
    fetch::BoxFuture,
};

use crate::redact;

/// The user's store.
pub(crate) fn folder() -> Result<FileStore, StoreError> {
    FileStore::of("toolwire")
}

/// Keeps records in files, and remembers what is secret in those that pass.
#[derive(Debug)]
pub(crate) struct Keeper(FileStore);

impl Keeper {
    pub(crate) const fn new(store: FileStore) -> Self {
        Self(store)
    }
}

/// Tokens, keys and secrets of a record, wherever they are in it.
fn learn(record: &Record) {
    fn values(value: &Value) {
        match value {
            Value::String(text) => redact::remember_variable("token", text),
            Value::Object(members) => members.values().for_each(values),
            _ => {}
        }
    }
    let Ok(record) = serde_json::from_str::<Value>(&record.to_json()) else { return };
    for place in ["/token/access", "/token/refresh", "/client/secret", "/dpop/key"] {
        record.pointer(place).into_iter().for_each(values);
    }
}

impl CredentialStore for Keeper {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            let record = self.0.load(key).await?;
            record.iter().for_each(learn);
            Ok(record)
        })
    }

    fn clients(&self) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let records = self.0.clients().await?;
            records.iter().for_each(learn);
            Ok(records)
        })
    }

    fn save<'a>(
        &'a self,
        key: &'a Key,
        record: Record,
        expected: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        learn(&record);
        self.0.save(key, record, expected)
    }

    fn remove<'a>(&'a self, key: &'a Key, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.remove(key, expected)
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<StoreLock>, StoreError>> {
        self.0.lock(key)
    }
}
