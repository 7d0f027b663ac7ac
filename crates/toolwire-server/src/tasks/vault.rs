//! What a store holds of a task, sealed where the server has keys.

use std::{fmt, sync::Arc};

use toolwire_protocol::{
    RawJson, RpcError,
    journal::{Entry, JournalError},
    seal::{KeyRing, StorePlace, Unsealable},
};
use toolwire_store::{KeyId, TaskId};

use crate::ask::{StateKeys, random};

/// Seals and opens what lies in the store. Without keys it leaves everything as it is.
#[derive(Debug)]
pub(super) struct Vault {
    /// Never one that the process has made for itself: nobody could open what it seals after a restart.
    ring: Option<KeyRing>,
    audience: String,
}

/// What a sealed value begins with, inside its quotation marks.
const MARK: &str = "sealed:";

impl Vault {
    pub(super) fn new(keys: &StateKeys, server: &str) -> Self {
        Self { ring: keys.given().cloned(), audience: keys.audience_of(server).to_owned() }
    }

    /// The key that seals new tasks.
    pub(super) fn key(&self) -> Option<KeyId> {
        self.keys().into_iter().next()
    }

    /// All keys, for a claim.
    pub(super) fn keys(&self) -> Vec<KeyId> {
        self.ring.iter().flat_map(KeyRing::store_keys).map(KeyId::from_bytes).collect()
    }

    /// The part of it that is about one task.
    pub(super) fn of(self: &Arc<Self>, task: TaskId) -> TaskVault {
        TaskVault { vault: Arc::clone(self), task, key: self.key() }
    }
}

/// Seals and opens what belongs to one task.
#[derive(Clone, Debug)]
pub(crate) struct TaskVault {
    vault: Arc<Vault>,
    task: TaskId,
    key: Option<KeyId>,
}

/// What a value is, which it is bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Params,
    Client,
    Principal,
    Carried,
    Note,
    Question,
    Result,
    Error,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Client => "client",
            Self::Principal => "principal",
            Self::Carried => "carried",
            Self::Note => "note",
            Self::Question => "question",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl TaskVault {
    /// The same for a task that was sealed with this key.
    ///
    /// # Errors
    /// When there are keys and the task is not sealed: whoever can write to the store could have put it there.
    pub(super) fn with_key(mut self, key: Option<KeyId>) -> Result<Self, VaultError> {
        if key.is_none() && self.vault.ring.is_some() {
            return Err(VaultError::NotSealed);
        }
        self.key = key;
        Ok(self)
    }

    /// The key that its values are sealed with.
    pub(super) fn key(&self) -> Option<KeyId> {
        self.key
    }

    /// Seals a value; `name` says which one of its kind it is.
    pub(crate) fn seal(&self, part: Part, name: &str, value: RawJson) -> Result<RawJson, VaultError> {
        self.seal_as(part.name(), name, value)
    }

    /// Opens a value.
    ///
    /// # Errors
    /// When it was not put there by this server, or with a key that is not here.
    pub(crate) fn open(&self, part: Part, name: &str, value: &RawJson) -> Result<RawJson, VaultError> {
        if self.vault.ring.is_none() && value.text().starts_with(&format!("\"{MARK}")) {
            return Err(VaultError::Unsealable(Unsealable::UnknownKey));
        }
        self.open_as(part.name(), name, value)
    }

    /// An entry of the journal as it is stored.
    pub(crate) fn seal_entry(&self, mut entry: Entry) -> Result<RawJson, VaultError> {
        let (kind, name) = (entry.kind(), entry.name().to_owned());
        if let Some(value) = entry.value_mut() {
            *value = self.seal_as(kind, &name, value.clone())?;
        }
        RawJson::of(&entry).map_err(|_| VaultError::NotJson)
    }

    /// An entry of the journal as it is read.
    pub(crate) fn open_entry(&self, entry: &RawJson) -> Result<Entry, VaultError> {
        let mut entry = Entry::parse(entry).map_err(VaultError::Journal)?;
        let (kind, name) = (entry.kind(), entry.name().to_owned());
        if let Some(value) = entry.value_mut() {
            *value = self.open_as(kind, &name, value)?;
        }
        Ok(entry)
    }

    fn place<'a>(&'a self, kind: &'a str, name: &'a str) -> StorePlace<'a> {
        StorePlace { audience: &self.vault.audience, task: self.task.as_bytes(), kind, name }
    }

    fn seal_as(&self, kind: &str, name: &str, value: RawJson) -> Result<RawJson, VaultError> {
        let Some(ring) = &self.vault.ring else { return Ok(value) };
        let nonce = random().map_err(|_| VaultError::NoRandomness)?;
        let key = self.key.map(|key| *key.as_bytes());
        let sealed = ring.seal_value(nonce, key, &self.place(kind, name), value.text().as_bytes());
        let sealed = sealed.map_err(VaultError::Unsealable)?;
        RawJson::of(&format!("{MARK}{sealed}")).map_err(|_| VaultError::NotJson)
    }

    fn open_as(&self, kind: &str, name: &str, value: &RawJson) -> Result<RawJson, VaultError> {
        let Some(ring) = &self.vault.ring else { return Ok(value.clone()) };
        let text: String = value.decode().map_err(|_| VaultError::NotSealed)?;
        let sealed = text.strip_prefix(MARK).ok_or(VaultError::NotSealed)?;
        let plain = ring.open_value(sealed, &self.place(kind, name)).map_err(VaultError::Unsealable)?;
        let plain = String::from_utf8(plain).map_err(|_| VaultError::NotJson)?;
        RawJson::parse(plain).map_err(|_| VaultError::NotJson)
    }
}

