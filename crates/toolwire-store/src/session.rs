//! Sessions of the legacy era, and which nodes are alive.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use toolwire_protocol::{RawJson, Version};

use crate::{NodeId, Op, SessionKey};

/// Keeps what nodes have to know of sessions that began at another one.
///
/// A session is gone when it was removed, or was not [touched](Self::touch) for its idle time. A store removes what is
/// gone by itself, and wakes [`Topic::Session`](crate::Topic::Session) for every put and removal.
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Writes a session, to be kept for `idle`, and gives its new [`rev`](SessionRecord::rev), which the record itself
    /// need not have. `expect` is the one that is to be replaced; `None` for a session that is new.
    ///
    /// # Errors
    /// `Conflict` when the stored one has another `rev`, is gone, or, for a new one, is there or was removed.
    /// `Full` when the store has no room for another one.
    fn put<'a>(&'a self, session: &'a SessionRecord, expect: Option<u64>, idle: Duration) -> Op<'a, u64>;

    /// The session, if it is there.
    fn get<'a>(&'a self, key: &'a SessionKey) -> Op<'a, Option<SessionRecord>>;

    /// These sessions were used: they are kept for `idle` from now on, and each one's [`seen`](SessionRecord::seen)
    /// becomes the number beside it if that is higher. Those that are gone stay gone. No `rev` changes.
    fn touch<'a>(&'a self, keys: &'a [(SessionKey, u64)], idle: Duration) -> Op<'a, ()>;

    /// Removes a session, and says whether it was there. For as long as it would have been kept otherwise it cannot be put again.
    fn remove<'a>(&'a self, key: &'a SessionKey) -> Op<'a, bool>;

    /// The node is alive, and will be for `lease`.
    fn beat<'a>(&'a self, node: &'a NodeId, lease: Duration) -> Op<'a, ()>;

    /// Whether the node has said that it is alive, and that still holds.
    fn alive<'a>(&'a self, node: &'a NodeId) -> Op<'a, bool>;
}

/// What is stored of a session.
///
/// Its JSON form is what stores keep. Names may be added to it, never removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// Which one it is.
    pub key: SessionKey,
    /// Grows with each [`put`](SessionStore::put).
    pub rev: u64,
    /// The protocol version that was agreed on.
    #[serde(deserialize_with = "crate::version::read")]
    pub version: Version,
    /// What the client said of itself.
    pub client: RawJson,
    /// Who began it; nobody else may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<[u8; 32]>,
    /// Whether the client has said that it is ready.
    pub initialized: bool,
    /// The lowest level of log messages that the client wants, counted from `debug`; 255 for none at all.
    pub level: u8,
    /// The resources that it has subscribed to.
    pub uris: Vec<String>,
    /// The last change that its standalone stream was told.
    pub seen: u64,
}

impl SessionRecord {
    /// A session that has just begun.
    pub fn new(key: SessionKey, version: Version, client: RawJson) -> Self {
        Self {
            key,
            rev: 0,
            version,
            client,
            principal: None,
            initialized: false,
            level: u8::MAX,
            uris: Vec::new(),
            seen: 0,
        }
    }
}
