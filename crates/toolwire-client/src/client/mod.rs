//! The handle to a connected server.

mod call;
mod list_budget;
mod methods;
mod operation;
mod outcome;
mod pages;
mod raw;
mod requester;
mod restore;
mod rounds;
mod task_support;
mod typed_request;
mod wrapped;

use std::{
    fmt,
    sync::{Arc, Weak},
};

use toolwire_protocol::{
    Era, Version,
    codec::RequestEnvelope,
    wire::{Implementation, ServerCapabilities},
};

use crate::{connect::Facts, host::Host, link::Link, settings::Settings};

pub use call::CallBuilder;
pub use operation::Operation;
pub use outcome::CallOutcome;
pub use pages::{PageOf, Pages};
pub use raw::{Raw, RawCall};
pub(crate) use requester::{Failure, InFlight, OnProgress, Pace, Requester};
pub(crate) use restore::Restoration;
pub(crate) use task_support::TaskSupports;
pub(crate) use typed_request::{CONTEXT, Options};
pub(crate) use wrapped::WrappedTools;

/// A connection to a server, whatever protocol version it speaks.
///
/// Clones are cheap and share the connection. It lives as long as any of them, or a listener or a stream of
/// pages made from one; [`close`](Self::close) ends it for all.
///
/// # Cancel safety
/// Dropping the future of a call cancels it: the server is told, unless the answer is there already.
///
/// ```
/// # use toolwire_client::{Client, Error};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let answer = client.call("add", serde_json::json!({ "a": 2, "b": 3 })).await?;
/// println!("{}", answer.text());
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    requester: Requester,
    settings: Settings,
    session: Session,
}

/// A client that does not keep its connection alive.
#[derive(Clone)]
pub(crate) struct WeakClient {
    inner: Weak<Inner>,
}

impl WeakClient {
    pub(crate) fn upgrade(&self) -> Option<Client> {
        self.inner.upgrade().map(|inner| Client { inner })
    }
}

impl fmt::Debug for WeakClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakClient").finish_non_exhaustive()
    }
}

/// What a client holds; from [`Client::usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes of messages that nobody has taken yet, of at most
    /// [`ClientLimits::waiting_bytes`](crate::ClientLimits::waiting_bytes).
    pub waiting_bytes: usize,
    /// Bytes of stored results, of at most [`ClientLimits::cache_bytes`](crate::ClientLimits::cache_bytes).
    pub cached_bytes: usize,
    /// Listeners that are open, of at most [`ClientLimits::listeners`](crate::ClientLimits::listeners).
    pub listeners: usize,
}

/// What was agreed on when the connection was made.
pub(crate) struct Session {
    pub(crate) envelope: RequestEnvelope,
    pub(crate) facts: Facts,
    pub(crate) server_info: Option<Implementation>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) instructions: Option<String>,
    /// Whether the server had to be started again, and then worked when it was not asked for its version.
    pub(crate) dies_on_discover: bool,
}

impl Client {
    pub(crate) fn new(requester: Requester, settings: Settings, session: Session) -> Self {
        let inner = Arc::new(Inner { requester, settings, session });
        inner.requester.host.restoration.by(WeakClient { inner: Arc::downgrade(&inner) });
        Self { inner }
    }

    /// The protocol version that is spoken.
    pub fn version(&self) -> Version {
        self.inner.session.envelope.version()
    }

    /// The era of that version.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// What the server is; a modern one need not say.
    pub fn server_info(&self) -> Option<&Implementation> {
        self.inner.session.server_info.as_ref()
    }

    /// What the server can do.
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.inner.session.capabilities
    }

    /// How to use the server, for the model.
    pub fn instructions(&self) -> Option<&str> {
        self.inner.session.instructions.as_deref()
    }

    /// Whether the server did not survive `server/discover` and had to be started again, now or when it was last
    /// connected to with the same [`EraCache`](crate::EraCache).
    ///
    /// Servers on early versions of the SDK for Python are like that. Give clients an [`EraCache`](crate::EraCache), or
    /// pin the [legacy era](crate::EraChoice::Legacy), and the next start is quick.
    pub fn dies_on_discover(&self) -> bool {
        self.inner.session.dies_on_discover
    }

    /// What carries the messages: for transports that have more to offer.
    pub fn link(&self) -> &Arc<dyn Link> {
        &self.inner.requester.link
    }

    /// What the client holds at present of what the server has sent.
    pub fn usage(&self) -> Usage {
        let host = self.host();
        Usage {
            waiting_bytes: host.waiting_bytes.used(),
            cached_bytes: host.with_cache(|cache, _| cache.bytes()),
            listeners: host.hub.len(),
        }
    }

    pub(crate) fn requester(&self) -> &Requester {
        &self.inner.requester
    }

    pub(crate) fn host(&self) -> &Host {
        &self.inner.requester.host
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.inner.session.facts
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn envelope(&self) -> &RequestEnvelope {
        &self.inner.session.envelope
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("version", &self.version())
            .field("server_info", &self.inner.session.server_info)
            .finish_non_exhaustive()
    }
}
