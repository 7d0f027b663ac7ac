//! Where a link puts what the server says without being asked.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use toolwire_protocol::{Notification, Request, RequestId};

use super::Line;
use crate::{host::Host, settings::ROOM_PATIENCE};

/// The clocks of all requests stand still as long as this lives. From [`Inbox::thinking`].
#[derive(Debug)]
pub struct Thinking {
    host: Arc<Host>,
}

impl Drop for Thinking {
    fn drop(&mut self) {
        self.host.handler_clock.end(None);
    }
}

/// Takes requests and notifications of the server. Nothing here waits: a link can call it while it reads.
#[derive(Clone)]
pub struct Inbox {
    host: Arc<Host>,
    /// What the connection belongs to, and its number there, if another is to take its place when it is lost.
    line: Option<(Arc<Line>, u64)>,
}

impl Inbox {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, line: None }
    }

    /// For a connection that another takes the place of when it is lost.
    pub(crate) fn replaceable(host: Arc<Host>, line: Arc<Line>, number: u64) -> Self {
        Self { host, line: Some((line, number)) }
    }

    /// A request of the server; `answer` is called with the whole response, unless the request is cancelled.
    ///
    /// `during` is the request of this client that the server was working on, if the link can tell. Only the clock of
    /// that one stands still then.
    pub fn request(
        &self,
        request: Request,
        during: Option<&RequestId>,
        answer: impl FnOnce(Bytes) + Send + 'static,
    ) {
        let during = during.cloned();
        match self.host.observer().cloned() {
            None => Host::request(&self.host, request, during, answer),
            Some(observer) => {
                observer.received_request(&request);
                let answer = move |message: Bytes| {
                    observer.sent(message.clone());
                    answer(message);
                };
                Host::request(&self.host, request, during, answer);
            }
        }
    }

    /// A notification that is not the progress of a request of this client.
    pub fn notification(&self, notification: &Notification) {
        if let Some(observer) = self.host.observer() {
            observer.received_notification(notification);
        }
        self.host.notification(notification);
    }

    /// The link has sent this message without having been given it, as it does to cancel a request. Only those
    /// who [observe](crate::ClientBuilder::observe) hear of it.
    pub fn sent(&self, message: &Bytes) {
        if let Some(observer) = self.host.observer() {
            observer.sent(message.clone());
        }
    }

    /// Something came that is not a message, or that belongs to nothing. Only those who
    /// [observe](crate::ClientBuilder::observe) hear of it.
    pub fn unreadable(&self, why: impl fmt::Display) {
        if let Some(observer) = self.host.observer() {
            observer.failed(why);
        }
    }

    /// A message came that is larger than a limit allows, and was dropped. Only those who
    /// [observe](crate::ClientBuilder::observe) hear of it.
    pub fn too_large(&self, why: impl fmt::Display) {
        if let Some(observer) = self.host.observer() {
            observer.too_large(why);
        }
    }

    /// The connection is over, for this reason.
    pub fn closed(&self, why: &str) {
        if let Some(observer) = self.host.observer() {
            observer.closed(why);
        }
        let replaced = self.line.as_ref().is_some_and(|(line, number)| line.lost(*number, why));
        if !replaced {
            self.host.closed(why);
        }
    }

    /// What the server says of its own accord cannot be heard any more, for this reason, although requests may still
    /// reach it. Listeners end.
    pub fn unheard(&self, why: &str) {
        self.host.hub.lost(why);
    }

    /// It can be heard again.
    pub fn heard(&self) {
        self.host.hub.found();
    }

    /// The server had lost the session, and the link has made a new one in its place, which knows nothing.
    ///
    /// The client then sets the log level again and asks again for the resources that are listened to, in a task
    /// of its own; listeners hear a [`Resync`](crate::Change::Resync) after that. A Tokio runtime is needed.
    pub fn session_renewed(&self) {
        self.host.restoration.begin();
    }

    /// A person is asked, or something else is done that is not the server's fault, before a request can be sent: the
    /// time until this is dropped counts for no timeout.
    #[must_use = "it counts as long as it lives"]
    pub fn thinking(&self) -> Thinking {
        self.host.handler_clock.start(None);
        Thinking { host: Arc::clone(&self.host) }
    }

    /// From now on the server takes this client for somebody else: what it said to the one before is forgotten, unless
    /// it was for everybody.
    pub fn identity_changed(&self) {
        self.host.with_cache(|cache, _| cache.clear_private());
    }

    /// How many messages one batch may hold.
    pub fn batch_messages(&self) -> usize {
        self.host.limits().batch_messages
    }

    /// How many bytes may wait to be sent.
    pub fn outgoing_bytes(&self) -> usize {
        self.host.limits().outgoing_bytes
    }

    /// Waits a little while so much waits in the client for somebody to take it that reading on would lose something.
    /// A link awaits this before it reads more of a connection that carries answers to several requests.
    pub async fn room(&self) {
        let waiting_bytes = &self.host.waiting_bytes;
        if waiting_bytes.is_crowded() {
            // Not for ever: whoever never takes its answer must not keep the others waiting.
            let _ = tokio::time::timeout(ROOM_PATIENCE, waiting_bytes.room()).await;
        }
    }

    /// How many requests may wait for their answers at once; a link answers more with
    /// [`Busy`](super::LinkErrorKind::Busy).
    pub fn pending_requests(&self) -> usize {
        self.host.limits().pending_requests
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}
