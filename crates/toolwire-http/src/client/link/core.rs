//! What the requests of one link share: who waits for what, and where the server's own messages go.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use serde::Deserialize;
use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore, watch},
    task::{AbortHandle, JoinSet},
    time::sleep,
};
use toolwire_client::{
    Delivery,
    link::{ExchangeError, ExchangeFeed, Inbox, LinkError, LinkErrorKind, Reply},
};
use toolwire_protocol::{
    Feature, Message, Method, Notification, OwnIds, ProgressToken, RequestId, Response, Version,
    envelope::{EnvelopeFault, FaultKind, parse_batch, write_error},
};

use super::{plans::Plans, session::SessionKeeper};
use crate::client::{endpoint::Endpoint, fault, settings::FORGOTTEN_PATIENCE};

/// How many messages without an answer may be under way at once.
const MAX_POSTS: usize = 1024;

/// The state of one link.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) endpoint: Endpoint,
    pub(super) session: SessionKeeper,
    pub(super) plans: Arc<Plans>,
    /// One permit for each request that may have a connection.
    pub(super) streams: Semaphore,
    most_streams: usize,
    pub(super) runtime: Handle,
    inbox: Inbox,
    version: OnceLock<Version>,
    waiting: Mutex<OwnIds<Waiting>>,
    posts: Mutex<JoinSet<()>>,
    closed: watch::Sender<bool>,
    /// Told whenever the server has answered a legacy request.
    answered: Notify,
}

/// A legacy request that waits for its answer.
#[derive(Debug)]
struct Waiting {
    feed: ExchangeFeed,
    task: Option<AbortHandle>,
}

