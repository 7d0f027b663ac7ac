//! Logs in memory.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex},
};

use bytes::Bytes;

use super::{Clock, MemoryLimits, RuntimeClock, lock};
use crate::{
    Event, EventLog, Head, Hub, LogKey, LogState, NewHead, Op, SessionKey, Slice, StoreError, Topic,
    life::milliseconds, limits::check_event,
};

/// How many of the changes for all nodes are kept.
const CHANGES: usize = 1000;

/// Logs in the memory of this process.
///
/// The newest event of a log is always kept, whatever its size: it may be the answer that somebody waits for. When there is
/// no room, streams that have ended go first, the oldest before the others; then the oldest events of the log that is
/// being written.
pub struct MemoryLog {
    limits: MemoryLimits,
    clock: Arc<dyn Clock>,
    hub: Hub,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    logs: HashMap<LogKey, Log>,
    sessions: HashMap<SessionKey, OfSession>,
    /// When logs expire. Open streams do not.
    expiry: BTreeSet<(u64, LogKey)>,
    bytes: usize,
    /// The number of the last event that was posted, to whatever log. So numbers are never used again, even when a
    /// log is forgotten and begun anew.
    posted: u64,
}

#[derive(Default)]
struct OfSession {
    keys: BTreeSet<LogKey>,
    events: usize,
    bytes: usize,
}

#[derive(Default)]
struct Log {
    head: Option<Head>,
    events: VecDeque<Event>,
    bytes: usize,
    /// The highest number that was let go of.
    trimmed: u64,
    until_ms: Option<u64>,
}

impl MemoryLog {
    /// An empty log with a clock and wakes of its own.
    pub fn new(limits: MemoryLimits) -> Self {
        Self::with(limits, Arc::new(RuntimeClock::new()), Hub::new())
    }

    /// An empty log that goes by this clock and wakes the listeners of this hub.
    pub fn with(limits: MemoryLimits, clock: Arc<dyn Clock>, hub: Hub) -> Self {
        Self { limits, clock, hub, state: Mutex::default() }
    }

    /// How many bytes of events are kept now.
    pub fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// How many logs are kept now.
    pub fn len(&self) -> usize {
        lock(&self.state).logs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn at_once<T>(
        &self,
        wakes: Option<&LogKey>,
        act: impl FnOnce(&mut State, u64) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = {
            let mut state = lock(&self.state);
            let now = self.clock.now_ms();
            state.expire(now);
            act(&mut state, now)
        };
        if let (Ok(_), Some(key)) = (&done, wakes) {
            self.hub.send(&[Topic::Log(*key)]);
        }
        done
    }

    fn expires(&self, now: u64) -> u64 {
        now.saturating_add(milliseconds(self.limits.log_time))
    }

    fn open_now(&self, key: &LogKey, new: NewHead, over: Option<u64>) -> Result<u64, StoreError> {
        if !key.is_stream() {
            return Err(StoreError::Conflict);
        }
        self.at_once(over.and(Some(key)), |state, _| {
            let fence = over.unwrap_or(0) + 1;
            let count = state.logs.len();
            match (state.logs.get_mut(key).and_then(|log| log.head.as_mut()), over) {
                (Some(head), _) if head.fence == fence && head.node == new.node => {}
                (Some(head), Some(over)) if head.fence == over && head.state == LogState::Open => {
                    head.node = new.node;
                    head.fence = fence;
                    head.pending = new.pending;
                }
                (_, Some(_)) => return Err(StoreError::Lost),
                (Some(_), None) => return Err(StoreError::Conflict),
                (None, None) if count >= self.limits.logs => {
                    return Err(StoreError::Full("streams in memory"));
                }
                (None, None) => state.log(key).head = Some(Head::new(new, fence)),
            }
            Ok(fence)
        })
    }

    fn append_now(
        &self,
        key: &LogKey,
        fence: u64,
        first: u64,
        events: &[Bytes],
        then: LogState,
    ) -> Result<(), StoreError> {
        events.iter().try_for_each(|event| check_event(event.len()))?;
        self.at_once(Some(key), |state, now| {
            let log = state.logs.get(key).ok_or(StoreError::Lost)?;
            let head = log.head.as_ref().filter(|head| head.fence == fence).ok_or(StoreError::Lost)?;
            let new = log.new_of(head.last, first, events)?;
            if head.state != LogState::Open {
                let same = new.is_empty() && head.state == then;
                return if same { Ok(()) } else { Err(StoreError::Conflict) };
            }
            for (number, event) in new {
                state.push(key, number, event.clone(), &self.limits);
            }
            if then != LogState::Open {
                state.end(key, then, self.expires(now));
            }
            Ok(())
        })
    }

    fn post_now(&self, key: &LogKey, event: Bytes) -> Result<u64, StoreError> {
        check_event(event.len())?;
        if key.is_stream() {
            return Err(StoreError::Conflict);
        }
        self.at_once(Some(key), |state, now| {
            if !state.logs.contains_key(key) && state.logs.len() >= self.limits.logs {
                return Err(StoreError::Full("logs in memory"));
            }
            state.posted += 1;
            let number = state.posted;
            state.push(key, number, event, &self.limits);
            state.keep_until(key, self.expires(now));
            Ok(number)
        })
    }
}

impl Log {
    /// Of events that are to be added, those that are not there yet, with their numbers. What is there has to be the same.
    fn new_of<'a>(
        &self,
        last: u64,
        first: u64,
        events: &'a [Bytes],
    ) -> Result<Vec<(u64, &'a Bytes)>, StoreError> {
        if first == 0 {
            return Err(StoreError::Conflict);
        }
        let mut new = Vec::new();
        for (number, bytes) in (first..).zip(events) {
            if number > last {
                new.push((number, bytes));
            } else if self.find(number).is_none_or(|event| event.bytes != *bytes) {
                return Err(StoreError::Conflict);
            }
        }
        Ok(new)
    }

