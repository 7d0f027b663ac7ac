//! Serving one client over a transport that carries whole messages both ways: pipes, sockets, memory.
//!
//! One task reads, one writes. The reader never waits for a handler: what is not answered at its first poll
//! goes on in a task of its own. Each request has its own lane in the outgoing queue, so that its messages
//! stay in order and no request holds up another.

mod accept;
mod batch;

use std::{
    error::Error,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::Poll,
};

use bytes::Bytes;
use tokio::{task::JoinHandle, time::timeout};
use toolwire_protocol::{
    Message, Method, Notification, Request, RpcError, Version,
    classify::Verdict,
    envelope::{EnvelopeFault, FaultKind, Outline, write_error, write_notification, write_response},
    framing::ndjson::LineTooLong,
    peek::Peek,
    wire::{CancelledNotificationParams, EmptyResult},
};
use toolwire_transport::{Duplex, FairQueue, Source, fair, write_loop};

use crate::{
    Context, Extensions, Server,
    engine::{Answered, Call, Flights, Refusal, Seat, Session},
};

impl Server {
    /// Serves one client until it goes away, or until [`shutdown`](Self::shutdown).
    ///
    /// When the client has closed its side, running requests may finish within the limit `drain_time`.
    ///
    /// # Errors
    /// When the transport breaks. A client that simply leaves is not an error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection at once.
    pub async fn serve<D: Duplex>(&self, transport: D) -> Result<(), ServeError> {
        self.serve_with(transport, Extensions::default()).await
    }

    /// The same for a transport that knows something of its client: the handlers of every request find it among
    /// the extensions of their context, a [`Principal`](crate::Principal) for instance.
    ///
    /// # Errors
    /// When the transport breaks. A client that simply leaves is not an error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection at once.
    pub async fn serve_with<D: Duplex>(
        &self,
        transport: D,
        extensions: Extensions,
    ) -> Result<(), ServeError> {
        let limits = self.limits();
        let queue_limits = fair::Limits { queue_bytes: limits.queued_bytes, ..fair::Limits::default() };
        let connection = Arc::new(Connection {
            server: self.clone(),
            extensions,
            queue: FairQueue::with_limits(queue_limits),
            session: OnceLock::new(),
            flights: Flights::new(limits),
            helpers: Mutex::default(),
        });
        // In a task of its own, so that it runs on the runtime's workers even when this future is driven by
        // the main thread.
        let mut task = AbortOnDrop(tokio::spawn(connection.run(transport)));
        match (&mut task.0).await {
            Ok(result) => result,
            Err(error) => Err(ServeError(io::Error::other(error))),
        }
    }
}

/// The transport broke while serving.
#[derive(Debug)]
pub struct ServeError(io::Error);

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection to the client broke")
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One client.
struct Connection {
    server: Server,
    /// What the transport knows of the client, for each request.
    extensions: Extensions,
    queue: FairQueue,
    session: OnceLock<Session>,
    flights: Flights,
    /// Tasks that live as long as the connection.
    helpers: Mutex<Vec<AbortOnDrop<()>>>,
}

impl Connection {
    async fn run<D: Duplex>(self: Arc<Self>, transport: D) -> Result<(), ServeError> {
        let (mut source, sink) = transport.split();
        let mut writer = AbortOnDrop(tokio::spawn(write_loop(self.queue.clone(), sink)));
        let read = tokio::select! {
            biased;
            written = &mut writer.0 => {
                self.flights.cancel_all();
                return ended(written.unwrap_or_else(|error| Err(io::Error::other(error))));
            }
            read = self.read(&mut source) => read,
        };
        self.drain().await;
        self.queue.close();
        match timeout(self.server.limits().drain_time, &mut writer.0).await {
            Ok(written) => ended(written.unwrap_or_else(|error| Err(io::Error::other(error)))).and(read),
            // A client that does not read its last answers is gone.
            Err(_) => read,
        }
    }

    async fn read<S: Source>(self: &Arc<Self>, source: &mut S) -> Result<(), ServeError> {
        let shutdown = self.server.shutting_down().clone();
        loop {
            if self.queue.queued_bytes() > 2 * self.server.limits().queued_bytes {
                // The client reads nothing, and not even refusals fit any more.
                tokio::select! {
                    () = shutdown.cancelled() => return Ok(()),
                    () = self.queue.room() => {}
                }
            }
            if shutdown.is_cancelled() {
                return Ok(());
            }
            // Listening for the shutdown takes a lock, so it is done only when there is nothing to read.
            let received = tokio::select! {
                biased;
                received = source.receive() => received,
                () = shutdown.cancelled() => return Ok(()),
            };
            match received {
                Ok(Some(bytes)) => self.handle(&bytes).await,
                Ok(None) => return Ok(()),
                Err(error) if error.is_fatal() => return Err(ServeError(io::Error::other(error))),
                Err(error) => self.refuse_oversized(&error, &error.outline().cloned().unwrap_or_default()),
            }
        }
    }

