//! What a store holds of a task, sealed where the server has keys.

use std::{fmt, sync::Arc};

use sha2::{Digest, Sha256};
use toolwire_protocol::{
    RawJson, RpcError,
    journal::{Entry, JournalError},
    seal::{KeyRing, StorePlace, Unsealable},
};
use toolwire_store::{KeyId, TaskId};

use crate::ask::{StateKeys, random};

/// Seals and opens what lies in the store. Without keys it leaves everything as it is.
///
/// The key id of a record says who can work on it: it is a digest of the server's audience and of the key, or of the
/// audience alone where nothing is sealed. So two servers with one store never claim each other's tasks.
#[derive(Debug)]
pub(super) struct Vault {
    /// Never one that the process has made for itself: what that seals could not be opened after a restart.
    ring: Option<KeyRing>,
    audience: String,
    /// What the records of this server have as their key, the one of new records first.
    ids: Vec<(KeyId, Sealed)>,
}

/// What the values of a record are sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sealed {
    With([u8; 4]),
    Not,
}

/// What a sealed value begins with, inside its quotation marks.
const MARK: &str = "sealed:";

impl Vault {
    pub(super) fn new(keys: &StateKeys, server: &str) -> Self {
        let (ring, audience) = (keys.given().cloned(), keys.audience_of(server).to_owned());
        let known: Vec<[u8; 4]> = ring.iter().flat_map(KeyRing::store_keys).collect();
        let mut ids: Vec<_> =
            known.iter().map(|key| (record_key(&audience, Some(key)), Sealed::With(*key))).collect();
        // With keys, too: what was stored before there were any waits for those that have none, but not for ever.
        ids.push((record_key(&audience, None), Sealed::Not));
        // Earlier versions stored the key alone, or nothing.
        ids.extend(known.iter().map(|key| (KeyId::from_bytes(*key), Sealed::With(*key))));
        Self { ring, audience, ids }
    }

    /// The key of new records.
    fn key(&self) -> Option<KeyId> {
        self.ids.first().map(|(id, _)| *id)
    }

    /// The keys of the records of this server, for a claim.
    pub(super) fn keys(&self) -> Vec<KeyId> {
        self.ids.iter().map(|(id, _)| *id).collect()
    }

    /// The part of it that is about one task, for a task that is sealed as new ones are.
    pub(super) fn of(self: &Arc<Self>, task: TaskId) -> TaskVault {
        TaskVault { vault: Arc::clone(self), task, id: self.key(), key: None }
    }

    /// Whether values are sealed.
    fn seals(&self) -> bool {
        self.ring.is_some()
    }
}

/// What a record has as its key: whom it is for, and what its values are sealed with.
fn record_key(audience: &str, key: Option<&[u8; 4]>) -> KeyId {
    let mut digest = Sha256::new();
    digest.update(b"toolwire record v1");
    digest.update((audience.len() as u64).to_be_bytes());
    digest.update(audience);
    digest.update(key.map_or(&[][..], |key| key));
    let digest: [u8; 32] = digest.finalize().into();
    KeyId::from_bytes(digest.first_chunk().copied().unwrap_or_default())
}

/// Seals and opens what belongs to one task.
#[derive(Clone, Debug)]
pub(crate) struct TaskVault {
    vault: Arc<Vault>,
    task: TaskId,
    /// The key of its record.
    id: Option<KeyId>,
    /// The key that seals, if not the newest.
    key: Option<[u8; 4]>,
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
    /// The vault of a record that has this key.
    ///
    /// # Errors
    /// When there are keys and the record is not sealed, since anything that can write to the store could have put it
    /// there; and when it is sealed with a key that is not here.
    pub(super) fn with_key(mut self, id: Option<KeyId>) -> Result<Self, VaultError> {
        let sealed = match id {
            None => Some(Sealed::Not),
            Some(id) => self.vault.ids.iter().find(|(known, _)| *known == id).map(|(_, sealed)| *sealed),
        };
        self.key = match sealed {
            Some(Sealed::Not) if self.vault.seals() => return Err(VaultError::Plain),
            Some(Sealed::Not) => None,
            Some(Sealed::With(key)) => Some(key),
            None => return Err(VaultError::Unsealable(Unsealable::UnknownKey)),
        };
        self.id = id;
        Ok(self)
    }

