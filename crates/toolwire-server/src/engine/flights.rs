//! The requests of one client that are running or waiting, with their limits.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use toolwire_protocol::{RequestId, RpcError};

use super::Call;
use crate::{Context, Limits, cancel::Cancel};

/// Why a request cannot be let in.
pub(crate) enum Refusal {
    IdInUse,
    TooManyRequests,
    TooManyListeners,
    SlowReader,
}

impl Refusal {
    pub(crate) fn rpc_error(&self) -> RpcError {
        let why = match self {
            Self::IdInUse => {
                return RpcError::invalid_request("a request with this id is still running; use a new id");
            }
            Self::TooManyRequests => "too many requests are running and waiting",
            Self::TooManyListeners => "too many subscriptions are open on this connection",
            Self::SlowReader => "the client does not read its answers",
        };
        RpcError::internal(format!("the server is busy: {why}; try again later"))
    }
}

#[derive(Debug)]
pub(crate) struct Flights {
    state: Mutex<State>,
    landed: Notify,
    running_limit: usize,
    waiting_limit: usize,
    listener_limit: usize,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<RequestId, Flight>,
    waiting: VecDeque<Call>,
    listeners: usize,
}

#[derive(Debug)]
struct Flight {
    cancel: Cancel,
    listener: bool,
}

impl Flights {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            landed: Notify::new(),
            running_limit: limits.requests_in_flight,
            waiting_limit: limits.queued_requests,
            listener_limit: limits.subscriptions,
        }
    }

    /// Lets a request in. Gives it back to be polled now, or keeps it while it has to wait.
    ///
    /// One that is given back is not entered yet: most are done at their first poll, and nobody can ask for them
    /// meanwhile. Those that are not have to [`enter`](Self::enter).
    pub(crate) fn admit(&self, call: Call) -> Result<Option<Call>, (Call, Refusal)> {
        let mut state = self.lock();
        let cx = &call.cx;
        if state.running.contains_key(cx.request_id()) || state.position(cx.request_id()).is_some() {
            return Err((call, Refusal::IdInUse));
        }
        if cx.is_listener() {
            if state.listeners >= self.listener_limit {
                return Err((call, Refusal::TooManyListeners));
            }
        } else if state.running.len() - state.listeners >= self.running_limit {
            if state.waiting.len() >= self.waiting_limit {
                return Err((call, Refusal::TooManyRequests));
            }
            state.waiting.push_back(call);
            return Ok(None);
        }
        Ok(Some(call))
    }

    /// Enters a request that was let in and goes on.
    pub(crate) fn enter(&self, cx: &Context) {
        self.lock().run(cx);
    }

    /// Lets a request in that may not wait: one of a batch, which is bounded by itself.
    pub(crate) fn admit_now(&self, cx: &Context) -> Result<(), Refusal> {
        let mut state = self.lock();
        if state.running.contains_key(cx.request_id()) || state.position(cx.request_id()).is_some() {
            return Err(Refusal::IdInUse);
        }
        state.run(cx);
        Ok(())
    }

    /// Takes a request out.
    pub(crate) fn land(&self, cx: &Context) {
        let mut state = self.lock();
        if let Some(flight) = state.running.remove(cx.request_id())
            && flight.listener
        {
            state.listeners -= 1;
        }
        if state.running.is_empty() && state.waiting.is_empty() {
            self.landed.notify_waiters();
        }
    }

    /// The next waiting request, if there is room for it.
    pub(crate) fn next_waiting(&self) -> Option<Call> {
        let mut state = self.lock();
        if state.running.len() - state.listeners >= self.running_limit {
            return None;
        }
        let call = state.waiting.pop_front()?;
        state.run(&call.cx);
        Some(call)
    }

    /// Cancels a request, wherever it is. An unknown id may simply have been too late.
    pub(crate) fn cancel(&self, id: &RequestId) {
        let mut state = self.lock();
        if let Some(flight) = state.running.get(id) {
            flight.cancel.cancel();
        } else if let Some(position) = state.position(id)
            && let Some(call) = state.waiting.remove(position)
        {
            call.cancel();
        }
    }

    pub(crate) fn cancel_listeners(&self) {
        for flight in self.lock().running.values().filter(|flight| flight.listener) {
            flight.cancel.cancel();
        }
    }

    pub(crate) fn cancel_all(&self) {
        let mut state = self.lock();
        state.waiting.clear();
        for flight in state.running.values() {
            flight.cancel.cancel();
        }
    }

    /// Resolves when nothing runs or waits any more.
    pub(crate) async fn all_landed(&self) {
        loop {
            let landed = self.landed.notified();
            tokio::pin!(landed);
            landed.as_mut().enable();
            {
                let state = self.lock();
                if state.running.is_empty() && state.waiting.is_empty() {
                    return;
                }
            }
            landed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn run(&mut self, cx: &Context) {
        let flight = Flight { cancel: cx.cancel().clone(), listener: cx.is_listener() };
        self.listeners += usize::from(flight.listener);
        self.running.insert(cx.request_id().clone(), flight);
    }

    fn position(&self, id: &RequestId) -> Option<usize> {
        self.waiting.iter().position(|call| call.cx.request_id() == id)
    }
}