    /// Lets running requests finish, within their time.
    async fn drain(&self) {
        // When the server shuts down, subscriptions end with a result of their own.
        if !self.server.shutting_down().is_cancelled() {
            self.flights.cancel_listeners();
        }
        let _ = timeout(self.server.limits().drain_time, self.flights.all_landed()).await;
        self.flights.cancel_all();
    }

    async fn handle(self: &Arc<Self>, bytes: &Bytes) {
        let limit = self.server.limits().message_bytes;
        if bytes.len() > limit {
            return self.refuse_oversized(&LineTooLong { limit }, &Outline::of(bytes));
        }
        match Message::parse_and_peek(bytes) {
            Ok((message, peek)) => self.message(message, peek).await,
            Err(fault) if fault.kind == FaultKind::Batch && self.takes_batches() => {
                batch::handle(self, bytes);
            }
            Err(fault) => self.refuse_envelope(&fault),
        }
    }

    /// Answers a message that is too long, unless it is one that is not to be answered.
    fn refuse_oversized(&self, why: &dyn fmt::Display, outline: &Outline) {
        if outline.may_be_answered() {
            self.post(write_error(outline.request_id(), &RpcError::invalid_request(why.to_string())));
        } else {
            tracing::warn!(%why, kind = ?outline.kind, "a message was dropped");
        }
    }

    fn takes_batches(&self) -> bool {
        self.session.get().is_some_and(|session| session.version() == Version::V2025_03_26)
    }

    fn refuse_envelope(&self, fault: &EnvelopeFault) {
        tracing::debug!(%fault, "a message was refused");
        self.post(write_error(fault.id.as_ref(), &fault.rpc_error()));
    }

    async fn message(self: &Arc<Self>, message: Message, peek: Box<Peek>) {
        let answer = match self.admit(message, peek) {
            Admitted::Call(call) => self.start(call).await,
            Admitted::Answered(bytes) => Some(bytes),
            Admitted::Done => None,
        };
        if let Some(bytes) = answer {
            self.post(bytes);
        }
    }

    /// Takes a message up the ladder, and deals with everything that needs no handler.
    fn admit(self: &Arc<Self>, message: Message, peek: Box<Peek>) -> Admitted {
        let verdict = self.server.classify(&message, &peek, None, self.session.get());
        match message {
            Message::Request(request) => self.admit_request(request, peek, verdict),
            Message::Notification(note) => {
                self.notification(&note);
                Admitted::Done
            }
            Message::Response(response) => {
                if !self.session.get().is_some_and(|session| session.deliver(response)) {
                    tracing::debug!("a response that nobody waits for was dropped");
                }
                Admitted::Done
            }
        }
    }

    fn admit_request(&self, request: Request, peek: Box<Peek>, verdict: Verdict) -> Admitted {
        let seat = match (verdict, self.session.get()) {
            (Verdict::Reject(fault), _) => {
                return Admitted::Answered(write_error(Some(&request.id), &fault.rpc_error()));
            }
            (Verdict::Initialize, _) => return Admitted::Answered(self.initialize(&request)),
            (Verdict::Modern(version), _) => Seat::Modern(version),
            (Verdict::Legacy(_), Some(session)) => Seat::Legacy(session.clone()),
            (Verdict::Legacy(version), None) => Seat::Sessionless(version),
            (Verdict::Ping, _) => {
                let empty =
                    write_response(&request.id, |out| serde_json::to_writer(out, &EmptyResult::new()));
                return empty.map_or(Admitted::Done, Admitted::Answered);
            }
            (Verdict::Either | Verdict::Ignore, _) => return Admitted::Done,
        };
        match Call::over(self.queue.clone(), &self.server, request, peek, seat, self.extensions.clone()) {
            Ok(call) => Admitted::Call(call),
            Err(answered) => Admitted::Answered(answered.body),
        }
    }

