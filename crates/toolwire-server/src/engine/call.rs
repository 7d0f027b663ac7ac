//! One request being served, from its admission to its answer.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Mutex,
    task::{Context as Task, Poll},
    time::Duration,
};

use bytes::Bytes;
use toolwire_protocol::{
    Request, RpcError, Version,
    classify::handler_error_status,
    peek::{MetaPeek, Peek},
};
use toolwire_transport::{
    FairQueue, Lane,
    ledger::{Charge, Ledger, LimitReached},
};

use super::{
    RequestOrigin,
    clock::{HandlerClock, Overdue},
    rounds, session,
};
use crate::{
    Caller, CallerId, Context, Extensions, Lack, Limits, Reply, Server,
    admission::{Place, busy},
    ask::Asking,
    context::RequestParts,
    dispatch::{Shielded, dispatch, encode},
    outbox::Outbox,
};

/// How a request came in.
#[derive(Debug)]
#[non_exhaustive]
pub struct Arrival<'a> {
    ledger: &'a Ledger,
    bytes: Weight,
    extensions: Extensions,
    way: Way,
    connection: Option<CallerId>,
}

/// Where what a request sends before its answer goes.
#[derive(Debug)]
enum Way {
    /// It is read from the call.
    Own,
    Queue(FairQueue),
    Lane(Lane),
}

#[derive(Debug)]
enum Weight {
    Charged(Charge),
    Uncharged(usize),
}

impl<'a> Arrival<'a> {
    /// A request of so many bytes, charged to `ledger` until it is answered.
    pub fn new(ledger: &'a Ledger, bytes: usize, extensions: Extensions) -> Self {
        Self { ledger, bytes: Weight::Uncharged(bytes), extensions, way: Way::Own, connection: None }
    }

    /// A request whose bytes were charged to `ledger` while they were read.
    pub fn charged(ledger: &'a Ledger, bytes: Charge, extensions: Extensions) -> Self {
        Self { ledger, bytes: Weight::Charged(bytes), extensions, way: Way::Own, connection: None }
    }

    /// What the request sends before its answer goes out by `queue`, together with what others send. Otherwise it
    /// is read from the call.
    #[must_use]
    pub fn over(mut self, queue: FairQueue) -> Self {
        self.way = Way::Queue(queue);
        self
    }

    /// The request came by this connection, as others did.
    #[must_use]
    pub(crate) fn by(mut self, connection: CallerId) -> Self {
        self.connection = Some(connection);
        self
    }

    /// What the request sends before its answer goes out by `lane`, which it shares with the other requests of its
    /// batch. Whoever collects the answers finishes it.
    #[must_use]
    pub(crate) fn in_lane(mut self, lane: Lane) -> Self {
        self.way = Way::Lane(lane);
        self
    }
}

/// The answer to a request: its bytes, and the HTTP status for those who need one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The JSON-RPC response.
    pub body: Bytes,
    /// What the caller was missing, where that is why it was refused: HTTP tells it by a challenge, unless something
    /// else has been sent already.
    pub lack: Option<Box<Lack>>,
}

/// How a request has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transport must handle every case")]
pub enum Outcome {
    /// With an answer.
    Answered(EncodedResponse),
    /// The client has cancelled it, and waits for no answer.
    Cancelled,
}

impl Outcome {
    /// The bytes of the answer, if there is one.
    pub fn into_body(self) -> Option<Bytes> {
        match self {
            Self::Answered(answer) => Some(answer.body),
            Self::Cancelled => None,
        }
    }
}

/// A request being served. As a future, it resolves to its [`Outcome`]; dropping it stops the handler.
///
/// It has a place on the ledgers from its start to its answer, and ends by itself when it is cancelled or the handler
/// takes longer than `handler_timeout`. It must be polled for that, so a call that does not end at its first poll
/// belongs into a task, never into something that a client can hold up, like the body of a response.
#[must_use]
pub struct Call {
    cx: Context,
    work: Option<Shielded>,
    /// `None` once it is answered.
    place: Option<Place>,
    /// Started at the first poll that is not the last one: most requests need no clock.
    clock: Option<HandlerClock>,
    timeout: Option<Duration>,
    /// Whether the handler is run a second time when it asks, to see if it asks the same.
    replay_check: bool,
}

