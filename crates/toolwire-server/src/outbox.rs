//! What a request sends before its answer, in order.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context as Task, Poll, Waker},
};

use bytes::Bytes;
use serde::Serialize;
use toolwire_protocol::{Method, envelope::write_notification};
use toolwire_transport::{
    FairQueue, Lane, Ledger,
    fair::{Closed, Limits, Refused},
    ledger::Account,
};

use crate::admission::no_room;

/// The way back of one request. It is opened by the first message, so that a request without any costs
/// nothing, and closed by the answer, so that nothing follows it.
#[derive(Debug)]
pub(crate) struct Outbox(Mutex<State>);

#[derive(Debug)]
enum State {
    /// Nothing sent yet. Messages will go to a lane of the connection's queue, or, without one, to a queue of
    /// the request's own, whose reader waits to be told of the first.
    Unopened {
        way: Way,
        reader: Option<Waker>,
    },
    /// `own` is there to be read from if the queue is the request's own.
    Open {
        lane: Lane,
        own: Option<FairQueue>,
        dropped: usize,
    },
    Closed,
}

/// Where messages will go.
#[derive(Debug)]
enum Way {
    Shared(FairQueue),
    /// To a lane together with those of the other requests of a batch, in front of their answers.
    Lane(Lane),
    /// To a queue of the request's own, whose bytes are charged here.
    Own(Ledger),
}

impl Outbox {
    /// Messages go out by `queue`, together with those of other requests.
    pub(crate) fn shared(queue: FairQueue) -> Self {
        Self(Mutex::new(State::Unopened { way: Way::Shared(queue), reader: None }))
    }

    /// Messages go out by `lane`, which somebody else finishes.
    pub(crate) fn in_lane(lane: Lane) -> Self {
        Self(Mutex::new(State::Unopened { way: Way::Lane(lane), reader: None }))
    }

    /// Messages are taken from here, with [`own_queue`](Self::own_queue).
    pub(crate) fn own(ledger: Ledger) -> Self {
        Self(Mutex::new(State::Unopened { way: Way::Own(ledger), reader: None }))
    }

    /// Sends a notification of which only the newest matters. Says whether it was taken.
    pub(crate) fn replaceable<P: Serialize>(&self, method: Method, params: &P) -> bool {
        self.push(method, params, |lane, message| lane.replace(method as u64, message))
    }

    /// Sends a notification that may get lost when the reader is slow. Says whether it was taken.
    pub(crate) fn droppable<P: Serialize>(&self, method: Method, params: &P) -> bool {
        self.push(method, params, Lane::push)
    }

    /// Sends a notification that must not get lost, waiting for the reader. Says whether it was taken.
    pub(crate) async fn send<P: Serialize + Sync>(&self, method: Method, params: &P) -> bool {
        match write_notification(&method.into(), params) {
            Ok(message) => self.send_message(message).await,
            Err(_) => false,
        }
    }

    /// Sends any message if there is room for it now. Says whether it was taken.
    pub(crate) fn push_message(&self, message: Bytes) -> bool {
        match &*self.open() {
            State::Open { lane, .. } => lane.push(message).is_ok(),
            _ => false,
        }
    }

    /// Sends any message, waiting for the reader. Says whether it was taken.
    pub(crate) async fn send_message(&self, message: Bytes) -> bool {
        let lane = match &*self.open() {
            State::Open { lane, .. } => lane.clone(),
            _ => return false,
        };
        lane.send(message).await.is_ok()
    }

    fn push<P: Serialize>(
        &self,
        method: Method,
        params: &P,
        push: impl FnOnce(&Lane, Bytes) -> Result<(), Refused>,
    ) -> bool {
        let Ok(message) = write_notification(&method.into(), params) else { return false };
        let mut state = self.open();
        let State::Open { lane, dropped, .. } = &mut *state else { return false };
        match push(lane, message) {
            Ok(()) => true,
            Err(Refused::Full(_)) => {
                *dropped += 1;
                tracing::debug!(%method, dropped, "the reader is slow; a notification was dropped");
                false
            }
            Err(Refused::Closed(_)) => false,
        }
    }

    /// Opens the lane if it is not open yet. A closed one stays closed.
    fn open(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if let State::Unopened { way, reader } = &mut *state {
            let (lane, own) = match way {
                Way::Shared(queue) => (queue.lane(), None),
                Way::Lane(lane) => (lane.clone(), None),
                Way::Own(ledger) => {
                    let charge = ledger.empty_charge(Account::AnswerBytes);
                    let queue = FairQueue::charged_or(Limits::default(), charge, no_room);
                    (queue.lane(), Some(queue))
                }
            };
            let reader = reader.take();
            *state = State::Open { lane, own, dropped: 0 };
            if let Some(reader) = reader {
                reader.wake();
            }
        }
        state
    }

    /// The request's own queue, to be read by somebody else. It ends when the outbox is closed.
    pub(crate) fn own_queue(&self) -> FairQueue {
        if let State::Open { own: Some(queue), .. } = &*self.open() {
            return queue.clone();
        }
        let closed = FairQueue::new();
        closed.close();
        closed
    }

    /// Whether anything was sent. If not, the task is woken when something is.
    pub(crate) fn poll_opened(&self, task: &Task<'_>) -> Poll<()> {
        match &mut *self.lock() {
            State::Unopened { reader, .. } => {
                *reader = Some(task.waker().clone());
                Poll::Pending
            }
            State::Open { .. } | State::Closed => Poll::Ready(()),
        }
    }

    /// Sends the answer by the same way. Nothing can be sent after it.
    pub(crate) fn finish(&self, answer: Bytes) -> Result<(), Closed> {
        match self.close() {
            State::Open { lane, own, .. } => {
                let finished = lane.finish(answer);
                if let Some(queue) = own {
                    queue.close();
                }
                finished
            }
            State::Unopened { way: Way::Shared(queue), .. } => queue.post(answer),
            State::Unopened { .. } | State::Closed => Ok(()),
        }
    }

    /// Sends the answer and, right behind it, one more message that belongs to it.
    pub(crate) fn finish_with(&self, answer: Bytes, last: Bytes) -> Result<(), Closed> {
        drop(self.open());
        match self.close() {
            State::Open { lane, .. } => lane.finish_with(answer, last),
            State::Unopened { .. } | State::Closed => Ok(()),
        }
    }

    /// Ends the request without an answer, as cancellation does.
    pub(crate) fn abandon(&self) {
        if let State::Open { own: Some(queue), .. } = self.close() {
            queue.abort();
        }
    }

    /// Closes the request's own queue; what is in it can still be read.
    pub(crate) fn close_own(&self) {
        if let State::Open { own: Some(queue), .. } = self.close() {
            queue.close();
        }
    }

    /// Closes the request's own queue and gives what is left in it, to be written before the answer.
    pub(crate) fn drain(&self) -> Vec<Bytes> {
        match self.close() {
            State::Open { own: Some(queue), .. } => {
                queue.close();
                std::iter::from_fn(|| queue.try_next()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn close(&self) -> State {
        std::mem::replace(&mut *self.lock(), State::Closed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
