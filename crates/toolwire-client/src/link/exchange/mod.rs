//! One request under way: its progress, then its answer.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use toolwire_protocol::{Notification, Params, RawJson, RequestId, RpcError};
use toolwire_transport::BoxFuture;

use super::{LinkError, LinkErrorKind};
use crate::{
    error::Delivery,
    lock::lock,
    observe::Observer,
    settings::MAX_WAITING_PROGRESS,
    waiting::{Share, WAITING_BYTES, WaitingBytes},
};

/// The answer to a request: its result, or why there is none.
pub type Reply = Result<Params, ExchangeError>;

/// Why a request has no result.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "either the server says no, or it does not say anything")]
pub enum ExchangeError {
    /// The server answered with an error.
    Rpc(RpcError),
    /// The request or its answer was not carried.
    Link(LinkError),
}

impl From<LinkError> for ExchangeError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// What an [`Exchange`] yields.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a request has progress until it has its answer")]
pub enum ExchangeEvent {
    /// `notifications/progress` for this request.
    Progress(Notification),
    /// The answer. Nothing comes after it.
    Finished(Reply),
}

/// The receiving side of a request under way.
pub struct Exchange {
    shared: Arc<Mutex<State>>,
    driver: Option<BoxFuture<'static, ()>>,
}

/// The side that the transport feeds with what the server says about the request.
///
/// Dropped without [`finish`](Self::finish), it fails the request: the connection is gone.
pub struct ExchangeFeed {
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Each with what it was charged for.
    progress: VecDeque<(Notification, usize)>,
    reply: Option<Reply>,
    /// Where what waits is accounted for.
    waiting_bytes: Option<Arc<WaitingBytes>>,
    /// What all that waits here was charged for.
    charged: usize,
    finished: bool,
    waker: Option<Waker>,
    /// Whoever watches, and the id of the request.
    observer: Option<(Observer, RequestId)>,
}

impl State {
    /// Takes a message of this length into account; `None` when there is no room for it.
    fn charge(&mut self, text: usize, share: Share) -> Option<usize> {
        let Some(waiting_bytes) = &self.waiting_bytes else { return Some(0) };
        let bytes = waiting_bytes.charge(text, share)?;
        self.charged += bytes;
        Some(bytes)
    }

    fn release(&mut self, bytes: usize) {
        if let Some(waiting_bytes) = self.waiting_bytes.as_ref().filter(|_| bytes > 0) {
            waiting_bytes.release(bytes);
            self.charged -= bytes;
        }
    }

    /// Lets progress wait. Where there is no room for it, it takes the place of what came last.
    fn put_progress(&mut self, notification: Notification) {
        let text = notification.params.text().len();
        let mut charged = None;
        if self.progress.len() < MAX_WAITING_PROGRESS {
            charged = self.charge(text, Share::Quarter);
        }
        if charged.is_none() {
            let last = self.progress.pop_back().map_or(0, |(_, bytes)| bytes);
            self.release(last);
            charged = self.charge(text, Share::Quarter);
        }
        if let Some(bytes) = charged {
            // What waits for long must not hold on to the far larger buffer that it was read into.
            let notification = if self.progress.is_empty() { notification } else { compact(notification) };
            self.progress.push_back((notification, bytes));
        }
    }

    /// Lets the answer wait, or the reason why it cannot.
    fn put_reply(&mut self, reply: Reply) {
        let fits = self.charge(weight(&reply), Share::All).is_some();
        self.reply = Some(if fits { reply } else { Err(self.no_room().into()) });
    }

    fn no_room(&self) -> LinkError {
        let limit = self.waiting_bytes.as_ref().map_or(0, |waiting_bytes| waiting_bytes.limit());
        let text = format!("its answer came, but {limit} bytes of other answers wait to be taken already");
        LinkError::new(LinkErrorKind::Limit(WAITING_BYTES), Delivery::Unknown, text)
    }

    fn observe_progress(&self, notification: &Notification) {
        if let Some((observer, _)) = &self.observer {
            observer.received_notification(notification);
        }
    }

    fn observe_reply(&self, reply: &Reply) {
        if let Some((observer, id)) = &self.observer {
            observer.received_reply(id, reply);
        }
    }
}

