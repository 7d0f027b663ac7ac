//! The queue in front of a sink: many lanes, one writer, everybody in turn.
//!
//! Each request has a [`Lane`] of its own. Inside a lane the order is kept, so a response never overtakes
//! its own progress. Between lanes the writer takes one message from each in turn, so a request with a lot
//! to say does not keep the others waiting.
//!
//! Notifications are bounded, per lane and in bytes, and their senders are told or wait. The last message
//! of a request always finds room: an answer that was worked for is never lost, unless a ledger has no room for it and the
//! owner of the queue has something shorter to send in its place. Whoever admits new requests
//! asks [`FairQueue::room`] first, and so keeps that part bounded too.

mod lane;
mod state;

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::sync::Notify;

pub use lane::{Closed, Lane, Refused};

use crate::{
    ledger::{Charge, LimitReached},
    lock::lock,
};
use state::State;

/// How many messages may wait in one lane, its last one not counted.
pub const LANE_MESSAGES: usize = 64;

/// How many bytes may wait in the whole queue before notifications are refused: 8 MiB.
///
/// The message that crosses the line is still accepted, so that one of any size can pass.
pub const QUEUE_BYTES: usize = 8 * 1024 * 1024;

/// The length up to which a last message is queued whatever the ledger says: 1 KiB, as much as the message that would take its
/// place.
pub(crate) const LIGHT_BYTES: usize = 1024;

/// Makes the short message that is queued in the place of one for which a ledger has no room.
pub(crate) type Instead = fn(&Bytes, &LimitReached) -> Bytes;

/// The bounds of a [`FairQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many messages may wait in one lane, its last one not counted; [`LANE_MESSAGES`] by default.
    pub lane_messages: usize,
    /// How many bytes may wait in the whole queue; [`QUEUE_BYTES`] by default.
    pub queue_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lane_messages: LANE_MESSAGES, queue_bytes: QUEUE_BYTES }
    }
}

/// Outgoing messages of many requests, handed to one writer in turn.
///
/// Clones share the queue; only one of them may be the writer that calls [`next`](Self::next).
///
/// ```
/// use bytes::Bytes;
/// use toolwire_transport::FairQueue;
///
/// let queue = FairQueue::new();
/// let talkative = queue.lane();
/// talkative.push(Bytes::from_static(b"a1")).unwrap();
/// talkative.push(Bytes::from_static(b"a2")).unwrap();
/// queue.post(Bytes::from_static(b"b")).unwrap();
///
/// assert_eq!(queue.try_next().unwrap(), "a1");
/// assert_eq!(queue.try_next().unwrap(), "b");
/// assert_eq!(queue.try_next().unwrap(), "a2");
/// ```
#[derive(Clone, Debug, Default)]
pub struct FairQueue {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Tells the senders that something was written, or that the queue was closed.
    room: Notify,
}

impl FairQueue {
    /// An empty queue with the default [`Limits`].
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty queue with limits of its own.
    pub fn with_limits(limits: Limits) -> Self {
        Self::build(limits, None, None)
    }

    /// The same, with its bytes on a ledger: `charge` grows and shrinks with what waits. Answers are queued in any
    /// case; notifications are refused while the ledger is over one of its limits, except that an empty queue takes
    /// one: whoever waits is woken by what is written from the own queue, never by what others let go of.
    pub fn charged(limits: Limits, charge: Charge) -> Self {
        Self::build(limits, Some(charge), None)
    }

    /// Like [`charged`](Self::charged), but an answer of more than 1 KiB for which the ledger has no room is not queued: what
    /// `instead` makes of it takes its place.
    #[doc(hidden)]
    pub fn charged_or(limits: Limits, charge: Charge, instead: fn(&Bytes, &LimitReached) -> Bytes) -> Self {
        Self::build(limits, Some(charge), Some(instead))
    }

    fn build(limits: Limits, charge: Option<Charge>, instead: Option<Instead>) -> Self {
        let shared = Shared { state: Mutex::new(State::new(limits, charge, instead)), ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Opens a lane.
    pub fn lane(&self) -> Lane {
        let slot = lock(&self.shared.state).open_lane();
        Lane::new(Arc::clone(&self.shared), slot)
    }

    /// Queues one message as a lane of its own, whatever room there is in the queue: an answer without notifications.
    pub fn post(&self, message: Bytes) -> Result<(), Closed> {
        let writer = lock(&self.shared.state).post(message)?;
        wake(writer);
        Ok(())
    }

    /// Waits for the next message; `None` once the queue is closed and empty.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it is ready has taken no message.
    pub async fn next(&self) -> Option<Bytes> {
        std::future::poll_fn(|task| self.poll_next(task)).await
    }

    /// The same for those who poll. Only the last one who did is woken.
    pub fn poll_next(&self, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = lock(&self.shared.state);
        let Some(message) = state.take() else {
            if state.is_closed() {
                return Poll::Ready(None);
            }
            state.wait(task.waker());
            return Poll::Pending;
        };
        let wanted = state.room_was_wanted();
        drop(state);
        self.shared.wake_senders(wanted);
        Poll::Ready(Some(message))
    }

    /// The next message, if one is waiting.
    pub fn try_next(&self) -> Option<Bytes> {
        let mut state = lock(&self.shared.state);
        let message = state.take()?;
        let wanted = state.room_was_wanted();
        drop(state);
        self.shared.wake_senders(wanted);
        Some(message)
    }

    /// Waits until fewer bytes are queued than the limit, or the queue is closed.
    ///
    /// An engine awaits this before it admits another request, because answers are queued in any case. It
    /// must go on reading its peer's responses meanwhile: two sides that both stop reading would wait for
    /// each other for ever.
    pub async fn room(&self) {
        self.shared.wait_for_room(|state| (state.has_room() || state.is_closed()).then_some(())).await;
    }

    /// How many bytes are waiting to be written.
    pub fn queued_bytes(&self) -> usize {
        lock(&self.shared.state).bytes()
    }

    /// Whether the queue takes no more messages.
    pub fn is_closed(&self) -> bool {
        lock(&self.shared.state).is_closed()
    }

    /// Refuses further messages; those that wait are still written.
    pub fn close(&self) {
        let mut state = lock(&self.shared.state);
        state.close();
        self.shared.wake_all(state.take_writer());
    }

    /// Refuses further messages and drops those that wait: the peer is gone.
    pub fn abort(&self) {
        let mut state = lock(&self.shared.state);
        state.abort();
        self.shared.wake_all(state.take_writer());
    }
}

impl Shared {
    fn wake_senders(&self, wake: bool) {
        if wake {
            self.room.notify_waiters();
        }
    }

    fn wake_all(&self, writer: Option<Waker>) {
        wake(writer);
        self.room.notify_waiters();
    }

    /// Tries `attempt` until it gives something, each time after the writer has made progress.
    async fn wait_for_room<T>(&self, mut attempt: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut written = std::pin::pin!(self.room.notified());
            // Listen before looking, or a write between the two would go unnoticed.
            written.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if let Some(value) = attempt(&mut state) {
                    return value;
                }
                state.want_room();
            }
            written.await;
        }
    }
}

fn wake(writer: Option<Waker>) {
    if let Some(writer) = writer {
        writer.wake();
    }
}

#[cfg(test)]
mod tests;
