//! What the reader of a connection shares with those who call over it: who waits for what.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::watch;
use toolwire_protocol::{
    Message, Method, Notification, OwnIds, ProgressToken, RequestId, Response, RpcError,
    envelope::{EnvelopeFault, FaultKind, Outline, OutlineKind, parse_batch, write_error},
};
use toolwire_transport::{FairQueue, ReceiveError, fair};

use super::super::{ExchangeError, ExchangeFeed, Inbox, LinkError, LinkErrorKind, Outgoing};
use crate::{error::Delivery, lock::lock};

/// What the reader shares with the callers.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) queue: FairQueue,
    open: Mutex<Open>,
    pending_requests: usize,
    batch_messages: usize,
    pub(super) outgoing_bytes: usize,
    /// Whether arrays of messages may come.
    pub(super) batches: AtomicBool,
    /// Why the connection ended, once it has.
    pub(super) ended: watch::Sender<Option<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: OwnIds<ExchangeFeed>,
    closed: bool,
}

impl Core {
    pub(super) fn new(inbox: &Inbox) -> Self {
        let outgoing_bytes = inbox.outgoing_bytes();
        let limits = fair::Limits { queue_bytes: outgoing_bytes, ..fair::Limits::default() };
        Self {
            queue: FairQueue::with_limits(limits),
            open: Mutex::default(),
            pending_requests: inbox.pending_requests(),
            batch_messages: inbox.batch_messages(),
            outgoing_bytes,
            batches: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        }
    }

    pub(super) fn register(&self, request: &Outgoing, feed: ExchangeFeed) -> Result<(), LinkError> {
        let mut open = lock(&self.open);
        if open.closed {
            return Err(not_sent("the connection to the server is closed"));
        }
        if open.waiting.len() >= self.pending_requests {
            let limit = self.pending_requests;
            let text =
                format!("{limit} requests wait for their answers already (the limit pending_requests)");
            return Err(LinkError::new(LinkErrorKind::Busy, Delivery::NotSent, text));
        }
        open.waiting.insert(request.id.clone(), feed);
        Ok(())
    }

    pub(super) fn take(&self, id: &RequestId) -> Option<ExchangeFeed> {
        lock(&self.open).waiting.remove(id)
    }

    /// Whether there are several requests that wait for their answers.
    pub(super) fn has_several(&self) -> bool {
        lock(&self.open).waiting.len() > 1
    }

    /// Takes one message in and says whether it was one.
    pub(super) fn accept(self: &Arc<Self>, bytes: &Bytes, inbox: &Inbox) -> bool {
        match Message::parse(bytes) {
            Ok(message) => {
                self.dispatch(message, inbox);
                true
            }
            Err(fault) if fault.kind == FaultKind::Batch && self.batches.load(Ordering::Relaxed) => {
                self.accept_batch(bytes, inbox)
            }
            Err(fault) => self.reject(&fault, inbox),
        }
    }

    fn accept_batch(self: &Arc<Self>, bytes: &Bytes, inbox: &Inbox) -> bool {
        match parse_batch(bytes, self.batch_messages) {
            Ok(messages) => messages.into_iter().fold(false, |any, message| match message {
                Ok(message) => {
                    self.dispatch(message, inbox);
                    true
                }
                Err(fault) => self.reject(&fault, inbox) || any,
            }),
            Err(fault) => self.reject(&fault, inbox),
        }
    }

    /// Deals with what is not a message; always `false`.
    fn reject(&self, fault: &EnvelopeFault, inbox: &Inbox) -> bool {
        inbox.unreadable(format_args!("the server sent something that is not a message: {fault}"));
        tracing::warn!(%fault, "the server sent something that is not a message");
        let Some(id) = &fault.id else { return false };
        if fault.fails_call() {
            self.fail_call(id, fault);
        } else if fault.fails_request() {
            let answer = write_error(Some(id), &fault.rpc_error());
            inbox.sent(&answer);
            self.post_answer(answer);
        }
        false
    }