    /// The vault that seals as this question of the task is sealed, so that whatever can read the question can read its
    /// answer.
    ///
    /// # Errors
    /// When the question cannot be opened here.
    pub(super) fn like_question(mut self, name: &str, question: &RawJson) -> Result<Self, VaultError> {
        self.open(Part::Question, name, question)?;
        if self.vault.seals() {
            let sealed: String = question.decode().map_err(|_| VaultError::NotSealed)?;
            let key = sealed.strip_prefix(MARK).and_then(KeyRing::key_of_value);
            self.key = Some(key.ok_or(VaultError::Unsealable(Unsealable::Malformed))?);
        }
        Ok(self)
    }

    /// The key of its record.
    pub(super) fn key(&self) -> Option<KeyId> {
        self.id
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
        if !self.vault.seals() && value.text().starts_with(&format!("\"{MARK}")) {
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
        let sealed = ring.seal_value(nonce, self.key, &self.place(kind, name), value.text().as_bytes());
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
    /// There are keys, and nothing of the record is sealed.
    Plain,
    Unsealable(Unsealable),
    NoRandomness,
    NotJson,
    Journal(JournalError),
}

impl VaultError {
    /// Whether a node with other keys, or without any, may be able to read it.
    pub(super) fn is_for_others(&self) -> bool {
        matches!(self, Self::Plain | Self::Unsealable(Unsealable::UnknownKey))
    }

    /// What a caller is told.
    pub(crate) fn rpc_error(&self) -> RpcError {
        tracing::error!(why = %self, "what is stored of a task cannot be used");
        RpcError::internal("what is stored of this task cannot be read by this server")
    }
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSealed | Self::Plain => {
                f.write_str("the server has state_keys, and the task was stored without")
            }
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
        assert_eq!(vault.clone().with_key(None).unwrap_err(), VaultError::Plain);
        let plain = self::vault(&StateKeys::of_this_process(), 1);
        assert!(plain.open(Part::Params, "", &sealed).is_err(), "it is not taken for a value");
        assert_eq!(plain.seal(Part::Params, "", value.clone()).unwrap(), value);
    }

    #[test]
    fn a_record_names_its_server_and_the_key_that_seals_it() {
        let two = ["the new secret, which is long enough too", "a secret that is long enough for a key"];
        let (old, new) = (vault(&keys(), 1), vault(&StateKeys::new(two).unwrap(), 1));
        let plain = vault(&StateKeys::of_this_process(), 1);
        let other = Arc::new(Vault::new(&keys(), "other")).of(TaskId::from_bytes([1; 24]));
        let unknown = Err(VaultError::Unsealable(Unsealable::UnknownKey));
        let opens = |vault: &TaskVault, id| vault.clone().with_key(id).map(drop);
        assert_eq!(opens(&new, old.key()), Ok(()));
        assert_eq!(opens(&old, new.key()), unknown, "the key is not here");
        assert_eq!(opens(&other, old.key()), unknown, "it is of another server");
        assert_eq!(opens(&plain, old.key()), unknown);
        assert_eq!(opens(&old, plain.key()), Err(VaultError::Plain));
        let stored_before = keys().given().unwrap().store_keys().next().map(KeyId::from_bytes);
        assert_eq!(opens(&old, stored_before), Ok(()), "an earlier version has stored the key alone");
        assert_eq!(opens(&plain, None), Ok(()), "or nothing");
        for (vault, claims) in [(&old, 3), (&new, 5), (&plain, 1)] {
            assert_eq!(vault.vault.keys().len(), claims);
            assert!(vault.vault.keys().contains(&vault.key().unwrap()));
        }
    }

    #[test]
    fn an_answer_is_sealed_like_its_question() {
        let two = ["the new secret, which is long enough too", "a secret that is long enough for a key"];
        let (old, new) = (vault(&keys(), 1), vault(&StateKeys::new(two).unwrap(), 1));
        let value = RawJson::parse("1").unwrap();
        let question = old.seal(Part::Question, "k", value.clone()).unwrap();
        let answer = Entry::answer("k", value.clone());
        let sealed = new.clone().like_question("k", &question).unwrap().seal_entry(answer.clone()).unwrap();
        assert_eq!(old.open_entry(&sealed).unwrap(), answer);
        assert!(old.open_entry(&new.seal_entry(answer).unwrap()).is_err());
        let plain = vault(&StateKeys::of_this_process(), 1);
        assert!(plain.clone().like_question("k", &question).is_err(), "the key is not here");
        assert!(plain.like_question("k", &value).is_ok());
        assert_eq!(old.like_question("k", &value).unwrap_err(), VaultError::NotSealed);
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
