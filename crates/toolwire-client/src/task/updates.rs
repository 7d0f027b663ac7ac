//! The stream of states of a task.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;
use toolwire_transport::BoxFuture;

use super::{follow::Follow, handle::TaskHandle, state::TaskState};
use crate::{client::CallOutcome, error::Error, lock::lock};

/// How a task stands, again and again until its end; from [`TaskHandle::updates`].
///
/// A state that was not picked up makes way for a newer one. The task is only looked at while somebody polls this.
pub struct Updates {
    driver: Option<BoxFuture<'static, Result<CallOutcome, Error>>>,
    latest: Arc<Latest>,
    error: Option<Error>,
}

/// The newest state that nobody has picked up.
#[derive(Debug, Default)]
pub(super) struct Latest(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    state: Option<TaskState>,
    /// The last one, whether it was picked up or not.
    last: Option<TaskState>,
    waker: Option<Waker>,
}

impl Latest {
    /// Puts a state there, if it differs from the last one.
    pub(super) fn put(&self, state: &TaskState) {
        let mut slot = lock(&self.0);
        if slot.last.as_ref() == Some(state) {
            return;
        }
        slot.last = Some(state.clone());
        slot.state = Some(state.clone());
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Updates {
    pub(super) fn new(task: TaskHandle) -> Self {
        let latest = Arc::new(Latest::default());
        if let Some(state) = task.last_state() {
            latest.put(&state);
        }
        let publish = Arc::clone(&latest);
        let driver = Box::pin(async move {
            Follow::new(&task).leaving_questions().publishing(|state| publish.put(state)).run().await
        });
        Self { driver: Some(driver), latest, error: None }
    }

    /// Waits for the next state; `None` after the last one, or when the task cannot be followed any more.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no state.
    pub async fn next(&mut self) -> Option<TaskState> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Why there are no more states, if it is not that the task has come to its end. An error of the task itself is
    /// here, too.
    pub const fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<TaskState>> {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(ended) = driver.as_mut().poll(cx)
        {
            self.driver = None;
            self.error = ended.err();
        }
        let mut slot = lock(&self.latest.0);
        if let Some(state) = slot.state.take() {
            return Poll::Ready(Some(state));
        }
        if self.driver.is_none() {
            return Poll::Ready(None);
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Stream for Updates {
    type Item = TaskState;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TaskState>> {
        self.poll(cx)
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").field("error", &self.error).finish_non_exhaustive()
    }
}