    /// Ends the call that was answered by what is not a message.
    fn fail_call(&self, id: &RequestId, fault: &EnvelopeFault) {
        if let Some(feed) = self.take(id) {
            let text = format!("the server's answer is not a message: {fault}");
            let error = LinkError::new(LinkErrorKind::Malformed, Delivery::Unknown, text);
            feed.finish(Err(error.into()));
        }
    }

    /// A message was too long. If it can be told what it was about, nobody has to wait for it in vain.
    pub(super) fn lost(&self, error: &ReceiveError, inbox: &Inbox) {
        let Some(Outline { kind, id: Some(id), .. }) = error.outline() else { return };
        match kind {
            OutlineKind::Response => {
                if let Some(feed) = self.take(id) {
                    let text = format!("its answer was lost: {error}");
                    let kind = LinkErrorKind::Limit("max_message_bytes");
                    feed.finish(Err(LinkError::new(kind, Delivery::Unknown, text).into()));
                }
            }
            OutlineKind::Request => {
                let answer = write_error(Some(id), &RpcError::invalid_request(error.to_string()));
                inbox.sent(&answer);
                self.post_answer(answer);
            }
            _ => {}
        }
    }

    fn dispatch(self: &Arc<Self>, message: Message, inbox: &Inbox) {
        match message {
            Message::Response(response) => self.answer(response),
            Message::Notification(notification) if notification.method.known() == Some(Method::Progress) => {
                self.progress(notification, inbox);
            }
            Message::Notification(notification) => inbox.notification(&notification),
            Message::Request(request) => {
                let core = Arc::clone(self);
                // All messages come the same way, so nobody can tell which request it belongs to.
                inbox.request(request, None, move |answer| core.post_answer(answer));
            }
        }
    }

    fn answer(&self, response: Response) {
        let feed = match &response.id {
            Some(id) => self.take(id),
            None => self.only_one(),
        };
        let Some(feed) = feed else {
            return tracing::debug!(id = ?response.id, "an answer that nobody waits for");
        };
        feed.finish(response.outcome.map_err(ExchangeError::Rpc));
    }

    /// An error without an id is about a message that the server could not read. When only one request is
    /// open, it must have been that one.
    fn only_one(&self) -> Option<ExchangeFeed> {
        let mut open = lock(&self.open);
        if open.waiting.len() != 1 {
            return None;
        }
        let id = open.waiting.keys().next().cloned()?;
        open.waiting.remove(&id)
    }

    fn progress(&self, notification: Notification, inbox: &Inbox) {
        #[derive(Deserialize)]
        struct Token {
            #[serde(rename = "progressToken")]
            token: ProgressToken,
        }

        let Ok(Token { token }) = notification.params.decode() else {
            return tracing::debug!("progress without a token");
        };
        if let Some(feed) = lock(&self.open).waiting.get(&token) {
            return feed.progress(notification);
        }
        // A token that is not ours was put into a raw request.
        inbox.notification(&notification);
    }

    /// Queues an answer, unless the server asks and asks and never reads. Calls of our own stop at half as many bytes,
    /// so they are never the reason.
    fn post_answer(&self, answer: Bytes) {
        if self.queue.queued_bytes() >= self.outgoing_bytes.saturating_mul(2) {
            return tracing::warn!("an answer was dropped because the server does not read");
        }
        // Without a connection nobody waits for the answer.
        let _ = self.queue.post(answer);
    }

    /// Fails whoever waits. Only the first call counts.
    pub(super) fn end(&self, why: &str, kind: &LinkErrorKind, inbox: &Inbox) {
        let waiting = {
            let mut open = lock(&self.open);
            if std::mem::replace(&mut open.closed, true) {
                return;
            }
            std::mem::take(&mut open.waiting)
        };
        self.queue.close();
        self.ended.send_replace(Some(why.into()));
        for feed in waiting.into_values() {
            let error = LinkError::new(kind.clone(), Delivery::Unknown, why.to_owned());
            feed.finish(Err(error.into()));
        }
        inbox.closed(why);
    }
}

pub(super) fn not_sent(text: &'static str) -> LinkError {
    LinkError::new(LinkErrorKind::Closed, Delivery::NotSent, text)
}
