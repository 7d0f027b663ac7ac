//! What the lock of a fair queue protects; no waiting happens here.

use std::{collections::VecDeque, task::Waker};

use bytes::Bytes;

use super::lane::{Closed, Refused};
use super::{Instead, LIGHT_BYTES, Limits};
use crate::ledger::Charge;

#[derive(Debug, Default)]
pub(super) struct State {
    limits: Limits,
    /// Who writes next: each lane with messages is in here exactly once.
    turns: VecDeque<Turn>,
    lanes: Vec<Slot>,
    free: Vec<usize>,
    bytes: usize,
    /// The same bytes where others can see them.
    charge: Option<Charge>,
    /// Makes what is queued in the place of a last message for which the ledger has no room.
    instead: Option<Instead>,
    room_wanted: bool,
    closed: bool,
    /// Whoever waits for the next message.
    writer: Option<Waker>,
}

#[derive(Debug)]
enum Turn {
    Single(Bytes),
    Lane(usize),
}

/// A place for a lane; it is free for another once no handle and no message is left.
#[derive(Debug, Default)]
struct Slot {
    queue: VecDeque<Entry>,
    handles: usize,
    finished: bool,
}

#[derive(Debug)]
struct Entry {
    key: Option<u64>,
    message: Bytes,
}

/// Every `usize` that comes in is the slot of a living [`super::Lane`] and therefore in range.
impl State {
    pub(super) fn new(limits: Limits, charge: Option<Charge>, instead: Option<Instead>) -> Self {
        Self { limits, charge, instead, ..Self::default() }
    }

    fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
        if let Some(charge) = &mut self.charge {
            charge.grow_unchecked(bytes);
        }
    }

    /// Charges a last message, or what takes its place if there is no room for it, and returns that.
    fn add_last(&mut self, message: Bytes) -> Bytes {
        if message.len() > LIGHT_BYTES
            && let (Some(charge), Some(instead)) = (&mut self.charge, self.instead)
        {
            match charge.grow(message.len()) {
                Ok(()) => {
                    self.bytes += message.len();
                    return message;
                }
                Err(reached) => {
                    let message = instead(&message, &reached);
                    self.add_bytes(message.len());
                    return message;
                }
            }
        }
        self.add_bytes(message.len());
        message
    }

    fn subtract_bytes(&mut self, bytes: usize) {
        self.bytes -= bytes;
        if let Some(charge) = &mut self.charge {
            charge.shrink(bytes);
        }
    }

    pub(super) fn open_lane(&mut self) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.lanes.push(Slot::default());
            self.lanes.len() - 1
        });
        self.lanes[index].handles = 1;
        self.lanes[index].finished = false;
        index
    }

    pub(super) fn add_handle(&mut self, lane: usize) {
        self.lanes[lane].handles += 1;
    }

    pub(super) fn drop_handle(&mut self, lane: usize) {
        self.lanes[lane].handles -= 1;
        self.release_if_done(lane);
    }

    fn release_if_done(&mut self, lane: usize) {
        let slot = &self.lanes[lane];
        if slot.handles == 0 && slot.queue.is_empty() {
            self.free.push(lane);
        }
    }

    /// Queues a message if there is room, and gives the writer if it has to be woken.
    pub(super) fn push(
        &mut self,
        lane: usize,
        key: Option<u64>,
        message: Bytes,
    ) -> Result<Option<Waker>, Refused> {
        if self.closed || self.lanes[lane].finished {
            return Err(Refused::Closed(message));
        }
        if !self.has_room() || self.lanes[lane].queue.len() >= self.limits.lane_messages {
            return Err(Refused::Full(message));
        }
        self.add_bytes(message.len());
        Ok(self.append(lane, key, message))
    }

    /// Queues a message or, where there is no room, puts it in the place of the newest one with the same key.
    pub(super) fn replace(
        &mut self,
        lane: usize,
        key: u64,
        message: Bytes,
    ) -> Result<Option<Waker>, Refused> {
        let message = match self.push(lane, Some(key), message) {
            Err(Refused::Full(message)) => message,
            other => return other,
        };
        let Some(entry) = self.lanes[lane].queue.iter_mut().rev().find(|entry| entry.key == Some(key)) else {
            return Err(Refused::Full(message));
        };
        let (before, now) = (entry.message.len(), message.len());
        entry.message = message;
        self.subtract_bytes(before);
        self.add_bytes(now);
        Ok(None)
    }

    /// Queues the answer of a lane and, right behind it, a notification, in whose place nothing else is ever queued: an
    /// error would answer a request that nobody has made.
    pub(super) fn finish(
        &mut self,
        lane: usize,
        answer: Bytes,
        notification: Option<Bytes>,
    ) -> Result<Option<Waker>, Closed> {
        if self.closed || self.lanes[lane].finished {
            return Err(Closed(answer));
        }
        self.lanes[lane].finished = true;
        let answer = self.add_last(answer);
        let mut writer = self.append(lane, None, answer);
        if let Some(notification) = notification {
            self.add_bytes(notification.len());
            writer = self.append(lane, None, notification).or(writer);
        }
        Ok(writer)
    }

    pub(super) fn finish_charged(
        &mut self,
        lane: usize,
        message: Bytes,
        charge: Charge,
    ) -> Result<Option<Waker>, Closed> {
        if self.closed || self.lanes[lane].finished {
            return Err(Closed(message));
        }
        self.lanes[lane].finished = true;
        self.bytes += message.len();
        if let Some(own) = &mut self.charge {
            own.take_over(charge, message.len());
        }
        Ok(self.append(lane, None, message))
    }

    pub(super) fn post(&mut self, message: Bytes) -> Result<Option<Waker>, Closed> {
        if self.closed {
            return Err(Closed(message));
        }
        let message = self.add_last(message);
        Ok(self.take_a_turn(Turn::Single(message)))
    }

    /// Queues a message whose bytes are counted already.
    fn append(&mut self, lane: usize, key: Option<u64>, message: Bytes) -> Option<Waker> {
        let queue = &mut self.lanes[lane].queue;
        queue.push_back(Entry { key, message });
        if queue.len() == 1 { self.take_a_turn(Turn::Lane(lane)) } else { None }
    }

    fn take_a_turn(&mut self, turn: Turn) -> Option<Waker> {
        self.turns.push_back(turn);
        self.writer.take()
    }

    /// Whoever waits for the next message, to be woken.
    pub(super) fn take_writer(&mut self) -> Option<Waker> {
        self.writer.take()
    }

    pub(super) fn wait(&mut self, writer: &Waker) {
        match &mut self.writer {
            Some(waiting) => waiting.clone_from(writer),
            None => self.writer = Some(writer.clone()),
        }
    }

    pub(super) fn take(&mut self) -> Option<Bytes> {
        let message = match self.turns.pop_front()? {
            Turn::Single(message) => message,
            Turn::Lane(lane) => {
                let entry = self.lanes[lane].queue.pop_front()?;
                if self.lanes[lane].queue.is_empty() {
                    self.release_if_done(lane);
                } else {
                    self.turns.push_back(Turn::Lane(lane));
                }
                entry.message
            }
        };
        self.subtract_bytes(message.len());
        Some(message)
    }

    /// A queue that is empty always has room for one message, whatever others hold: nothing is written from it that
    /// could wake those who wait.
    pub(super) fn has_room(&self) -> bool {
        if self.bytes == 0 {
            return true;
        }
        self.bytes < self.limits.queue_bytes
            && !self.charge.as_ref().is_some_and(|charge| charge.ledger().is_over())
    }

    pub(super) fn want_room(&mut self) {
        self.room_wanted = true;
    }

    /// Whether somebody waits for room; they are then to be woken and will say so again if need be.
    pub(super) fn room_was_wanted(&mut self) -> bool {
        std::mem::take(&mut self.room_wanted)
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn abort(&mut self) {
        self.closed = true;
        while self.take().is_some() {}
    }
}
