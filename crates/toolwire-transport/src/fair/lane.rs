//! The place in a fair queue that belongs to one request.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;

use super::state::State;
use super::{Shared, wake};
use crate::ledger::Charge;
use crate::lock::lock;

/// The outgoing messages of one request, in order.
///
/// Clones share the lane. When the last one is dropped, what was queued is still written.
#[derive(Debug)]
pub struct Lane {
    shared: Arc<Shared>,
    slot: usize,
}

impl Lane {
    pub(super) const fn new(shared: Arc<Shared>, slot: usize) -> Self {
        Self { shared, slot }
    }

    /// Queues a message if there is room for it now.
    pub fn push(&self, message: Bytes) -> Result<(), Refused> {
        let writer = lock(&self.shared.state).push(self.slot, None, message)?;
        wake(writer);
        Ok(())
    }

    /// Queues a message, waiting for room.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it is ready has queued nothing.
    pub async fn send(&self, message: Bytes) -> Result<(), Closed> {
        let mut message = message;
        let queued = self.shared.wait_for_room(|state| {
            match state.push(self.slot, None, std::mem::take(&mut message)) {
                Ok(writer) => Some(Ok(writer)),
                Err(Refused::Closed(refused)) => Some(Err(Closed(refused))),
                Err(Refused::Full(refused)) => {
                    message = refused;
                    None
                }
            }
        });
        wake(queued.await?);
        Ok(())
    }

    /// Queues a message or, when the lane is full, puts it in the place of the newest one with the same `key`.
    ///
    /// For progress: a slow reader gets the latest state, not every step towards it.
    pub fn replace(&self, key: u64, message: Bytes) -> Result<(), Refused> {
        let writer = lock(&self.shared.state).replace(self.slot, key, message)?;
        wake(writer);
        Ok(())
    }

    /// Queues the last message, whatever room there is, and refuses any further one.
    pub fn finish(&self, message: Bytes) -> Result<(), Closed> {
        self.finish_by(|state| state.finish(self.slot, message, None))
    }

    /// Queues the answer and, right behind it, a last notification, whatever room there is, and refuses any further
    /// message.
    pub fn finish_with(&self, message: Bytes, last: Bytes) -> Result<(), Closed> {
        self.finish_by(|state| state.finish(self.slot, message, Some(last)))
    }

    /// Queues the last message, whose bytes `charge` has room for already, and refuses any further one.
    #[doc(hidden)]
    pub fn finish_charged(&self, message: Bytes, charge: Charge) -> Result<(), Closed> {
        self.finish_by(|state| state.finish_charged(self.slot, message, charge))
    }

    fn finish_by(
        &self,
        finish: impl FnOnce(&mut State) -> Result<Option<Waker>, Closed>,
    ) -> Result<(), Closed> {
        let mut state = lock(&self.shared.state);
        let writer = finish(&mut state)?;
        // Those who wait for room in this lane wait in vain.
        let wanted = state.room_was_wanted();
        drop(state);
        wake(writer);
        self.shared.wake_senders(wanted);
        Ok(())
    }
}

impl Clone for Lane {
    fn clone(&self) -> Self {
        lock(&self.shared.state).add_handle(self.slot);
        Self { shared: Arc::clone(&self.shared), slot: self.slot }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        lock(&self.shared.state).drop_handle(self.slot);
    }
}

/// Why a message was not queued; it is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The lane or the queue holds as much as it may.
    Full(Bytes),
    /// The lane has had its last message, or the connection is over.
    Closed(Bytes),
}

/// The lane has had its last message, or the connection is over; the message is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed(pub Bytes);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("too many messages are waiting to be written"),
            Self::Closed(message) => Closed(message.clone()).fmt(f),
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request is finished or its connection closed")
    }
}

impl std::error::Error for Refused {}
impl std::error::Error for Closed {}