impl Call {
    /// Takes a request in.
    ///
    /// # Errors
    /// The answer, when a limit is met or the request fails before it reaches a handler.
    #[expect(clippy::needless_pass_by_value, reason = "an origin is taken by one call")]
    pub fn new(
        server: &Server,
        request: Request,
        peek: Box<Peek>,
        origin: RequestOrigin,
        arrival: Arrival<'_>,
    ) -> Result<Self, EncodedResponse> {
        let (version, known_caller) = match &origin {
            RequestOrigin::Modern(version) => match check_meta(peek.meta.as_ref(), server.limits()) {
                Ok(()) => (*version, None),
                Err(error) => return Err(EncodedResponse::error(&request, *version, error)),
            },
            RequestOrigin::Session(session) => (session.version(), Some(session.caller())),
            RequestOrigin::Sessionless(version) => {
                (*version, Some(Caller::of_request(*version, None, arrival.connection)))
            }
        };
        if let Err(lack) = server.admit(&request, &peek, arrival.extensions.get()) {
            return Err(EncodedResponse::lacking(&request, version, lack));
        }
        let listener = request.method.known().is_some_and(|method| method.info().open_ended);
        let place = match arrival.bytes {
            Weight::Charged(bytes) => Place::with_bytes(arrival.ledger, listener, bytes),
            Weight::Uncharged(bytes) => Place::take(arrival.ledger, listener, bytes),
        };
        let place = place.map_err(|reached| EncodedResponse::busy(&request, version, &reached))?;
        let Request { id, method, params, .. } = request;
        let cx = RequestParts {
            asking: Asking::of(&origin, version, &method),
            id,
            method,
            version,
            params,
            peek,
            connection: arrival.connection,
            known_caller,
            outbox: match arrival.way {
                Way::Own => Outbox::own(arrival.ledger.clone()),
                Way::Queue(queue) => Outbox::shared(queue),
                Way::Lane(lane) => Outbox::in_lane(lane),
            },
            extensions: arrival.extensions,
            ledger: arrival.ledger.clone(),
            server: server.clone(),
        }
        .into_context();
        server.observers().asked(&cx);
        if let Some(result) = session::answer(&origin, &cx) {
            return Err(EncodedResponse::of(&cx, result));
        }
        let replay_check = cfg!(debug_assertions) && server.replay_check();
        let timeout = (!listener).then(|| server.limits().handler_timeout);
        Ok(Self { cx, work: None, place: Some(place), clock: None, timeout, replay_check })
    }

    /// The same request once more, as if it had just come in, with nowhere to send messages. Part of the call that it
    /// repeats: it has no place and no clock of its own.
    pub(super) fn again(cx: &Context) -> impl Future<Output = Context> + Send + use<> {
        let first = &cx.0;
        let outbox = Outbox::own(first.ledger.clone());
        outbox.abandon();
        let again = RequestParts {
            id: first.id.clone(),
            method: first.method.clone(),
            version: first.version,
            params: first.params.clone(),
            peek: Peek::of(&first.params).into(),
            connection: first.connection,
            known_caller: first.known_caller.clone(),
            outbox,
            extensions: first.extensions.clone(),
            asking: first.asking.clone(),
            ledger: first.ledger.clone(),
            server: first.server.clone(),
        }
        .into_context();
        // It was made just now, so nothing of this is set.
        let _ = again.0.cancel.set(cx.cancel().clone());
        let _ = again.0.journal.set(Box::new(Mutex::new(cx.journal().as_before())));
        let cx = again;
        let work = Shielded(dispatch(cx.clone()));
        async move {
            // Only its footprint matters, not how it ends.
            let _ = rounds::until_settled(&cx, work).await;
            cx
        }
    }

    /// The request's context.
    pub fn context(&self) -> &Context {
        &self.cx
    }

