//! A link over one connection that carries all messages both ways.
//!
//! One task reads and one writes. A call costs an entry in a map: no task and no channel of its own. Calls that are
//! made at the same time are written together.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use serde::Deserialize;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle, yield_now},
    time::timeout,
};
use toolwire_protocol::{
    Message, Method, Notification, OwnIds, ProgressToken, RequestId, Response, Version,
    envelope::{EnvelopeFault, FaultKind, parse_batch, write_error, write_notification},
    probe::ProbeLink,
    wire::CancelledNotificationParams,
};
use toolwire_transport::{
    BoxFuture, Diagnostics, Duplex, FairQueue, Sink, Source, fair::QUEUE_BYTES, write_loop,
};

use super::{Exchange, ExchangeError, ExchangeFeed, Inbox, Link, LinkError, LinkErrorKind, Outgoing};
use crate::{
    error::Delivery,
    lock::lock,
    settings::{CLOSING_PATIENCE, MAX_BATCH_MESSAGES, MAX_CONSECUTIVE_GARBAGE},
};

/// A link over any [`Duplex`].
#[derive(Debug)]
pub struct DuplexLink {
    core: Arc<Core>,
    reader: AbortHandle,
    writer: Mutex<Option<JoinHandle<()>>>,
    diagnostics: Option<Arc<dyn Diagnostics>>,
    inbox: Inbox,
}

/// What the reader shares with the callers.
#[derive(Debug)]
struct Core {
    queue: FairQueue,
    open: Mutex<Open>,
    limit: usize,
    /// Whether arrays of messages may come.
    batches: AtomicBool,
    /// Why the connection ended, once it has.
    ended: watch::Sender<Option<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: OwnIds<ExchangeFeed>,
    closed: bool,
}

impl DuplexLink {
    /// Starts reading and writing.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn new(duplex: impl Duplex, inbox: Inbox) -> Self {
        let diagnostics = duplex.diagnostics();
        let (source, sink) = duplex.split();
        let core = Arc::new(Core {
            queue: FairQueue::new(),
            open: Mutex::default(),
            limit: inbox.pending_requests(),
            batches: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        });
        let writing =
            write_loop(core.queue.clone(), Together { sink, core: Arc::clone(&core), begun: false });
        let writer = tokio::spawn(async move {
            if let Err(error) = writing.await {
                tracing::debug!(%error, "the connection broke while sending");
            }
        });
        let reading = read_loop(source, Arc::clone(&core), inbox.clone(), diagnostics.clone());
        let reader = tokio::spawn(reading).abort_handle();
        Self { core, reader, writer: Mutex::new(Some(writer)), diagnostics, inbox }
    }
}

impl Link for DuplexLink {
    fn family(&self) -> ProbeLink {
        ProbeLink::Duplex
    }

    fn start(&self, request: Outgoing) -> Exchange {
        let (feed, exchange) = Exchange::channel();
        if let Err(error) = self.core.register(&request, feed) {
            return Exchange::failed(error);
        }
        if self.core.queue.post(request.message).is_err()
            && let Some(feed) = self.core.take(&request.id)
        {
            feed.finish(Err(not_sent("the connection to the server is closed").into()));
        }
        exchange
    }

    fn abandon(&self, id: &RequestId, tell: bool) {
        let was_open = self.core.take(id).is_some();
        if was_open && tell {
            let params = CancelledNotificationParams::new().request_id(id.clone());
            if let Ok(message) = write_notification(&Method::Cancelled.into(), &params) {
                // Without a connection there is nothing to cancel.
                if self.core.queue.post(message.clone()).is_ok() {
                    self.inbox.sent(&message);
                }
            }
        }
    }

    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        let posted =
            self.core.queue.post(message).map_err(|_| not_sent("the connection to the server is closed"));
        Box::pin(std::future::ready(posted))
    }

    fn has_room(&self) -> bool {
        self.core.queue.queued_bytes() < QUEUE_BYTES
    }

    fn room(&self) -> BoxFuture<'static, ()> {
        let queue = self.core.queue.clone();
        Box::pin(async move { queue.room().await })
    }

    fn negotiated(&self, version: Version) {
        self.core.batches.store(version == Version::V2025_03_26, Ordering::Relaxed);
    }

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        let mut ended = self.core.ended.subscribe();
        Box::pin(async move {
            let why = timeout(CLOSING_PATIENCE, ended.wait_for(Option::is_some)).await.ok()?.ok()?;
            why.as_deref().map(str::to_owned)
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.core.end("this client closed the connection", &LinkErrorKind::Cancelled, &self.inbox);
        let writer = lock(&self.writer).take();
        let diagnostics = self.diagnostics.clone();
        let reader = self.reader.clone();
        Box::pin(async move {
            if let Some(writer) = writer {
                // A server that no longer reads must not keep us from going.
                let _ = timeout(CLOSING_PATIENCE, writer).await;
            }
            if let Some(diagnostics) = diagnostics {
                diagnostics.shutdown().await;
            }
            reader.abort();
        })
    }
}

impl Drop for DuplexLink {
    fn drop(&mut self) {
        // The writer ends by itself after it has written what is waiting and closed its half.
        self.core.end("the client was dropped", &LinkErrorKind::Cancelled, &self.inbox);
        self.reader.abort();
    }
}

