//! The session of a legacy conversation: its id, and what it takes to have a new one.

use std::sync::Mutex;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::watch;
use toolwire_client::link::Outgoing;
use toolwire_protocol::{
    Feature, Version,
    headers::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};

use super::{HEADERS, core::lock};

const SESSION_ID: HeaderName = HeaderName::from_static(MCP_SESSION_ID);
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(MCP_PROTOCOL_VERSION);

/// Keeps the session of a link.
#[derive(Debug, Default)]
pub(super) struct SessionKeeper {
    session: Mutex<Session>,
    /// Counts the sessions; whoever is in an old one learns that there is a new one.
    renewals: watch::Sender<u64>,
    /// Held while a lost session is being replaced.
    pub(super) renewing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Session {
    id: Option<HeaderValue>,
    initialize: Option<Outgoing>,
    initialized: Option<Bytes>,
}

/// The session at one moment.
#[derive(Clone, Debug)]
pub(super) struct SessionView {
    pub(super) id: Option<HeaderValue>,
    /// Which of the sessions of this link it is.
    pub(super) generation: u64,
    version: Option<Version>,
}

/// The messages that made the session, and will make the next one.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    pub(super) initialize: Outgoing,
    pub(super) initialized: Bytes,
}

impl SessionKeeper {
    pub(super) fn view(&self, version: Option<Version>) -> SessionView {
        SessionView { id: lock(&self.session).id.clone(), generation: *self.renewals.borrow(), version }
    }

    /// Begins anew: what was there before is over.
    pub(super) fn begin(&self, initialize: &Outgoing) {
        *lock(&self.session) = Session { initialize: Some(initialize.clone()), ..Session::default() };
    }

    /// Takes the id that the server gave with its answer to `initialize`.
    pub(super) fn adopt(&self, id: Option<HeaderValue>) {
        lock(&self.session).id = id;
    }

    /// Remembers the message that ends the handshake; `true` the first time.
    pub(super) fn confirm(&self, initialized: &Bytes) -> bool {
        lock(&self.session).initialized.replace(initialized.clone()).is_none()
    }

    pub(super) fn handshake(&self) -> Option<Handshake> {
        let session = lock(&self.session);
        let (initialize, initialized) = session.initialize.clone().zip(session.initialized.clone())?;
        Some(Handshake { initialize, initialized })
    }

    /// Makes the new session the one that counts.
    pub(super) fn renew(&self, id: Option<HeaderValue>) {
        self.adopt(id);
        self.renewals.send_modify(|generation| *generation += 1);
    }

    pub(super) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    /// The session that is to be ended at the server, if there is one. Only the first call gives it.
    pub(super) fn leave(&self, version: Option<Version>) -> Option<SessionView> {
        let id = lock(&self.session).id.take()?;
        Some(SessionView { id: Some(id), generation: 0, version })
    }
}

impl SessionView {
    /// What is true before the server has said anything.
    pub(super) const NONE: Self = Self { id: None, generation: 0, version: None };

    /// The headers of a message in this session.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(HEADERS);
        if let Some(id) = &self.id {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = self.version.filter(|version| version.has(Feature::VersionHeader)) {
            let value = HeaderValue::from_static(version.as_str());
            headers.insert(PROTOCOL_VERSION, value);
        }
        headers
    }

    /// The same conversation under the id that a server gave just now.
    pub(super) fn with_id(&self, id: Option<HeaderValue>) -> Self {
        Self { id, ..self.clone() }
    }
}

/// The session id that came with a response.
pub(super) fn session_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut id = headers.get(SESSION_ID)?.clone();
    if id.is_empty() || !id.as_bytes().iter().all(u8::is_ascii_graphic) {
        tracing::warn!("the server gave a session id that is none");
        return None;
    }
    // Whoever knows it is in the session.
    id.set_sensitive(true);
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(version: Version) -> Vec<String> {
        let id = Some(HeaderValue::from_static("s"));
        let view = SessionView { id, generation: 0, version: Some(version) };
        view.headers().keys().map(ToString::to_string).collect()
    }

    #[test]
    fn the_version_is_named_since_the_revision_that_asks_for_it() {
        assert_eq!(names(Version::V2025_03_26), [MCP_SESSION_ID]);
        assert_eq!(names(Version::V2025_06_18), [MCP_SESSION_ID, MCP_PROTOCOL_VERSION]);
        assert!(SessionView::NONE.headers().is_empty());
    }

    #[test]
    fn a_session_is_left_once() {
        let keeper = SessionKeeper::default();
        keeper.adopt(Some(HeaderValue::from_static("s")));
        assert!(keeper.leave(None).is_some());
        assert!(keeper.leave(None).is_none());
    }
}
