//! Watching a conversation: every message that passes, in either direction, whatever carries it.
//!
//! It is the ground for traces and logs. It can change nothing, and costs one check where nobody watches. What a
//! transport says on its own account is not heard: HTTP makes a lost session anew, for instance, and asks for
//! the list of tools where it needs to know their headers. Nor are answers that nobody waits for any more.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use toolwire_protocol::{
    MethodName, Notification, Params, RawJson, Request, RequestId,
    envelope::{write_error, write_notification, write_request, write_response},
};

use crate::{
    host::quietly,
    link::{ExchangeError, LinkErrorKind, Reply},
};

/// Something that passed between a client and its server; see
/// [`ClientBuilder::observe`](crate::ClientBuilder::observe).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observed {
    /// The client sends this JSON-RPC message.
    Sent(Bytes),
    /// The server has sent this JSON-RPC message.
    Received(Bytes),
    /// Something was not carried, or was not a message: one sentence for a person.
    Failed(String),
    /// The server has sent a message that is larger than a limit allows, and that was dropped: one sentence for a person.
    TooLarge(String),
    /// The connection is over, for this reason.
    Closed(String),
}

/// Whoever watches. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Observer(Arc<dyn Fn(Observed) + Send + Sync>);

impl Observer {
    pub(crate) fn new(observe: impl Fn(Observed) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    fn tell(&self, observed: Observed) {
        quietly(|| (self.0)(observed));
    }

    pub(crate) fn sent(&self, message: Bytes) {
        self.tell(Observed::Sent(message));
    }

    pub(crate) fn failed(&self, why: impl fmt::Display) {
        self.tell(Observed::Failed(why.to_string()));
    }

    pub(crate) fn too_large(&self, why: impl fmt::Display) {
        self.tell(Observed::TooLarge(why.to_string()));
    }

    pub(crate) fn closed(&self, why: &str) {
        self.tell(Observed::Closed(why.to_owned()));
    }

    pub(crate) fn received_request(&self, request: &Request) {
        self.received(write_request(&request.id, &request.method, &raw(&request.params)));
    }

    pub(crate) fn received_notification(&self, notification: &Notification) {
        self.received(write_notification(&notification.method, &raw(&notification.params)));
    }

    /// The end of a request: the envelope is written anew around what came in it.
    pub(crate) fn received_reply(&self, id: &RequestId, reply: &Reply) {
        match reply {
            Ok(result) => self.received(write_response(id, |out| {
                out.extend_from_slice(result.text().as_bytes());
                Ok::<_, serde_json::Error>(())
            })),
            Err(ExchangeError::Rpc(error)) => self.received(Ok(write_error(Some(id), error))),
            Err(ExchangeError::Link(error)) => {
                if let LinkErrorKind::Status(_, Some(rpc)) = &error.kind {
                    self.received(Ok(write_error(Some(id), rpc)));
                }
                self.failed(error);
            }
        }
    }

    pub(crate) fn not_sent(&self, method: &MethodName, why: impl fmt::Display) {
        self.failed(format_args!("{method} was not sent: {why}"));
    }

    fn received(&self, message: serde_json::Result<Bytes>) {
        match message {
            Ok(message) => self.tell(Observed::Received(message)),
            // It has been a message once, so this does not happen.
            Err(error) => self.failed(format_args!("a message cannot be shown: {error}")),
        }
    }
}

/// The parameters as they came.
fn raw(params: &Params) -> RawJson {
    RawJson::parse(params.text()).unwrap_or_else(|_| RawJson::from(&serde_json::Value::Null))
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
