//! One request being served.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    task::{Context as Task, Poll},
};

use bytes::Bytes;
use toolwire_protocol::{
    Request, RpcError, Version,
    classify::handler_error_status,
    peek::{MetaPeek, Peek},
};
use toolwire_transport::FairQueue;

use super::{Session, rounds};
use crate::{
    Client, Context, Extensions, Reply, Server,
    context::Exchange,
    dispatch::{Shielded, dispatch, encode},
    extract::ProgressGuard,
    outbox::Outbox,
};

/// Where a request comes from, as far as the era matters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Seat {
    /// A modern request: everything about its client is in the request.
    Modern(Version),
    /// A request of a legacy client that has shaken hands.
    Legacy(Session),
    /// A legacy request without a session: nothing is known of its client.
    Sessionless(Version),
}

/// The answer to a request: its bytes, and the HTTP status for those who need one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answered {
    /// The HTTP status.
    pub status: u16,
    /// The JSON-RPC response.
    pub body: Bytes,
}

/// A request being served. As a future, it resolves to the answer; dropping it stops the handler.
///
/// What the handler sends before its answer is read with [`next_message`](Self::next_message), or goes to the
/// queue given to [`over`](Self::over).
#[must_use]
pub struct Call {
    pub(crate) cx: Context,
    work: Option<Shielded>,
    /// Whether the handler is run a second time when it asks, to see if it asks the same.
    replay_check: bool,
}

impl Call {
    /// Starts a request whose own messages are read from the call.
    ///
    /// # Errors
    /// The answer, when the request fails before it reaches a handler.
    #[expect(clippy::needless_pass_by_value, reason = "a seat is taken by one call")]
    pub fn new(
        server: &Server,
        request: Request,
        peek: Box<Peek>,
        seat: Seat,
        extensions: Extensions,
    ) -> Result<Self, Answered> {
        Self::start(server, request, peek, &seat, extensions, Outbox::own())
    }

    /// Starts a request whose messages go out by `queue`, together with those of others.
    ///
    /// # Errors
    /// The answer, when the request fails before it reaches a handler.
    #[expect(clippy::needless_pass_by_value, reason = "a seat is taken by one call")]
    pub fn over(
        queue: FairQueue,
        server: &Server,
        request: Request,
        peek: Box<Peek>,
        seat: Seat,
        extensions: Extensions,
    ) -> Result<Self, Answered> {
        Self::start(server, request, peek, &seat, extensions, Outbox::shared(queue))
    }

    fn start(
        server: &Server,
        request: Request,
        peek: Box<Peek>,
        seat: &Seat,
        extensions: Extensions,
        outbox: Outbox,
    ) -> Result<Self, Answered> {
        let (version, client) = match seat {
            Seat::Modern(version) => match check_log_level(peek.meta.as_ref()) {
                Ok(()) => (*version, OnceLock::new()),
                Err(error) => return Err(Answered::error(&request, *version, error)),
            },
            Seat::Legacy(session) => (session.version(), session.client().into()),
            Seat::Sessionless(version) => (*version, Client::of_request(*version, None).into()),
        };
        let Request { id, method, params, .. } = request;
        let cx = Context(Arc::new(Exchange {
            id,
            method,
            version,
            params,
            peek,
            client,
            outbox,
            cancel: OnceLock::new(),
            extensions,
            captures: OnceLock::new(),
            mime_type: OnceLock::new(),
            tool: OnceLock::new(),
            progress: ProgressGuard::default(),
            board: OnceLock::new(),
            asks: match seat {
                Seat::Legacy(session) => Some(session.asks()),
                Seat::Modern(_) | Seat::Sessionless(_) => None,
            },
            server: server.clone(),
        }));
        if let Seat::Legacy(session) = seat
            && let Some(result) = session.answer(&cx)
        {
            return Err(Answered::of(&cx, result));
        }
        let replay_check = cfg!(debug_assertions) && server.replay_check();
        Ok(Self { cx, work: None, replay_check })
    }