impl Exchange {
    /// Both sides of a request that somebody else drives, such as the task that reads a connection.
    pub fn channel() -> (ExchangeFeed, Self) {
        let shared = Arc::new(Mutex::new(State::default()));
        (ExchangeFeed { shared: Arc::clone(&shared) }, Self { shared, driver: None })
    }

    /// A request that is driven by whoever waits for it: dropping the exchange drops `driver`.
    pub fn driven(driver: impl FnOnce(ExchangeFeed) -> BoxFuture<'static, ()>) -> Self {
        let (feed, mut exchange) = Self::channel();
        exchange.driver = Some(driver(feed));
        exchange
    }

    /// A request that failed before it began.
    pub fn failed(error: LinkError) -> Self {
        let (feed, exchange) = Self::channel();
        feed.finish(Err(error.into()));
        exchange
    }

    /// Tells an observer what comes, in the order in which it comes, and what has come already.
    pub(crate) fn observe(&self, observer: Observer, id: RequestId) {
        let mut state = lock(&self.shared);
        state.observer = Some((observer, id));
        state.progress.iter().for_each(|(notification, _)| state.observe_progress(notification));
        if let Some(reply) = &state.reply {
            state.observe_reply(reply);
        }
    }

    /// Accounts for what waits, and for what has come already.
    pub(crate) fn account(&self, waiting_bytes: Arc<WaitingBytes>) {
        let mut state = lock(&self.shared);
        state.waiting_bytes = Some(waiting_bytes);
        for (notification, _) in std::mem::take(&mut state.progress) {
            state.put_progress(notification);
        }
        if let Some(reply) = state.reply.take() {
            state.put_reply(reply);
        }
    }

    /// Tells nobody any more.
    pub(crate) fn unobserve(&self) {
        lock(&self.shared).observer = None;
    }

    /// Waits for the next event. After the answer there is none, so it must not be called again.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no event.
    pub async fn next(&mut self) -> ExchangeEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next event.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<ExchangeEvent> {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            self.driver = None;
        }
        let mut state = lock(&self.shared);
        if let Some((progress, bytes)) = state.progress.pop_front() {
            state.release(bytes);
            return Poll::Ready(ExchangeEvent::Progress(progress));
        }
        if let Some(reply) = state.reply.take() {
            let charged = state.charged;
            state.release(charged);
            return Poll::Ready(ExchangeEvent::Finished(reply));
        }
        if state.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl ExchangeFeed {
    /// Passes progress on. A caller that is slow gets the latest, not every step towards it.
    pub fn progress(&self, notification: Notification) {
        let mut state = lock(&self.shared);
        if state.finished {
            return;
        }
        state.observe_progress(&notification);
        state.put_progress(notification);
        wake(state);
    }

    /// Ends the request.
    pub fn finish(self, reply: Reply) {
        self.end(|| reply);
    }

    fn end(&self, reply: impl FnOnce() -> Reply) {
        let mut state = lock(&self.shared);
        if !state.finished {
            state.finished = true;
            let reply = reply();
            state.observe_reply(&reply);
            state.put_reply(reply);
            wake(state);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let charged = self.charged;
        self.release(charged);
    }
}

/// How much text an answer holds.
fn weight(reply: &Reply) -> usize {
    match reply {
        Ok(result) => result.bytes().map_or(0, bytes::Bytes::len),
        Err(ExchangeError::Rpc(error)) => {
            error.message.len() + error.data.as_ref().map_or(0, |data| data.text().len())
        }
        Err(ExchangeError::Link(_)) => 0,
    }
}

/// The same in memory of its own.
fn compact(notification: Notification) -> Notification {
    match RawJson::parse(notification.params.text()) {
        Ok(params) => Notification::new(notification.method, params.into()),
        Err(_) => notification,
    }
}

/// Wakes after the lock is released, so that the one who wakes does not have to wait for it.
fn wake(mut state: std::sync::MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Drop for ExchangeFeed {
    fn drop(&mut self) {
        self.end(|| {
            let text = "the connection ended before the answer came";
            Err(LinkError::new(LinkErrorKind::Closed, Delivery::Unknown, text).into())
        });
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

impl fmt::Debug for ExchangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeFeed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