impl Core {
    fn register(&self, request: &Outgoing, feed: ExchangeFeed) -> Result<(), LinkError> {
        let mut open = lock(&self.open);
        if open.closed {
            return Err(not_sent("the connection to the server is closed"));
        }
        if open.waiting.len() >= self.limit {
            let text = format!("{} requests wait for their answers already", self.limit);
            return Err(LinkError::new(LinkErrorKind::Busy, Delivery::NotSent, text));
        }
        open.waiting.insert(request.id.clone(), feed);
        Ok(())
    }

    fn take(&self, id: &RequestId) -> Option<ExchangeFeed> {
        lock(&self.open).waiting.remove(id)
    }

    /// Whether there are several requests that wait for their answers.
    fn has_several(&self) -> bool {
        lock(&self.open).waiting.len() > 1
    }

    /// Takes one message in and says whether it was one.
    fn accept(&self, bytes: &Bytes, inbox: &Inbox) -> bool {
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

    fn accept_batch(&self, bytes: &Bytes, inbox: &Inbox) -> bool {
        match parse_batch(bytes, MAX_BATCH_MESSAGES) {
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

    /// Deals with what is no message; always `false`.
    fn reject(&self, fault: &EnvelopeFault, inbox: &Inbox) -> bool {
        inbox.unreadable(format_args!("the server sent something that is no message: {fault}"));
        tracing::warn!(%fault, "the server sent something that is no message");
        let Some(id) = &fault.id else { return false };
        match fault.kind {
            _ if fault.answer => self.fail_call(id, fault),
            FaultKind::NothingInIt | FaultKind::ResultAndError => self.fail_call(id, fault),
            FaultKind::WrongParamsType
            | FaultKind::DuplicateMember(_)
            | FaultKind::TooDeep
            | FaultKind::NumberOutOfRange
            | FaultKind::LoneSurrogate => {
                let answer = write_error(Some(id), &fault.rpc_error());
                inbox.sent(&answer);
                post_answer(&self.queue, answer);
            }
            _ => {}
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

    fn dispatch(&self, message: Message, inbox: &Inbox) {
        match message {
            Message::Response(response) => self.answer(response),
            Message::Notification(notification) if notification.method.known() == Some(Method::Progress) => {
                self.progress(notification, inbox);
            }
            Message::Notification(notification) => inbox.notification(&notification),
            Message::Request(request) => {
                let queue = self.queue.clone();
                inbox.request(request, move |answer| post_answer(&queue, answer));
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

    /// Fails whoever waits. Only the first call counts.
    fn end(&self, why: &str, kind: &LinkErrorKind, inbox: &Inbox) {
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

/// Waits for those who are about to send something, so that it is written in one go with what is there already.
///
/// The writer is woken by the first message and would be the next to run: one system call for each message, although
/// many answers have come at once, and whoever got one has the next question at the ready.
struct Together<S> {
    sink: S,
    core: Arc<Core>,
    /// Whether something was taken that is not written yet.
    begun: bool,
}

impl<S: Sink> Sink for Together<S> {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        // Whoever calls alone would wait for nobody.
        if !std::mem::replace(&mut self.begun, true) && self.core.has_several() {
            yield_now().await;
        }
        self.sink.send(message).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.begun = false;
        self.sink.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.sink.close().await
    }
}

async fn read_loop<S: Source>(
    mut source: S,
    core: Arc<Core>,
    inbox: Inbox,
    diagnostics: Option<Arc<dyn Diagnostics>>,
) {
    let mut garbage = 0;
    let cause = loop {
        let good = match source.receive().await {
            Ok(Some(bytes)) => core.accept(&bytes, &inbox),
            Ok(None) => break None,
            Err(error) if error.is_fatal() => break Some(error.to_string()),
            Err(error) => {
                tracing::warn!(%error, "a message of the server was lost");
                inbox.unreadable(format_args!("a message of the server was lost: {error}"));
                false
            }
        };
        garbage = if good { 0 } else { garbage + 1 };
        if garbage >= MAX_CONSECUTIVE_GARBAGE {
            break Some(format!("the server sent {garbage} things in a row that are no messages"));
        }
        // A server that never pauses must not keep the other tasks of this thread waiting.
        tokio::task::coop::consume_budget().await;
    };
    let told = match &diagnostics {
        // It was us who gave up, so the other side has nothing to tell.
        Some(diagnostics) if garbage < MAX_CONSECUTIVE_GARBAGE => diagnostics.why_closed().await,
        _ => None,
    };
    let why = match (cause, told) {
        (Some(cause), Some(told)) => format!("{cause}; {told}"),
        (Some(why), None) | (None, Some(why)) => why,
        (None, None) => "the server closed the connection".to_owned(),
    };
    core.end(&why, &LinkErrorKind::Closed, &inbox);
}

/// Queues an answer, unless the server asks and asks and never reads.
fn post_answer(queue: &FairQueue, answer: Bytes) {
    if queue.queued_bytes() >= MAX_ANSWER_BYTES {
        return tracing::warn!("an answer was dropped because the server does not read");
    }
    // Without a connection nobody waits for the answer.
    let _ = queue.post(answer);
}

/// How many bytes may be queued before answers to the server are dropped. Calls of our own stop at half of it, so
/// they are never the reason.
const MAX_ANSWER_BYTES: usize = 2 * QUEUE_BYTES;

fn not_sent(text: &'static str) -> LinkError {
    LinkError::new(LinkErrorKind::Closed, Delivery::NotSent, text)
}
