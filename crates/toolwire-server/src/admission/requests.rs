//! The requests of one connection or session that run or wait: by id, so that they can be cancelled.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use toolwire_protocol::{RequestId, RpcError};

use crate::{Context, Limits, engine::Call};

/// Why a request cannot be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The connection or session is over.
    Closed,
    /// A request with the same id is still running.
    IdInUse,
    /// As many requests run, and wait, as may.
    TooManyRequests {
        /// The name of the limit.
        limit: &'static str,
    },
    /// As many subscriptions are open as may be.
    TooManyListeners,
    /// The client does not read its answers.
    SlowReader,
}

impl Refusal {
    /// What the client is told.
    pub fn rpc_error(self) -> RpcError {
        let (why, limit) = match self {
            Self::Closed => return RpcError::invalid_request("the session is over; start a new one"),
            Self::IdInUse => {
                return RpcError::invalid_request("a request with this id is still running; use a new id");
            }
            Self::TooManyRequests { limit } => ("too many requests are running and waiting", limit),
            Self::TooManyListeners => ("too many subscriptions are open on this connection", "subscriptions"),
            Self::SlowReader => ("the client does not read its answers", "queued_bytes"),
        };
        RpcError::internal(format!("the server is busy: {why} (limit {limit}); try again later"))
            .with_data(&serde_json::json!({ "limit": limit }))
    }
}

/// The requests of one connection or session that run or wait.
#[derive(Debug)]
pub struct Requests {
    state: Mutex<State>,
    finished: Notify,
    running_limit: usize,
    waiting_limit: usize,
    listener_limit: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Searched from one end to the other: there is mostly one, and hashing an id takes longer than comparing dozens.
    running: Vec<Context>,
    waiting: VecDeque<Waiting>,
    listeners: usize,
    closed: bool,
}

/// A request that waits for its turn, and what is to be done with its answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) call: Call,
    pub(crate) reply_to: crate::duplex::ReplyTo,
}

/// What becomes of a request that wants to be let in.
pub(crate) enum Admitted {
    /// It may run.
    Now(Waiting),
    /// It waits its turn.
    Queued,
    /// It cannot be let in.
    Refused(Waiting, Refusal),
}

impl Requests {
    /// For a connection on which requests wait their turn when too many run.
    pub(crate) fn queued(limits: &Limits) -> Self {
        Self { waiting_limit: limits.queued_requests, ..Self::new(limits) }
    }

    /// For a session, which refuses requests when too many run: its client can send them again.
    pub fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            finished: Notify::new(),
            running_limit: limits.requests_in_flight,
            waiting_limit: 0,
            listener_limit: limits.subscriptions,
        }
    }

    /// Lets a request in, or says that it has to wait or why it cannot.
    ///
    /// One that is let in is not entered yet: on a pipe most are done at their first poll, and nobody can ask for
    /// them meanwhile. Those that are not have to be [entered](Self::enter).
    pub(crate) fn admit(&self, waiting: Waiting) -> Admitted {
        let mut state = self.lock();
        let cx = waiting.call.context();
        if state.closed {
            return Admitted::Refused(waiting, Refusal::Closed);
        }
        if state.find(cx.request_id()).is_some() || state.position(cx.request_id()).is_some() {
            return Admitted::Refused(waiting, Refusal::IdInUse);
        }
        if cx.is_listener() {
            if state.listeners >= self.listener_limit {
                return Admitted::Refused(waiting, Refusal::TooManyListeners);
            }
        } else if state.running.len() - state.listeners >= self.running_limit {
            if state.waiting.len() >= self.waiting_limit {
                return Admitted::Refused(waiting, self.too_many());
            }
            state.waiting.push_back(waiting);
            return Admitted::Queued;
        }
        Admitted::Now(waiting)
    }

    /// Enters a request that was let in and goes on.
    pub(crate) fn enter(&self, cx: &Context) {
        self.lock().run(cx);
    }

    /// Lets a request in and enters it in one step, where several may come in at the same moment.
    ///
    /// # Errors
    /// Why it cannot be let in.
    pub fn admit_and_enter(&self, cx: &Context) -> Result<(), Refusal> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refusal::Closed);
        }
        if state.find(cx.request_id()).is_some() {
            return Err(Refusal::IdInUse);
        }
        if state.running.len() >= self.running_limit {
            return Err(self.too_many());
        }
        state.run(cx);
        Ok(())
    }

    fn too_many(&self) -> Refusal {
        let limit = if self.waiting_limit > 0 { "queued_requests" } else { "requests_in_flight" };
        Refusal::TooManyRequests { limit }
    }

    /// Takes a request out that was entered.
    pub fn finish(&self, id: &RequestId) {
        let mut state = self.lock();
        let finished = state.find(id).map(|place| state.running.swap_remove(place));
        state.listeners -= usize::from(finished.as_ref().is_some_and(Context::is_listener));
        let idle = state.is_idle();
        drop(state);
        if idle {
            self.finished.notify_waiters();
        }
    }

    /// The next request that waits, if there is room for it. It is entered.
    pub(crate) fn next_waiting(&self) -> Option<Waiting> {
        let mut state = self.lock();
        if state.running.len() - state.listeners >= self.running_limit {
            return None;
        }
        let waiting = state.waiting.pop_front()?;
        state.run(waiting.call.context());
        Some(waiting)
    }

    /// Cancels a request, wherever it is, and gives it if it was waiting. An unknown id may simply have been too late.
    pub(crate) fn cancel_waiting(&self, id: &RequestId) -> Option<Waiting> {
        let mut state = self.lock();
        if let Some(place) = state.find(id) {
            state.running[place].cancel_request();
            return None;
        }
        let position = state.position(id)?;
        state.waiting.remove(position)
    }

    /// Cancels a request that runs. An unknown id may simply have been too late.
    pub fn cancel(&self, id: &RequestId) {
        drop(self.cancel_waiting(id));
    }

    pub(crate) fn cancel_listeners(&self) {
        for listener in self.lock().running.iter().filter(|running| running.is_listener()) {
            listener.cancel_request();
        }
    }

    /// Cancels everything, and lets nothing in any more.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        for running in &state.running {
            running.cancel_request();
        }
        drop(state);
        drop(waiting);
    }

    /// Whether nothing runs or waits.
    pub fn is_idle(&self) -> bool {
        self.lock().is_idle()
    }

    /// Resolves when nothing runs or waits any more.
    pub(crate) async fn all_finished(&self) {
        loop {
            let finished = self.finished.notified();
            tokio::pin!(finished);
            finished.as_mut().enable();
            if self.is_idle() {
                return;
            }
            finished.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn run(&mut self, cx: &Context) {
        self.listeners += usize::from(cx.is_listener());
        self.running.push(cx.clone());
    }

    fn find(&self, id: &RequestId) -> Option<usize> {
        self.running.iter().position(|running| running.request_id() == id)
    }

    fn position(&self, id: &RequestId) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.call.context().request_id() == id)
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }
}