/// Why something cannot be sealed or opened. The reason is for our log alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum VaultError {
    /// There are keys, and the value is not sealed.
    NotSealed,
    Unsealable(Unsealable),
    NoRandomness,
    NotJson,
    Journal(JournalError),
}

impl VaultError {
    /// What a caller is told.
    pub(crate) fn rpc_error(&self) -> RpcError {
        tracing::error!(why = %self, "what is stored of a task cannot be used");
        RpcError::internal("what is stored of this task cannot be read by this server")
    }
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSealed => f.write_str("the server has state_keys, and the task was stored without"),
            Self::Unsealable(why) => write!(f, "{why}; it was sealed with other state_keys, or moved"),
            Self::NoRandomness => f.write_str("there is no randomness to seal with"),
            Self::NotJson => f.write_str("it is not JSON"),
            Self::Journal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for VaultError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(keys: &StateKeys, task: u8) -> TaskVault {
        Arc::new(Vault::new(keys, "reports")).of(TaskId::from_bytes([task; 24]))
    }

    fn keys() -> StateKeys {
        StateKeys::new(["a secret that is long enough for a key"]).unwrap()
    }

    #[test]
    fn with_keys_nothing_is_stored_or_taken_in_clear() {
        let value = RawJson::parse(r#"{"password":"swordfish"}"#).unwrap();
        let vault = vault(&keys(), 1);
        let sealed = vault.seal(Part::Params, "", value.clone()).unwrap();
        assert!(!sealed.text().contains("swordfish"));
        assert_eq!(vault.open(Part::Params, "", &sealed).unwrap(), value);
        assert!(vault.open(Part::Result, "", &sealed).is_err(), "it is something else");
        assert!(self::vault(&keys(), 2).open(Part::Params, "", &sealed).is_err(), "it is of another task");
        assert_eq!(vault.open(Part::Params, "", &value), Err(VaultError::NotSealed));
        assert_eq!(vault.clone().with_key(None).unwrap_err(), VaultError::NotSealed);
        let plain = self::vault(&StateKeys::of_this_process(), 1);
        assert!(plain.open(Part::Params, "", &sealed).is_err(), "it is not taken for a value");
        assert_eq!(plain.seal(Part::Params, "", value.clone()).unwrap(), value);
        assert_eq!(plain.key(), None);
    }

    #[test]
    fn entries_of_a_journal_are_readable_but_for_their_values() {
        let vault = vault(&keys(), 1);
        let entry = Entry::step("fetch", RawJson::parse("\"swordfish\"").unwrap());
        let sealed = vault.seal_entry(entry.clone()).unwrap();
        assert!(sealed.text().starts_with(r#"{"k":"step","name":"fetch","v":"sealed:"#), "{sealed:?}");
        assert_eq!(vault.open_entry(&sealed).unwrap(), entry);
        let renamed = RawJson::parse(sealed.text().replace("fetch", "other")).unwrap();
        assert!(vault.open_entry(&renamed).is_err());
    }
}