    /// The same request once more, as if it had just come in, with nowhere to send messages.
    pub(super) fn again(cx: &Context) -> Self {
        let first = &cx.0;
        let outbox = Outbox::own();
        outbox.abandon();
        let cx = Context(Arc::new(Exchange {
            id: first.id.clone(),
            method: first.method.clone(),
            version: first.version,
            params: first.params.clone(),
            peek: Peek::of(&first.params).into(),
            client: first.client.clone(),
            outbox,
            cancel: cx.cancel().clone().into(),
            extensions: first.extensions.clone(),
            captures: OnceLock::new(),
            mime_type: OnceLock::new(),
            tool: OnceLock::new(),
            progress: ProgressGuard::default(),
            board: Box::new(Mutex::new(cx.board().as_before())).into(),
            asks: None,
            server: first.server.clone(),
        }));
        let work = Some(Shielded(dispatch(cx.clone())));
        Self { cx, work, replay_check: false }
    }

    /// The request's context.
    pub fn context(&self) -> &Context {
        &self.cx
    }

    /// Waits for the next message that the handler sends before its answer.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no message.
    pub async fn next_message(&self) -> Option<Bytes> {
        self.cx.0.outbox.next().await
    }

    /// The same as [`next_message`](Self::next_message), without borrowing the call.
    pub fn take_message(&self) -> impl Future<Output = Option<Bytes>> + Send + use<> {
        let cx = self.cx.clone();
        async move { cx.0.outbox.next().await }
    }

    /// Whether a message is waiting to be taken.
    pub fn has_messages(&self) -> bool {
        self.cx.0.outbox.has_messages()
    }

    /// Closes the way for messages and gives those that are left: they go before the answer, and nothing
    /// comes after it.
    pub fn last_messages(&self) -> Vec<Bytes> {
        self.cx.0.outbox.drain()
    }

    /// Ends the call with an error of the transport's own, for instance because it took too long.
    pub fn fail(self, error: RpcError) -> Answered {
        self.cancel();
        Answered::of(&self.cx, Err(error))
    }

    /// Tells the handler's other tasks that the request is over.
    pub fn cancel(&self) {
        self.cx.cancel().cancel();
        self.cx.0.outbox.abandon();
    }

    fn poll_result(&mut self, task: &mut Task<'_>) -> Poll<Result<Reply, RpcError>> {
        loop {
            let cx = &self.cx;
            let work = self.work.get_or_insert_with(|| Shielded(rounds::begin(cx.clone())));
            let next = match Pin::new(work).poll(task) {
                Poll::Pending if !rounds::settled(cx, task) => return Poll::Pending,
                Poll::Pending if std::mem::take(&mut self.replay_check) => {
                    rounds::Next::Run(Box::pin(rounds::check_replay(cx.clone())))
                }
                Poll::Pending => rounds::Next::Done(rounds::suspend(cx)),
                Poll::Ready(Ok(Reply::NeedInput(need))) => rounds::ask(cx, need),
                Poll::Ready(result) => rounds::Next::Done(result),
            };
            match next {
                rounds::Next::Done(result) => {
                    // Dropped before the answer leaves: whatever the handler holds is released by then.
                    self.work = None;
                    return Poll::Ready(result);
                }
                rounds::Next::Run(answer) => self.work = Some(Shielded(answer)),
            }
        }
    }
}

impl Future for Call {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Answered> {
        self.poll_result(task).map(|result| Answered::of(&self.cx, result))
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.cx).finish()
    }
}

impl Answered {
    pub(crate) fn of(cx: &Context, result: Result<Reply, RpcError>) -> Self {
        let status = match &result {
            Ok(_) => 200,
            Err(error) => handler_error_status(cx.0.version.is_modern(), error.code),
        };
        Self { status, body: encode(cx, result) }
    }

    fn error(request: &Request, version: Version, error: RpcError) -> Self {
        let status = handler_error_status(version.is_modern(), error.code);
        let error = toolwire_protocol::codec::adapt_error(version, error);
        Self { status, body: toolwire_protocol::envelope::write_error(Some(&request.id), &error) }
    }
}

fn check_log_level(meta: Option<&MetaPeek>) -> Result<(), RpcError> {
    match meta.and_then(|meta| meta.log_level.as_deref()) {
        Some(text) if Client::log_level(text).is_none() => {
            Err(RpcError::invalid_params(format!("unknown log level {text:?}")))
        }
        _ => Ok(()),
    }
}