impl Core {
    pub(super) fn new(endpoint: &Endpoint, inbox: Inbox) -> Self {
        let limits = &endpoint.settings().limits;
        let plans = Arc::new(Plans::new(limits.tool_plans));
        let most_streams = limits.open_streams.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            session: SessionKeeper::default(),
            plans: Arc::clone(&plans),
            streams: Semaphore::new(most_streams),
            most_streams,
            runtime: Handle::current(),
            version: OnceLock::new(),
            waiting: Mutex::default(),
            posts: Mutex::default(),
            closed: watch::Sender::new(false),
            answered: Notify::new(),
            endpoint: endpoint.attached(&inbox, Some(plans)),
            inbox,
        }
    }

    /// The version that was agreed on, once it was.
    pub(super) fn version(&self) -> Option<Version> {
        self.version.get().copied()
    }

    fn takes_batches(&self) -> bool {
        self.version().is_some_and(|version| version.has(Feature::Batches))
    }

    pub(super) fn negotiated(&self, version: Version) {
        // A second version on one connection would be a fault of ours; the first one stays.
        let _ = self.version.set(version);
    }

    /// Whether there are several requests that have a connection.
    pub(super) fn has_several(&self) -> bool {
        self.streams.available_permits() + 1 < self.most_streams
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Waits until this link is closed.
    pub(super) async fn closing(&self) {
        let mut closed = self.closed.subscribe();
        // The sender lives in here, so it cannot be gone.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Ends everything but the messages that are under way. Only the first call counts.
    pub(super) fn end(&self) -> JoinSet<()> {
        let first = self.closed.send_if_modified(|closed| !std::mem::replace(closed, true));
        if first {
            for (_, waiting) in lock(&self.waiting).drain() {
                if let Some(task) = waiting.task {
                    task.abort();
                }
                waiting.feed.finish(Err(fault::cancelled().into()));
            }
            self.inbox.closed("this client closed the connection");
        }
        std::mem::take(&mut *lock(&self.posts))
    }

    /// Takes a legacy request in, before it is sent.
    pub(super) fn register(&self, id: &RequestId, feed: ExchangeFeed) -> Result<(), LinkError> {
        let most = self.inbox.pending_requests();
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= most {
            let text = format!("{most} requests wait for their answers already");
            return Err(LinkError::new(LinkErrorKind::Busy, Delivery::NotSent, text));
        }
        waiting.insert(id.clone(), Waiting { feed, task: None });
        Ok(())
    }

    /// Takes in the request that renews the session. It has no part in the limit: those that fill it may be
    /// waiting for just this one.
    pub(super) fn register_renewal(&self, id: &RequestId, feed: ExchangeFeed) {
        lock(&self.waiting).insert(id.clone(), Waiting { feed, task: None });
    }

    /// Says which task carries a request.
    pub(super) fn carried_by(&self, id: &RequestId, task: AbortHandle) {
        if let Some(waiting) = lock(&self.waiting).get_mut(id) {
            waiting.task = Some(task);
        }
    }

    pub(super) fn waits_for(&self, id: &RequestId) -> bool {
        lock(&self.waiting).contains_key(id)
    }

    /// Ends a request, and says whether anybody waited for that.
    pub(super) fn finish(&self, id: &RequestId, reply: Reply) -> bool {
        let Some(waiting) = lock(&self.waiting).remove(id) else { return false };
        waiting.feed.finish(reply);
        true
    }

    /// Nobody waits for this answer any more. Says whether anybody did.
    ///
    /// A request that is to be cancelled ends at once. Any other is still given the time to reach the server.
    pub(super) fn forget(&self, id: &RequestId, cancel: bool) -> bool {
        let Some(waiting) = lock(&self.waiting).remove(id) else { return false };
        match waiting.task {
            Some(task) if cancel => task.abort(),
            Some(task) => {
                self.runtime.spawn(async move {
                    sleep(FORGOTTEN_PATIENCE).await;
                    task.abort();
                });
            }
            None => {}
        }
        true
    }

    /// Sends a legacy message that has no answer, without anybody waiting for it.
    pub(super) fn post(&self, message: Bytes, what: &'static str) {
        let (endpoint, view) = (self.endpoint.clone(), self.session.view(self.version()));
        let mut posts = lock(&self.posts);
        while posts.try_join_next().is_some() {}
        if posts.len() >= MAX_POSTS {
            return tracing::warn!(what, "not sent: {MAX_POSTS} messages are under way already");
        }
        let sending = async move {
            if let Err(error) = endpoint.tell(message, || view.headers()).await {
                tracing::debug!(%error, what, "the server did not take a message");
            }
        };
        posts.spawn_on(sending, &self.runtime);
    }

    /// Takes in what a legacy stream or response brought, and says whether it was a message.
    ///
    /// An error without an id belongs to `asked`, the request that was answered, if any.
    pub(super) fn accept(self: &Arc<Self>, bytes: &Bytes, asked: Option<&RequestId>) -> bool {
        match Message::parse(bytes) {
            Ok(message) => {
                self.dispatch(message, asked);
                true
            }
            Err(fault) if fault.kind == FaultKind::Batch && self.takes_batches() => {
                match parse_batch(bytes, self.inbox.batch_messages()) {
                    Ok(messages) => messages.into_iter().fold(false, |any, message| match message {
                        Ok(message) => {
                            self.dispatch(message, asked);
                            true
                        }
                        Err(fault) => self.reject(&fault) || any,
                    }),
                    Err(fault) => self.reject(&fault),
                }
            }
            Err(fault) => self.reject(&fault),
        }
    }

    /// A message that belongs to no request was larger than a limit allows.
    pub(super) fn lost(&self, why: &dyn std::fmt::Display) {
        tracing::warn!(error = %why, "a message of the server was lost");
        self.inbox.too_large(format_args!("a message of the server was lost: {why}"));
    }

    /// Deals with what is not a message; always `false`.
    fn reject(&self, fault: &EnvelopeFault) -> bool {
        tracing::warn!(%fault, "the server sent something that is not a message");
        self.inbox.unreadable(format_args!("the server sent something that is not a message: {fault}"));
        if let Some(id) = &fault.id {
            if fault.fails_call() {
                self.fail_call(id, fault);
            } else if fault.fails_request() {
                self.post(write_error(Some(id), &fault.rpc_error()), "an answer");
            }
        }
        false
    }

    /// Ends the call that was answered by what is not a message.
    fn fail_call(&self, id: &RequestId, fault: &EnvelopeFault) {
        let text = format!("the server's answer is not a message: {fault}");
        self.finish(id, Err(fault::malformed(text).into()));
    }

    fn dispatch(self: &Arc<Self>, message: Message, asked: Option<&RequestId>) {
        match message {
            Message::Response(response) => self.answer(response, asked),
            Message::Notification(notification) if notification.method.known() == Some(Method::Progress) => {
                self.progress(notification);
            }
            Message::Notification(notification) => self.inbox.notification(&notification),
            Message::Request(request) => {
                // Whoever thinks about the answer must not keep the link alive.
                let core = Arc::downgrade(self);
                self.inbox.request(request, asked, move |answer| {
                    if let Some(core) = core.upgrade().filter(|core| !core.is_closed()) {
                        core.post(answer, "an answer");
                    }
                });
            }
        }
    }

    fn answer(&self, response: Response, asked: Option<&RequestId>) {
        let Some(id) = response.id.as_ref().or(asked) else {
            return tracing::debug!("an error that belongs to no request");
        };
        if !self.finish(id, response.outcome.map_err(ExchangeError::Rpc)) {
            tracing::debug!(%id, "an answer that nobody waits for");
        }
    }

    fn progress(&self, notification: Notification) {
        if let Some(token) = token_of(&notification)
            && let Some(waiting) = lock(&self.waiting).get(&token)
        {
            return waiting.feed.progress(notification);
        }
        // A token that is not ours was put into a raw request.
        self.inbox.notification(&notification);
    }

    /// The server has answered, so it is there.
    pub(super) fn note_answer(&self) {
        self.answered.notify_waiters();
    }

    /// Waits until the server answers the next request.
    pub(super) async fn next_answer(&self) {
        self.answered.notified().await;
    }

    /// What the server says of its own accord cannot be heard any more.
    pub(super) fn unheard(&self, why: &str) {
        self.inbox.unheard(why);
    }

    /// It can be heard again.
    pub(super) fn heard(&self) {
        self.inbox.heard();
    }

    /// There is a new session in place of a lost one.
    pub(super) fn session_renewed(&self) {
        self.inbox.session_renewed();
    }

    /// This was sent without having been given to the link.
    pub(super) fn sent(&self, message: &Bytes) {
        self.inbox.sent(message);
    }

    /// A notification that belongs to no request.
    pub(super) fn notification(&self, notification: &Notification) {
        self.inbox.notification(notification);
    }
}

/// The token of a progress notification.
pub(super) fn token_of(notification: &Notification) -> Option<ProgressToken> {
    #[derive(Deserialize)]
    struct Token {
        #[serde(rename = "progressToken")]
        token: ProgressToken,
    }

    notification.params.decode::<Token>().ok().map(|token| token.token)
}

/// Locks without poison: nothing in here leaves a half-changed state behind when it panics.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
