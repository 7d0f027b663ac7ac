//! Where credentials and registrations are kept.
//!
//! A [`CredentialStore`] keeps [`Record`]s by key and knows nothing of what is in them but their generation: a record is
//! replaced only by whoever has seen the one before, and across processes a lock decides who asks for the next one.

mod file;
mod lock;
mod memory;
mod record;
#[cfg(feature = "keyring")]
mod seal;

use std::{any::Any, error::Error, fmt, io};

use sha2::{Digest as _, Sha256};

use crate::fetch::BoxFuture;

pub use self::{
    file::{FileStore, StoredFile},
    memory::MemoryStore,
    record::{Record, Summary},
};

/// Keeps records.
pub trait CredentialStore: fmt::Debug + Send + Sync + 'static {
    /// The record of this key.
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;

    /// All records of registered clients, or the first few hundred of them.
    fn clients(&self) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// Puts a record into the place of the one with the generation `expected`, or where none is if that is 0. The
    /// record itself has a later generation. It is kept whole or not at all.
    fn save<'a>(
        &'a self,
        key: &'a Key,
        record: Record,
        expected: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes the record, if it has this generation.
    fn remove<'a>(&'a self, key: &'a Key, expected: u64) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Waits until nobody else changes the record of this key, at most as long as [`LOCK_TIMEOUT`]. It is locked until
    /// what comes back is dropped; `None` where there are no locks, and generations alone decide.
    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<StoreLock>, StoreError>>;
}

/// How long a store waits for a lock: thirty seconds.
pub const LOCK_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Holds a lock until it is dropped.
pub struct StoreLock(#[expect(dead_code, reason = "it is held")] Box<dyn Any + Send + Sync>);

impl StoreLock {
    /// A lock that is held as long as `guard` lives.
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}

/// What a record is stored under. It can be the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    kind: Kind,
    digest: String,
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a store has a place for each")]
pub enum Kind {
    /// The credential for a server.
    Credential,
    /// A client that was registered at an issuer.
    Client,
}

impl Key {
    /// The credential of an account at a server; most have one account, which has no name.
    pub fn credential(server: &str, account: &str) -> Self {
        // A URL has no line end in it.
        let text = if account.is_empty() { server.to_owned() } else { format!("{server}\n{account}") };
        Self::of(Kind::Credential, &text)
    }

    /// The client at an issuer.
    pub fn client(issuer: &str) -> Self {
        Self::of(Kind::Client, issuer)
    }

    fn of(kind: Kind, text: &str) -> Self {
        let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
        let digest = Sha256::digest(text.as_bytes());
        Self { kind, digest: digest.iter().flat_map(digits).flatten().collect() }
    }

    /// What it is about.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Sixty-four hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Something that could not be kept or read.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<io::Error>,
}

/// What went wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Somebody else has replaced the record in the meantime.
    Conflict,
    /// Others could read or change what is stored, so it is not used.
    Exposed,
    /// What is stored cannot be understood, and is left as it is.
    Unreadable,
    /// Somebody else has been changing the record for too long.
    Busy,
    /// The system refused.
    Failed,
}

impl StoreError {
    /// An error with a sentence for a person. It must not have a secret in it.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn io(message: impl Into<String>, source: io::Error) -> Self {
        Self { kind: StoreErrorKind::Failed, message: message.into(), source: Some(source) }
    }

    /// What went wrong.
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Error for StoreError {}
