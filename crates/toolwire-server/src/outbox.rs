//! What a request sends before its answer, in order, and then the answer itself.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use toolwire_protocol::{Method, envelope::write_notification};
use toolwire_transport::{
    FairQueue, Lane,
    fair::{Closed, Refused},
};

/// The outgoing lane of one request. It is opened by the first notification, so that a request without
/// any costs nothing, and closed by the answer, so that nothing follows it.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: FairQueue,
    lane: Mutex<LaneState>,
}

#[derive(Debug)]
enum LaneState {
    Unopened,
    Open { lane: Lane, dropped: usize },
    Closed,
}

impl Outbox {
    pub(crate) fn new(queue: FairQueue) -> Self {
        Self { queue, lane: Mutex::new(LaneState::Unopened) }
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
        let Ok(message) = write_notification(&method.into(), params) else { return false };
        let Some(lane) = self.open() else { return false };
        lane.send(message).await.is_ok()
    }

    fn open(&self) -> Option<Lane> {
        let mut state = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, LaneState::Unopened) {
            *state = LaneState::Open { lane: self.queue.lane(), dropped: 0 };
        }
        match &*state {
            LaneState::Open { lane, .. } => Some(lane.clone()),
            _ => None,
        }
    }

    fn push<P: Serialize>(
        &self,
        method: Method,
        params: &P,
        push: impl FnOnce(&Lane, Bytes) -> Result<(), Refused>,
    ) -> bool {
        let Ok(message) = write_notification(&method.into(), params) else { return false };
        let mut state = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, LaneState::Unopened) {
            *state = LaneState::Open { lane: self.queue.lane(), dropped: 0 };
        }
        let LaneState::Open { lane, dropped } = &mut *state else { return false };
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

    /// Sends the answer. Nothing can be sent after it.
    pub(crate) fn finish(&self, answer: Bytes) -> Result<(), Closed> {
        match self.close() {
            LaneState::Open { lane, .. } => lane.finish(answer),
            LaneState::Unopened => self.queue.post(answer),
            LaneState::Closed => Ok(()),
        }
    }

    /// Ends the request without an answer, as cancellation does.
    pub(crate) fn abandon(&self) {
        self.close();
    }

    fn close(&self) -> LaneState {
        let mut state = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, LaneState::Closed)
    }
}