    fn find(&self, number: u64) -> Option<&Event> {
        let at = self.events.binary_search_by_key(&number, |event| event.number).ok()?;
        self.events.get(at)
    }
}

impl State {
    fn log(&mut self, key: &LogKey) -> &mut Log {
        if let Some(session) = key.session() {
            self.sessions.entry(*session).or_default().keys.insert(*key);
        }
        self.logs.entry(*key).or_default()
    }

    fn push(&mut self, key: &LogKey, number: u64, bytes: Bytes, limits: &MemoryLimits) {
        let weight = bytes.len();
        let log = self.log(key);
        log.events.push_back(Event { number, bytes });
        log.bytes += weight;
        if let Some(head) = &mut log.head {
            head.last = number;
        }
        self.bytes += weight;
        if let Some(session) = key.session().and_then(|session| self.sessions.get_mut(session)) {
            session.events += 1;
            session.bytes += weight;
        }
        self.make_room(key, limits);
    }

    fn make_room(&mut self, key: &LogKey, limits: &MemoryLimits) {
        let events = if *key == LogKey::Changes { CHANGES } else { limits.log_events };
        let is_over = |log: &Log| log.events.len() > events || log.bytes > limits.log_bytes;
        while self.logs.get(key).is_some_and(is_over) && self.trim(key) {}
        let session_is_over = |session: &OfSession| {
            session.events > limits.session_log_events || session.bytes > limits.session_log_bytes
        };
        if let Some(session) = key.session().copied() {
            while self.sessions.get(&session).is_some_and(session_is_over) {
                if !(self.drop_ended(Some(&session), key) || self.trim(key)) {
                    break;
                }
            }
        }
        while self.bytes > limits.all_log_bytes {
            if !(self.drop_ended(None, key) || self.trim(key)) {
                break;
            }
        }
    }

    /// Lets go of the oldest event of a log unless it is the only one. Says whether it did.
    fn trim(&mut self, key: &LogKey) -> bool {
        let Some(log) = self.logs.get_mut(key).filter(|log| log.events.len() > 1) else { return false };
        let Some(event) = log.events.pop_front() else { return false };
        log.trimmed = event.number;
        log.bytes -= event.bytes.len();
        self.bytes -= event.bytes.len();
        if let Some(session) = key.session().and_then(|session| self.sessions.get_mut(session)) {
            session.events -= 1;
            session.bytes -= event.bytes.len();
        }
        true
    }

