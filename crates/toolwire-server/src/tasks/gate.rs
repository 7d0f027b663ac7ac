//! Where a handler waits until it is known whether its call becomes a task.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context as Task, Poll, Waker},
};

/// Between the extractors of a handler and its body: what is wrong with the arguments, and questions that come before
/// the body, are settled with the request, and everything behind it may go on without.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug)]
enum State {
    /// Nobody has come so far. Whoever drives the handler wants to know.
    Ahead(Option<Waker>),
    /// The handler waits.
    Reached(Waker),
    Open,
}

impl Default for State {
    fn default() -> Self {
        Self::Ahead(None)
    }
}

impl Gate {
    /// Waits until the gate is open.
    pub(crate) async fn pass(&self) {
        poll_fn(|task| {
            let mut state = self.lock();
            if matches!(*state, State::Open) {
                return Poll::Ready(());
            }
            let before = std::mem::replace(&mut *state, State::Reached(task.waker().clone()));
            drop(state);
            // The handler may be polled by somebody else than by whoever decides.
            if let State::Ahead(Some(driver)) = before {
                driver.wake();
            }
            Poll::Pending
        })
        .await;
    }

    /// Whether the handler waits here. If not, the task is woken when it does.
    pub(crate) fn is_reached(&self, task: &Task<'_>) -> bool {
        match &mut *self.lock() {
            State::Ahead(driver) => {
                *driver = Some(task.waker().clone());
                false
            }
            State::Reached(_) => true,
            State::Open => false,
        }
    }

    /// Lets the handler pass, now or when it comes.
    pub(crate) fn open(&self) {
        if let State::Reached(handler) = std::mem::replace(&mut *self.lock(), State::Open) {
            handler.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