    fn initialize(&self, request: &Request) -> Bytes {
        match Session::initialize(&self.server, request) {
            Ok((session, answered)) => {
                // The ladder has made sure that there is none yet, and only the reader sets it.
                let _ = self.session.set(session);
                answered.body
            }
            Err(answered) => answered.body,
        }
    }

    /// Runs a request if there is room, or lets it wait its turn, or gives the refusal.
    async fn start(self: &Arc<Self>, call: Call) -> Option<Bytes> {
        let admitted = if self.queue.queued_bytes() > self.server.limits().queued_bytes {
            Err((call, Refusal::SlowReader))
        } else {
            self.flights.admit(call)
        };
        match admitted {
            Ok(Some(call)) => self.first_poll(call).await,
            Ok(None) => {}
            Err((call, refusal)) => return Some(Answered::of(call.context(), Err(refusal.rpc_error())).body),
        }
        None
    }

    /// Most handlers are done at their first poll, and need no task.
    async fn first_poll(self: &Arc<Self>, mut call: Call) {
        match std::future::poll_fn(|task| Poll::Ready(Pin::new(&mut call).poll(task))).await {
            Poll::Ready(answered) => {
                let _ = call.cx.0.outbox.finish(answered.body);
            }
            Poll::Pending => {
                self.flights.enter(&call.cx);
                tokio::spawn(Arc::clone(self).fly(call));
            }
        }
    }

    /// Sees a request through to its answer.
    async fn fly(self: Arc<Self>, call: Call) {
        let cx = call.cx.clone();
        match self.outcome(call).await {
            Some(answer) => {
                // That the queue is closed means that the client is gone, which the writer reports.
                let _ = match goodbye(&cx) {
                    Some(goodbye) => cx.0.outbox.finish_with(answer, goodbye),
                    None => cx.0.outbox.finish(answer),
                };
            }
            None => cx.0.outbox.abandon(),
        }
        self.land(&cx);
    }

    /// The answer to a request; `None` when it was cancelled.
    async fn outcome(&self, mut call: Call) -> Option<Bytes> {
        let cx = call.cx.clone();
        let limit = self.server.limits().handler_time;
        tokio::select! {
            biased;
            () = cx.cancel().cancelled() => None,
            answered = &mut call => Some(answered.body),
            () = tokio::time::sleep(limit), if !cx.is_listener() => {
                tracing::warn!(request = ?cx, "a handler took too long and was stopped");
                let error = RpcError::internal(format!("the handler took longer than {} s", limit.as_secs_f64()));
                Some(Answered::of(&cx, Err(error)).body)
            }
        }
    }

    /// Takes a finished request out, and starts those that waited for its place.
    fn land(self: &Arc<Self>, cx: &Context) {
        self.flights.land(cx);
        while let Some(call) = self.flights.next_waiting() {
            tokio::spawn(Arc::clone(self).fly(call));
        }
    }

    fn notification(self: &Arc<Self>, note: &Notification) {
        match note.method.known() {
            Some(Method::Cancelled) => {
                let params = note.params.decode::<CancelledNotificationParams>();
                if let Some(id) = params.ok().and_then(|params| params.request_id) {
                    self.flights.cancel(&id);
                } else {
                    tracing::debug!("a cancellation without a usable requestId was dropped");
                }
            }
            Some(Method::Initialized) => {
                if let Some(session) = self.session.get()
                    && session.set_initialized()
                {
                    let changes = AbortOnDrop(tokio::spawn(session.forward_changes(&self.queue)));
                    self.helpers.lock().unwrap_or_else(PoisonError::into_inner).push(changes);
                }
            }
            _ => tracing::debug!(method = %note.method, "a notification was ignored"),
        }
    }

    fn post(&self, message: Bytes) {
        // A closed queue means that the client is gone, which the writer reports.
        let _ = self.queue.post(message);
    }
}

/// What became of a message.
enum Admitted {
    /// A request for a handler.
    Call(Call),
    /// A request that is answered already.
    Answered(Bytes),
    /// Nothing is left to do.
    Done,
}

fn ended(written: io::Result<()>) -> Result<(), ServeError> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(ServeError),
    }
}

/// On a pipe, the end of a subscription is said twice: by its result and by a notification after it, since the
/// specification asks for either in different places.
fn goodbye(cx: &Context) -> Option<Bytes> {
    if !cx.is_listener() {
        return None;
    }
    let params = CancelledNotificationParams::new().request_id(cx.request_id().clone());
    write_notification(&Method::Cancelled.into(), &params).ok()
}