    /// Drops the stream that ended first, of a session or of all, but not the log that is being written. Says whether there was one.
    fn drop_ended(&mut self, session: Option<&SessionKey>, but: &LogKey) -> bool {
        let ended = |key: &&LogKey| {
            key.is_stream() && *key != but && session.is_none_or(|session| key.session() == Some(session))
        };
        let Some(key) = self.expiry.iter().map(|(_, key)| key).find(ended).copied() else { return false };
        self.remove(&key);
        true
    }

    fn end(&mut self, key: &LogKey, then: LogState, until_ms: u64) {
        if let Some(head) = self.logs.get_mut(key).and_then(|log| log.head.as_mut()) {
            head.state = then;
        }
        self.keep_until(key, until_ms);
    }

    fn keep_until(&mut self, key: &LogKey, until_ms: u64) {
        let Some(log) = self.logs.get_mut(key) else { return };
        if let Some(before) = log.until_ms.replace(until_ms) {
            self.expiry.remove(&(before, *key));
        }
        self.expiry.insert((until_ms, *key));
    }

    fn expire(&mut self, now: u64) {
        while let Some((until, key)) = self.expiry.first().copied() {
            if until > now {
                return;
            }
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &LogKey) {
        let Some(log) = self.logs.remove(key) else { return };
        self.bytes -= log.bytes;
        if let Some(until) = log.until_ms {
            self.expiry.remove(&(until, *key));
        }
        let Some(session) = key.session() else { return };
        if let Some(of_session) = self.sessions.get_mut(session) {
            of_session.keys.remove(key);
            of_session.events -= log.events.len();
            of_session.bytes -= log.bytes;
            if of_session.keys.is_empty() {
                self.sessions.remove(session);
            }
        }
    }

    fn read(&self, key: &LogKey, after: u64, limit: usize) -> Slice {
        let Some(log) = self.logs.get(key) else { return Slice::new(None, Vec::new(), 1) };
        let events = log.events.iter().filter(|event| event.number > after).take(limit);
        Slice::new(log.head.clone(), events.cloned().collect(), log.trimmed + 1)
    }
}

impl EventLog for MemoryLog {
    fn open<'a>(&'a self, key: &'a LogKey, head: NewHead, over: Option<u64>) -> Op<'a, u64> {
        Box::pin(async move { self.open_now(key, head, over) })
    }

    fn append<'a>(
        &'a self,
        key: &'a LogKey,
        fence: u64,
        first: u64,
        events: &'a [Bytes],
        then: LogState,
    ) -> Op<'a, ()> {
        Box::pin(async move { self.append_now(key, fence, first, events, then) })
    }

    fn post<'a>(&'a self, key: &'a LogKey, event: Bytes) -> Op<'a, u64> {
        Box::pin(async move { self.post_now(key, event) })
    }

    fn read<'a>(&'a self, key: &'a LogKey, after: u64, limit: usize) -> Op<'a, Slice> {
        Box::pin(async move { self.at_once(None, |state, _| Ok(state.read(key, after, limit))) })
    }

    fn attend<'a>(&'a self, key: &'a LogKey) -> Op<'a, u64> {
        Box::pin(async move {
            self.at_once(Some(key), |state, _| {
                let head = state.logs.get_mut(key).and_then(|log| log.head.as_mut());
                let head = head.ok_or(StoreError::Lost)?;
                head.reader += 1;
                Ok(head.reader)
            })
        })
    }

    fn forget<'a>(&'a self, session: &'a SessionKey) -> Op<'a, ()> {
        Box::pin(async move {
            self.at_once(None, |state, _| {
                let of_session = state.sessions.get(session);
                let keys: Vec<LogKey> =
                    of_session.iter().flat_map(|logs| logs.keys.iter().copied()).collect();
                for key in &keys {
                    state.remove(key);
                }
                Ok(())
            })
        })
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("MemoryLog")
            .field("logs", &state.logs.len())
            .field("bytes", &state.bytes)
            .finish_non_exhaustive()
    }
}
