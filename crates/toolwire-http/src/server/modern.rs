//! A modern request: it stands alone, and closing its response cancels it.
//!
//! The handler runs inside the response. As long as it sends nothing and is quick, the answer is plain JSON
//! with a status of its own. With the first message, or when it takes long, the response becomes a stream,
//! and the rest of the work is done by whoever reads that. No task and no channel is needed: a client that
//! goes away drops the response, and with it the handler; a client that reads slowly slows the handler down.

use std::{
    collections::VecDeque,
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::{Response, StatusCode, request::Parts};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Sleep, sleep},
};
use toolwire_protocol::{Method, Request, RpcError, Version, peek::Peek};
use toolwire_server::engine::{Answered, Call, Seat};

use super::{
    Body,
    body::{IdleTimer, KEEP_ALIVE, event},
    edge,
    read::Accepts,
    response,
    service::{Shared, attach, refuse},
};

/// Starts a request that has passed the ladder, or says why not.
pub(crate) fn start(
    shared: &Shared,
    parts: Arc<Parts>,
    request: Request,
    peek: Box<Peek>,
    version: Version,
    accepts: Accepts,
) -> ControlFlow<Response<Body>, Responding> {
    let refused = |status, error: &RpcError| response::error(status, Some(&request.id), error);
    if request.method.known() == Some(Method::CallTool)
        && let Err(fault) = shared.server.check_param_headers(&peek, |name| edge::text(&parts.headers, name))
    {
        return ControlFlow::Break(refuse(&fault, Some(&request.id)));
    }
    let listens = request.method.known() == Some(Method::Listen);
    if listens && !accepts.events {
        let error = RpcError::invalid_request("Accept must allow text/event-stream to listen");
        return ControlFlow::Break(refused(StatusCode::NOT_ACCEPTABLE, &error));
    }
    let room = if listens { &shared.listeners } else { &shared.requests };
    let Ok(permit) = Arc::clone(room).try_acquire_owned() else {
        let error = RpcError::internal("the server is busy: too many requests are open; try again later");
        return ControlFlow::Break(refused(StatusCode::TOO_MANY_REQUESTS, &error));
    };
    match Call::new(&shared.server, request, peek, Seat::Modern(version), attach(parts)) {
        Ok(call) => {
            let handler_time = (!listens).then(|| shared.server.limits().handler_time);
            let running = Running::new(call, handler_time, shared.config.limits.keep_alive, permit);
            ControlFlow::Continue(Responding { running: Some(running), accepts })
        }
        Err(answered) => ControlFlow::Break(response::json(answered.status, answered.body)),
    }
}

/// A request on its way to its response. What happens first decides whether that is JSON or a stream.
pub(crate) struct Responding {
    /// `None` once there is a response.
    running: Option<Running>,
    accepts: Accepts,
}

impl Future for Responding {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Response<Body>> {
        let Accepts { json, events } = self.accepts;
        loop {
            let Some(running) = &mut self.running else { return Poll::Pending };
            let first = match ready!(running.poll_next(task)) {
                // A stream cannot have a status of its own any more, so an error that has one stays JSON.
                Next::Answer { before, answer }
                    if answer.status != 200 || !events || (json && before.is_empty()) =>
                {
                    self.running = None;
                    return Poll::Ready(response::json(answer.status, answer.body));
                }
                first => first,
            };
            // A client that takes no stream gets its answer alone.
            if events && let Some(running) = self.running.take() {
                return Poll::Ready(response::events(Events::new(running, first)));
            }
        }
    }
}

/// What a running request does next.
enum Next {
    /// It has sent a message.
    Message(Bytes),
    /// It has been silent for a while.
    Idle,
    /// It is done; some messages may still have to go before the answer.
    Answer { before: Vec<Bytes>, answer: Answered },
}

type Message = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// A request being served, with its clocks. Dropping it cancels the request.
struct Running {
    /// `None` once it is answered.
    call: Option<Call>,
    message: Option<Message>,
    /// Set at the first poll that is not the last one: most requests need no clocks.
    clocks: Option<Clocks>,
    handler_time: Option<Duration>,
    keep_alive: Duration,
    _permit: OwnedSemaphorePermit,
}

struct Clocks {
    idle: IdleTimer,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Running {
    fn new(
        call: Call,
        handler_time: Option<Duration>,
        keep_alive: Duration,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self { call: Some(call), message: None, clocks: None, handler_time, keep_alive, _permit: permit }
    }

    /// Goes on with the request. Must not be called again after the answer.
    fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<Next> {
        let Some(call) = &mut self.call else { return Poll::Pending };
        if let Poll::Ready(answer) = Pin::new(&mut *call).poll(task) {
            return self.end(|_| answer);
        }
        let message = self.message.get_or_insert_with(|| Box::pin(call.take_message()));
        if let Poll::Ready(message) = message.as_mut().poll(task) {
            self.message = None;
            if let Some(message) = message {
                if let Some(clocks) = &mut self.clocks {
                    clocks.idle.reset();
                }
                return Poll::Ready(Next::Message(message));
            }
        }
        let (handler_time, keep_alive) = (self.handler_time, self.keep_alive);
        let clocks = self.clocks.get_or_insert_with(|| Clocks {
            idle: IdleTimer::new(keep_alive),
            deadline: handler_time.map(|limit| Box::pin(sleep(limit))),
        });
        if let Some(deadline) = &mut clocks.deadline
            && deadline.as_mut().poll(task).is_ready()
        {
            return self.end(|call| too_slow(call, handler_time.unwrap_or_default()));
        }
        clocks.idle.poll_elapsed(task).map(|()| Next::Idle)
    }

    fn end(&mut self, answer: impl FnOnce(Call) -> Answered) -> Poll<Next> {
        self.message = None;
        let Some(call) = self.call.take() else { return Poll::Pending };
        let before = call.last_messages();
        Poll::Ready(Next::Answer { before, answer: answer(call) })
    }
}

fn too_slow(call: Call, limit: Duration) -> Answered {
    tracing::warn!(request = ?call.context(), "a handler took too long and was stopped");
    call.fail(RpcError::internal(format!("the handler took longer than {} s", limit.as_secs_f64())))
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            tracing::debug!(request = ?call.context(), "the client went away; its request is cancelled");
            call.cancel();
        }
    }
}

/// A running request as a stream of events: its messages, then its answer, then the end.
struct Events {
    running: Running,
    ready: VecDeque<Bytes>,
    answered: bool,
}

impl Events {
    fn new(running: Running, first: Next) -> Self {
        let mut events = Self { running, ready: VecDeque::new(), answered: false };
        events.put(first);
        events
    }

    fn put(&mut self, next: Next) {
        match next {
            Next::Message(message) => self.ready.push_back(event(None, &message)),
            Next::Idle => self.ready.push_back(KEEP_ALIVE),
            Next::Answer { before, answer } => {
                self.ready.extend(before.iter().map(|message| event(None, message)));
                self.ready.push_back(event(None, &answer.body));
                self.answered = true;
            }
        }
    }
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.answered {
                return Poll::Ready(None);
            }
            match self.running.poll_next(task) {
                Poll::Ready(next) => self.put(next),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
