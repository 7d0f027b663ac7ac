//! Serving one client over a transport that carries whole messages both ways: pipes, sockets, memory.
//!
//! One task reads, one writes. The reader never waits for a handler: what is not answered at its first poll
//! goes on in a task of its own. Each request has its own lane in the outgoing queue, so that its messages
//! stay in order and no request holds up another.

mod batch;
mod flights;

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
    classify::{LegacyView, Verdict, classify},
    envelope::{EnvelopeFault, FaultKind, write_error},
    peek::{MetaPeek, Peek},
    wire::{CancelledNotificationParams, LoggingLevel},
};
use toolwire_transport::{Duplex, FairQueue, Source, fair, write_loop};

use crate::{
    Client, Context, Extensions, Reply, Server,
    cancel::Cancel,
    context::Exchange,
    dispatch::{Shielded, dispatch, encode},
    extract::ProgressGuard,
    legacy::LegacyPeer,
    outbox::Outbox,
};
use flights::{Flights, Refusal};

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
        let limits = self.limits();
        let queue_limits = fair::Limits { queue_bytes: limits.queued_bytes, ..fair::Limits::default() };
        let connection = Arc::new(Connection {
            server: self.clone(),
            queue: FairQueue::with_limits(queue_limits),
            peer: OnceLock::new(),
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
    queue: FairQueue,
    peer: OnceLock<Arc<LegacyPeer>>,
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
                self.queue.room().await;
            }
            let received = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                received = source.receive() => received,
            };
            match received {
                Ok(Some(bytes)) => self.handle(&bytes).await,
                Ok(None) => return Ok(()),
                Err(error) if error.is_fatal() => return Err(ServeError(io::Error::other(error))),
                Err(error) => self.post(write_error(None, &RpcError::invalid_request(error.to_string()))),
            }
        }
    }

    /// Lets running requests finish, within their time.
    async fn drain(&self) {
        if self.server.shutting_down().is_cancelled() {
            // Subscriptions end with a result of their own.
            let _ = timeout(self.server.limits().drain_time, self.flights.all_landed()).await;
        } else {
            self.flights.cancel_listeners();
            let _ = timeout(self.server.limits().drain_time, self.flights.all_landed()).await;
        }
        self.flights.cancel_all();
    }

    async fn handle(self: &Arc<Self>, bytes: &Bytes) {
        match Message::parse(bytes) {
            Ok(message) => self.message(message).await,
            Err(fault) if fault.kind == FaultKind::Batch && self.takes_batches() => {
                batch::handle(self, bytes);
            }
            Err(fault) => self.refuse_envelope(&fault),
        }
    }

    fn takes_batches(&self) -> bool {
        self.peer.get().is_some_and(|peer| peer.version == Version::V2025_03_26)
    }

    fn refuse_envelope(&self, fault: &EnvelopeFault) {
        tracing::debug!(%fault, "a message was refused");
        self.post(write_error(fault.id.as_ref(), &fault.rpc_error()));
    }

    async fn message(self: &Arc<Self>, message: Message) {
        let answer = match self.admit(message) {
            Admitted::Request(cx) => self.start(cx).await,
            Admitted::Answered(bytes) => Some(bytes),
            Admitted::Done => None,
        };
        if let Some(bytes) = answer {
            self.post(bytes);
        }
    }

    /// Takes a message up the ladder, and deals with everything that needs no handler.
    fn admit(self: &Arc<Self>, message: Message) -> Admitted {
        let peek = match &message {
            Message::Request(request) => Peek::of(&request.params),
            _ => Peek::default(),
        };
        let served = &self.server.catalog().served;
        let verdict = classify(&message, &peek, None, served, self.legacy_view(served));
        match message {
            Message::Request(request) => self.admit_request(request, peek, verdict),
            Message::Notification(note) => {
                self.notification(&note);
                Admitted::Done
            }
            Message::Response(_) => {
                tracing::debug!("a response that nobody waits for was dropped");
                Admitted::Done
            }
        }
    }

    fn admit_request(&self, request: Request, peek: Peek, verdict: Verdict) -> Admitted {
        let refuse = |error: &RpcError| Admitted::Answered(write_error(Some(&request.id), error));
        let (version, client) = match verdict {
            Verdict::Reject(fault) => return refuse(&fault.rpc_error()),
            Verdict::Initialize => return Admitted::Answered(self.initialize(request)),
            Verdict::Modern(version) => match modern_client(version, peek.meta.as_ref()) {
                Ok(client) => (version, client),
                Err(error) => return refuse(&error),
            },
            Verdict::Legacy(version) => {
                (version, self.peer.get().map_or_else(|| anonymous(version), |peer| peer.client.clone()))
            }
            Verdict::Ping => {
                let cx =
                    self.context(request, peek, Version::LATEST_LEGACY, anonymous(Version::LATEST_LEGACY));
                return Admitted::Answered(encode(&cx, Ok(Reply::Empty)));
            }
            Verdict::Either | Verdict::Ignore => return Admitted::Done,
        };
        let cx = self.context(request, peek, version, client);
        if let (Some(peer), Some(method), false) = (self.peer.get(), cx.method().known(), version.is_modern())
            && let Some(result) = peer.answer(method, cx.params(), self.server.limits().subscriptions)
        {
            return Admitted::Answered(encode(&cx, result));
        }
        Admitted::Request(cx)
    }

    fn legacy_view(&self, served: &toolwire_protocol::classify::Served) -> LegacyView {
        match self.peer.get() {
            Some(peer) => LegacyView::Peer { version: peer.version, initialized: peer.is_initialized() },
            None if served.latest_legacy().is_none() => LegacyView::Off,
            None => LegacyView::NoPeer,
        }
    }

    fn initialize(&self, request: Request) -> Bytes {
        let (peer, reply) = match LegacyPeer::initialize(&self.server, &request.params) {
            Ok(agreed) => agreed,
            Err(error) => return write_error(Some(&request.id), &error),
        };
        let cx = self.context(request, Peek::default(), peer.version, peer.client.clone());
        // The ladder has made sure that there is no peer yet, and only the reader sets it.
        let _ = self.peer.set(Arc::new(peer));
        encode(&cx, Ok(reply))
    }

    fn context(&self, request: Request, peek: Peek, version: Version, client: Client) -> Context {
        let Request { id, method, params, .. } = request;
        Context(Arc::new(Exchange {
            id,
            method,
            version,
            params,
            peek,
            client,
            outbox: Outbox::new(self.queue.clone()),
            cancel: Cancel::default(),
            extensions: Extensions::default(),
            captures: OnceLock::new(),
            mime_type: OnceLock::new(),
            tool: OnceLock::new(),
            progress: ProgressGuard::default(),
            server: self.server.clone(),
        }))
    }

    /// Runs a request if there is room, or lets it wait its turn, or gives the refusal.
    async fn start(self: &Arc<Self>, cx: Context) -> Option<Bytes> {
        if self.queue.queued_bytes() > self.server.limits().queued_bytes {
            return Some(encode(&cx, Err(busy("the client does not read its answers"))));
        }
        match self.flights.admit(&cx) {
            Ok(true) => self.first_poll(cx).await,
            Ok(false) => {}
            Err(refusal) => return Some(encode(&cx, Err(refusal.rpc_error()))),
        }
        None
    }

    /// Most handlers are done at their first poll, and need no task.
    async fn first_poll(self: &Arc<Self>, cx: Context) {
        let mut work = Shielded(dispatch(cx.clone()));
        let polled = std::future::poll_fn(|task| Poll::Ready(Pin::new(&mut work).poll(task))).await;
        match polled {
            Poll::Ready(result) => {
                let answer = encode(&cx, result);
                let _ = cx.0.outbox.finish(answer);
                self.land(&cx);
            }
            Poll::Pending => {
                tokio::spawn(Arc::clone(self).fly(cx, work));
            }
        }
    }

    /// Sees a request through to its answer.
    async fn fly(self: Arc<Self>, cx: Context, work: Shielded) {
        match self.outcome(&cx, work).await {
            Some(result) => {
                let answer = encode(&cx, result);
                let listener = cx.method().known() == Some(Method::Listen);
                let _ = cx.0.outbox.finish(answer);
                if listener {
                    self.announce_end(&cx);
                }
            }
            None => cx.0.outbox.abandon(),
        }
        self.land(&cx);
    }

    /// The result of a request; `None` when it was cancelled.
    async fn outcome(&self, cx: &Context, mut work: Shielded) -> Option<Result<Reply, RpcError>> {
        if cx.method().known() == Some(Method::Listen) {
            return tokio::select! {
                biased;
                () = cx.0.cancel.cancelled() => None,
                result = &mut work => Some(result),
            };
        }
        let limit = self.server.limits().handler_time;
        tokio::select! {
            biased;
            () = cx.0.cancel.cancelled() => None,
            result = &mut work => Some(result),
            () = tokio::time::sleep(limit) => {
                tracing::warn!(request = ?cx, "a handler took too long and was stopped");
                Some(Err(RpcError::internal(format!("the handler took longer than {} s", limit.as_secs_f64()))))
            }
        }
    }

    /// On a pipe, the end of a subscription is said twice: by its result and by a notification, since the
    /// specification asks for either in different places.
    fn announce_end(&self, cx: &Context) {
        let params = CancelledNotificationParams::new().request_id(cx.request_id().clone());
        if let Ok(message) =
            toolwire_protocol::envelope::write_notification(&Method::Cancelled.into(), &params)
        {
            self.post(message);
        }
    }

    /// Takes a finished request out, and starts those that waited for its place.
    fn land(self: &Arc<Self>, cx: &Context) {
        self.flights.land(cx);
        while let Some(cx) = self.flights.next_waiting() {
            let work = Shielded(dispatch(cx.clone()));
            tokio::spawn(Arc::clone(self).fly(cx, work));
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
                if let Some(peer) = self.peer.get()
                    && peer.set_initialized()
                {
                    let changes = AbortOnDrop(tokio::spawn(peer.forward_changes(&self.queue)));
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
    Request(Context),
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

fn busy(why: &str) -> RpcError {
    RpcError::internal(format!("the server is busy: {why}; try again later"))
}

fn anonymous(version: Version) -> Client {
    Client::from_request(version, None, None, None)
}

fn modern_client(version: Version, meta: Option<&MetaPeek>) -> Result<Client, RpcError> {
    let Some(meta) = meta else { return Ok(anonymous(version)) };
    let level = meta.log_level.as_deref().map(|text| {
        serde_json::from_value::<LoggingLevel>(text.into())
            .map_err(|_| RpcError::invalid_params(format!("unknown log level {text:?}")))
    });
    Ok(Client::from_request(
        version,
        meta.client_capabilities.clone(),
        meta.client_info.clone(),
        level.transpose()?,
    ))
}

impl Refusal {
    fn rpc_error(&self) -> RpcError {
        match self {
            Self::IdInUse => {
                RpcError::invalid_request("a request with this id is still running; use a new id")
            }
            Self::TooManyRequests => busy("too many requests are running and waiting"),
            Self::TooManyListeners => busy("too many subscriptions are open on this connection"),
        }
    }
}