    /// What the handler sends before its answer, to be read while the call is driven elsewhere. Only for calls that
    /// are not [`over`](Arrival::over) a queue.
    pub fn messages(&self) -> Messages {
        Messages::of(&self.cx.0.outbox)
    }

    /// Whether the handler has sent something. If it has not, the task is woken when it does.
    pub fn poll_sent(&self, task: &Task<'_>) -> Poll<()> {
        self.cx.0.outbox.poll_opened(task)
    }

    /// Closes the way for messages and gives those that are left: they go before the answer, and nothing
    /// comes after it.
    pub fn last_messages(&self) -> Vec<Bytes> {
        self.cx.0.outbox.drain()
    }

    /// Closes the way for messages; those that are left can still be read from [`messages`](Self::messages).
    pub fn close_messages(&self) {
        self.cx.0.outbox.close_own();
    }

    /// Drives the call to its end; the answer becomes the last of its messages.
    pub async fn run(mut self) {
        let outcome = (&mut self).await;
        self.reply(outcome);
    }

    /// Sends the answer behind the messages, by the same way, and nothing after it.
    pub(crate) fn reply(&self, outcome: Outcome) {
        match outcome {
            // That the way is closed means that the client is gone, which its transport notices.
            Outcome::Answered(answer) => {
                let _ = self.cx.0.outbox.finish(answer.body);
            }
            Outcome::Cancelled => self.cx.0.outbox.abandon(),
        }
    }

    /// Ends the call before it has begun.
    pub fn refuse(mut self, error: RpcError) -> EncodedResponse {
        self.end();
        EncodedResponse::of(&self.cx, Err(error))
    }

    fn poll_result(&mut self, task: &mut Task<'_>) -> Poll<Result<Reply, RpcError>> {
        loop {
            let cx = &self.cx;
            let work = self.work.get_or_insert_with(|| Shielded(rounds::begin(cx.clone())));
            let next = match Pin::new(work).poll(task) {
                Poll::Pending if !rounds::settled(cx, task) => return Poll::Pending,
                Poll::Pending if std::mem::take(&mut self.replay_check) => {
                    rounds::Next::Run(Box::pin(rounds::check_replay(cx.clone(), None)))
                }
                Poll::Pending => rounds::Next::Done(rounds::suspend(cx)),
                Poll::Ready(Ok(asked @ Reply::InputRequired(_)))
                    if std::mem::take(&mut self.replay_check) =>
                {
                    rounds::Next::Run(Box::pin(rounds::check_replay(cx.clone(), Some(asked))))
                }
                Poll::Ready(Ok(Reply::NeedInput(need))) => rounds::ask(cx, need),
                Poll::Ready(result) => rounds::Next::Done(result),
            };
            match next {
                rounds::Next::Done(result) => return Poll::Ready(result),
                rounds::Next::Run(answer) => self.work = Some(Shielded(answer)),
            }
        }
    }

    /// Why a request that goes on has to end all the same.
    fn poll_stopped(&mut self, task: &mut Task<'_>) -> Poll<Outcome> {
        let cx = &self.cx;
        if cx.cancel().poll_cancelled(task).is_ready() && cx.is_request_cancelled() {
            return Poll::Ready(Outcome::Cancelled);
        }
        let Some(limit) = self.timeout else { return Poll::Pending };
        let clock = self.clock.get_or_insert_with(|| HandlerClock::start(cx, limit));
        let overdue = std::task::ready!(clock.poll_overdue(cx, task));
        tracing::warn!(request = ?cx, ?overdue, "a handler took too long and was stopped");
        cx.cancel_request();
        let error = match overdue {
            Overdue::Handler => {
                format!("the handler took longer than {} s (limit handler_timeout)", limit.as_secs_f64())
            }
            Overdue::Drain => {
                "the server was shut down while the handler ran (limit drain_timeout)".to_owned()
            }
        };
        Poll::Ready(Outcome::Answered(EncodedResponse::of(cx, Err(RpcError::internal(error)))))
    }

    /// Gives back what the request holds before its answer leaves: the handler and its place.
    fn end(&mut self) {
        self.work = None;
        self.clock = None;
        self.place = None;
    }
}

impl Future for Call {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Outcome> {
        let outcome = if self.cx.is_request_cancelled() {
            Outcome::Cancelled
        } else if let Poll::Ready(result) = self.poll_result(task) {
            // Dropped first: whatever the handler holds is released when the answer is written.
            self.work = None;
            Outcome::Answered(EncodedResponse::of(&self.cx, result))
        } else {
            std::task::ready!(self.poll_stopped(task))
        };
        self.end();
        Poll::Ready(outcome)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.place.is_some() {
            tracing::debug!(request = ?self.cx, "nobody waits for a request any more; it is cancelled");
            // Tells tasks that the handler has started.
            self.cx.cancel_request();
            self.cx.0.outbox.abandon();
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.cx).finish()
    }
}

/// What a request sends before its answer and, if the call is [run](Call::run), the answer; then the end.
#[derive(Debug)]
pub struct Messages(FairQueue);

impl Messages {
    pub(super) fn of(outbox: &Outbox) -> Self {
        Self(outbox.own_queue())
    }

    /// The next message; `None` after the last. Only the last one who polled is woken.
    pub fn poll_next(&self, task: &mut Task<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_next(task)
    }

    /// The same to be awaited.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no message.
    pub async fn next(&self) -> Option<Bytes> {
        self.0.next().await
    }
}

impl EncodedResponse {
    /// An answer that is not about what the caller is missing.
    pub(crate) fn new(status: u16, body: Bytes) -> Self {
        Self { status, body, lack: None }
    }

    pub(crate) fn of(cx: &Context, result: Result<Reply, RpcError>) -> Self {
        let status = match &result {
            Ok(_) => 200,
            Err(error) => handler_error_status(cx.0.version, error.code),
        };
        let lack = result.as_ref().err().and_then(|error| cx.lack_behind(error));
        let status = lack.as_ref().map_or(status, |lack| lack.status());
        Self { status, body: encode(cx, result), lack }
    }

    /// The answer to a request whose caller is missing something.
    pub(crate) fn lacking(request: &Request, version: Version, lack: Lack) -> Self {
        tracing::debug!(%lack, method = %request.method, "a request was not admitted");
        let answer = Self::error(request, version, lack.rpc_error());
        Self { status: lack.status(), lack: Some(Box::new(lack)), ..answer }
    }

    fn error(request: &Request, version: Version, error: RpcError) -> Self {
        let status = handler_error_status(version, error.code);
        let error = toolwire_protocol::codec::adapt_error(version, error);
        Self::new(status, toolwire_protocol::envelope::write_error(Some(&request.id), &error))
    }

    pub(crate) fn busy(request: &Request, version: Version, reached: &LimitReached) -> Self {
        tracing::warn!(%reached, "a request was refused");
        Self { status: 429, ..Self::error(request, version, busy(reached)) }
    }
}

/// What a modern client says of itself must be readable and short.
fn check_meta(meta: Option<&MetaPeek>, limits: &Limits) -> Result<(), RpcError> {
    let Some(meta) = meta else { return Ok(()) };
    if let Some(text) = meta.log_level.as_deref()
        && Caller::read_log_level(text).is_none()
    {
        return Err(RpcError::invalid_params(format!("unknown log level {text:?}")));
    }
    let bytes = |member: &Option<Bytes>| member.as_ref().map_or(0, Bytes::len);
    check_client_facts(bytes(&meta.client_info) + bytes(&meta.client_capabilities), limits)
}

/// A client describes itself in a few hundred bytes; what it sends beyond the limit would be kept for nothing.
pub(super) fn check_client_facts(bytes: usize, limits: &Limits) -> Result<(), RpcError> {
    let limit = limits.client_facts_bytes;
    if bytes <= limit {
        return Ok(());
    }
    Err(RpcError::invalid_params(format!(
        "the client's name and capabilities take {bytes} bytes, more than the limit client_facts_bytes allows ({limit})"
    )))
}
