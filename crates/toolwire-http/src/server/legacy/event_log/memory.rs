//! The event log in the memory of this process.

use std::{
    collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry},
    fmt, io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use toolwire_transport::{
    BoxFuture,
    ledger::{Account, Charge, Ledger},
};

use super::{EventLog, LoggedEvent};
use crate::server::{
    HttpLimits,
    legacy::id::{SessionId, StreamKey},
    response::LIGHT_BYTES,
};

/// The limits of a [`MemoryEventLog`]. The newest event of a stream is kept whatever its size, because it may be the answer
/// that a client waits for, unless the server may hold no more for that client.
///
/// ```
/// use toolwire_http::server::{EventLogLimits, MemoryEventLog};
///
/// let log = MemoryEventLog::new(EventLogLimits { total_bytes: 16 * 1024 * 1024, ..EventLogLimits::default() });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "meant to be written as a literal with ..default()")]
pub struct EventLogLimits {
    /// How many events of one stream are kept. Default 256.
    pub stream_events: usize,
    /// How many bytes of one stream are kept. Default 4 MiB.
    pub stream_bytes: usize,
    /// How many events of one session are kept. Default 1024.
    pub session_events: usize,
    /// How many bytes of one session are kept. Default 8 MiB.
    pub session_bytes: usize,
    /// The number of bytes that are kept of one caller, of all its sessions together. Default 64 MiB.
    pub caller_bytes: usize,
    /// How many bytes are kept of all sessions together. Default 256 MiB.
    pub total_bytes: usize,
    /// How long the events of a stream are kept after its end. Default 5 minutes.
    pub time: Duration,
}

impl Default for EventLogLimits {
    fn default() -> Self {
        Self {
            stream_events: 256,
            stream_bytes: 4 * 1024 * 1024,
            session_events: 1024,
            session_bytes: 8 * 1024 * 1024,
            caller_bytes: 64 * 1024 * 1024,
            total_bytes: 256 * 1024 * 1024,
            time: Duration::from_secs(5 * 60),
        }
    }
}

impl EventLogLimits {
    /// The defaults, with what the settings of the endpoint say.
    pub(in crate::server::legacy) fn of(limits: &HttpLimits) -> Self {
        Self {
            stream_events: limits.stream_events,
            session_bytes: limits.session_event_bytes,
            time: limits.event_timeout,
            ..Self::default()
        }
    }
}

/// An [`EventLog`] in memory. When it is full, streams that have ended go first, the oldest before the others;
/// then the oldest events of the stream that is being written.
///
/// When one caller has its share, its own streams go. What is kept is charged to that caller as well, and makes room for what
/// is to be sent: a caller with all of its `held_bytes_per_caller` in use keeps no events but the newest of a stream that
/// has not ended, if it is small.
pub struct MemoryEventLog {
    limits: EventLogLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, SessionEvents>,
    callers: Callers,
    /// Streams in the order in which they ended.
    ended: BTreeMap<u64, (Instant, StreamKey)>,
    /// The number of streams that have ended so far.
    ends: u64,
    bytes: usize,
}

/// The callers of whom something is kept, by their ledgers.
#[derive(Default)]
struct Callers(HashMap<Ledger, CallerEvents>);

impl Callers {
    fn of(&mut self, session: &SessionEvents) -> Option<&mut CallerEvents> {
        self.0.get_mut(session.caller.as_ref()?)
    }
}

/// The events of one caller.
#[derive(Default)]
struct CallerEvents {
    sessions: usize,
    ended: BTreeMap<u64, StreamKey>,
    bytes: usize,
}

#[derive(Default)]
struct SessionEvents {
    /// Whom it is counted against, if that is known.
    caller: Option<Ledger>,
    charge: Option<Charge>,
    streams: BTreeMap<u64, StreamEvents>,
    ended: BTreeMap<u64, StreamKey>,
    events: usize,
    bytes: usize,
}

#[derive(Default)]
struct StreamEvents {
    events: VecDeque<LoggedEvent>,
    bytes: usize,
    /// Its place among those that have ended.
    ended: Option<u64>,
}

impl MemoryEventLog {
    /// An empty log.
    pub fn new(limits: EventLogLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// How many bytes of messages are kept now.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Of how many sessions something is kept now.
    pub fn sessions(&self) -> usize {
        self.lock().sessions.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.sessions.is_empty() && state.callers.0.is_empty() && state.ended.is_empty() && state.bytes == 0
    }

    fn push(&self, key: &StreamKey, event: LoggedEvent, ledger: Option<&Ledger>) {
        let mut state = self.lock();
        state.expire(self.limits.time);
        let bytes = event.message.len();
        if state.charge(key, bytes, ledger) || state.charge_light(key, bytes, ledger) {
            state.push(key, event);
            state.make_room(key, &self.limits);
        } else {
            tracing::debug!("an event was not kept; its caller holds as much as it may");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The events of a session, of which nothing may be kept yet.
    fn session(&mut self, id: SessionId, ledger: Option<&Ledger>) -> &mut SessionEvents {
        let callers = &mut self.callers;
        self.sessions.entry(id).or_insert_with(|| {
            // Callers that cannot be told apart are counted on the topmost ledger, and none of them has a share.
            let caller = ledger.and_then(Ledger::parent).filter(|caller| caller.parent().is_some());
            if let Some(caller) = caller {
                callers.0.entry(caller.clone()).or_default().sessions += 1;
            }
            let charge = ledger.map(|ledger| ledger.empty_charge(Account::EventBytes));
            SessionEvents { caller: caller.cloned(), charge, ..SessionEvents::default() }
        })
    }

    /// Charges an event, for which older ones of its caller may have to go. Returns `false` if that is not enough.
    fn charge(&mut self, key: &StreamKey, bytes: usize, ledger: Option<&Ledger>) -> bool {
        loop {
            let charge = &mut self.session(key.session, ledger).charge;
            if charge.as_mut().is_none_or(|charge| charge.grow(bytes).is_ok()) {
                return true;
            }
            // One that is small is kept in any case, and has to make what room there is.
            let in_vain = bytes > LIGHT_BYTES && !self.could_fit(&key.session, bytes);
            if in_vain || !(self.drop_ended_of_caller(&key.session) || self.drop_oldest(key)) {
                self.remove_if_empty(&key.session);
                return false;
            }
        }
    }

    /// Returns `true` if an event could be charged, were nothing else kept of its caller.
    fn could_fit(&self, session: &SessionId, bytes: usize) -> bool {
        let Some(events) = self.sessions.get(session) else { return true };
        let kept = self.caller_of(session).map_or(events.bytes, |caller| caller.bytes);
        let ledger = events.charge.as_ref().map(Charge::ledger);
        ledger.is_none_or(|ledger| ledger.could_hold(bytes, Account::EventBytes, kept))
    }

    /// Charges an event that is small, whatever the limits say: it may be an answer, or the error in place of one. By now
    /// nothing is kept of this caller but streams that are open, and of this one a single event. Returns `false` for others.
    fn charge_light(&mut self, key: &StreamKey, bytes: usize, ledger: Option<&Ledger>) -> bool {
        let is_light = bytes <= LIGHT_BYTES;
        if is_light && let Some(charge) = &mut self.session(key.session, ledger).charge {
            charge.grow_unchecked(bytes);
        }
        is_light
    }

    /// Makes room on a ledger.
    fn give_way(&mut self, key: &StreamKey, bytes: usize, ledger: &Ledger) {
        if self.charge(key, bytes, Some(ledger)) {
            if let Some(charge) = &mut self.session(key.session, Some(ledger)).charge {
                charge.shrink(bytes);
            }
            self.remove_if_empty(&key.session);
        }
    }

    /// Adds an event that is charged.
    fn push(&mut self, key: &StreamKey, event: LoggedEvent) {
        let bytes = event.message.len();
        let Some(session) = self.sessions.get_mut(&key.session) else { return };
        let stream = session.streams.entry(key.stream).or_default();
        stream.events.push_back(event);
        stream.bytes += bytes;
        session.events += 1;
        session.bytes += bytes;
        self.bytes += bytes;
        if let Some(caller) = self.callers.of(session) {
            caller.bytes += bytes;
        }
    }

    fn make_room(&mut self, key: &StreamKey, limits: &EventLogLimits) {
        while self.stream_is_over(key, limits) && self.drop_oldest(key) {}
        while self.session_is_over(key, limits) && (self.drop_ended_of(&key.session) || self.drop_oldest(key))
        {
        }
        while self.caller_is_over(key, limits)
            && (self.drop_ended_of_caller(&key.session) || self.drop_oldest(key))
        {}
        while self.bytes > limits.total_bytes && (self.drop_ended() || self.drop_oldest(key)) {}
    }

    fn caller_of(&self, session: &SessionId) -> Option<&CallerEvents> {
        self.callers.0.get(self.sessions.get(session)?.caller.as_ref()?)
    }

    fn stream_is_over(&self, key: &StreamKey, limits: &EventLogLimits) -> bool {
        let stream = self.sessions.get(&key.session).and_then(|session| session.streams.get(&key.stream));
        stream.is_some_and(|stream| {
            stream.events.len() > limits.stream_events || stream.bytes > limits.stream_bytes
        })
    }

    fn session_is_over(&self, key: &StreamKey, limits: &EventLogLimits) -> bool {
        self.sessions.get(&key.session).is_some_and(|session| {
            session.events > limits.session_events || session.bytes > limits.session_bytes
        })
    }

    fn caller_is_over(&self, key: &StreamKey, limits: &EventLogLimits) -> bool {
        self.caller_of(&key.session).is_some_and(|caller| caller.bytes > limits.caller_bytes)
    }

    /// Drops the oldest event of a stream unless it is the only one. Says whether it did.
    fn drop_oldest(&mut self, key: &StreamKey) -> bool {
        let Some(session) = self.sessions.get_mut(&key.session) else { return false };
        let Some(stream) = session.streams.get_mut(&key.stream) else { return false };
        if stream.events.len() < 2 {
            return false;
        }
        let bytes = stream.events.pop_front().map_or(0, |event| event.message.len());
        stream.bytes -= bytes;
        self.let_go(&key.session, 1, bytes);
        true
    }

    /// Drops the stream of a session that ended first. Says whether there was one.
    fn drop_ended_of(&mut self, session: &SessionId) -> bool {
        let events = self.sessions.get(session);
        let first = events.and_then(|events| events.ended.first_key_value()).map(|(_, key)| *key);
        first.inspect(|key| self.remove(key)).is_some()
    }

    /// Drops the stream that ended first of all of the caller that a session belongs to. Says whether there was one.
    fn drop_ended_of_caller(&mut self, session: &SessionId) -> bool {
        let Some(caller) = self.caller_of(session) else { return self.drop_ended_of(session) };
        let first = caller.ended.first_key_value().map(|(_, key)| *key);
        first.inspect(|key| self.remove(key)).is_some()
    }

    /// Drops the stream that ended first of all. Says whether there was one.
    fn drop_ended(&mut self) -> bool {
        let first = self.ended.first_key_value().map(|(_, (_, key))| *key);
        first.inspect(|key| self.remove(key)).is_some()
    }

    fn expire(&mut self, time: Duration) {
        let now = Instant::now();
        while self.ended.values().next().is_some_and(|(ended, _)| now.duration_since(*ended) >= time) {
            self.drop_ended();
        }
    }

    fn remove(&mut self, key: &StreamKey) {
        let Some(session) = self.sessions.get_mut(&key.session) else { return };
        let Some(stream) = session.streams.remove(&key.stream) else { return };
        if let Some(place) = stream.ended {
            session.ended.remove(&place);
            self.ended.remove(&place);
            if let Some(caller) = self.callers.of(session) {
                caller.ended.remove(&place);
            }
        }
        self.let_go(&key.session, stream.events.len(), stream.bytes);
        self.remove_if_empty(&key.session);
    }

    /// Takes events that are gone off every count.
    fn let_go(&mut self, session: &SessionId, events: usize, bytes: usize) {
        let Some(session) = self.sessions.get_mut(session) else { return };
        session.events -= events;
        session.bytes -= bytes;
        if let Some(charge) = &mut session.charge {
            charge.shrink(bytes);
        }
        self.bytes -= bytes;
        if let Some(caller) = self.callers.of(session) {
            caller.bytes -= bytes;
        }
    }

    fn remove_if_empty(&mut self, session: &SessionId) {
        if self.sessions.get(session).is_none_or(|session| !session.streams.is_empty()) {
            return;
        }
        let Some(caller) = self.sessions.remove(session).and_then(|session| session.caller) else { return };
        if let Entry::Occupied(mut known) = self.callers.0.entry(caller) {
            known.get_mut().sessions -= 1;
            if known.get().sessions == 0 {
                known.remove();
            }
        }
    }

    fn end(&mut self, key: &StreamKey) {
        let Some(session) = self.sessions.get_mut(&key.session) else { return };
        let Some(stream) = session.streams.get_mut(&key.stream) else { return };
        if stream.ended.is_some() {
            return;
        }
        let place = self.ends;
        self.ends += 1;
        stream.ended = Some(place);
        session.ended.insert(place, *key);
        self.ended.insert(place, (Instant::now(), *key));
        if let Some(caller) = self.callers.of(session) {
            caller.ended.insert(place, *key);
        }
    }

    fn forget(&mut self, session: &SessionId) {
        while let Some(events) = self.sessions.get(session)
            && let Some((&stream, _)) = events.streams.first_key_value()
        {
            self.remove(&StreamKey { session: *session, stream });
        }
    }

    fn after(&self, key: &StreamKey, sequence: u64) -> Vec<LoggedEvent> {
        let stream = self.sessions.get(&key.session).and_then(|session| session.streams.get(&key.stream));
        let events = stream.iter().flat_map(|stream| &stream.events);
        events.filter(|event| event.sequence > sequence).cloned().collect()
    }
}

impl EventLog for MemoryEventLog {
    fn append<'a>(&'a self, stream: &'a StreamKey, event: LoggedEvent) -> BoxFuture<'a, io::Result<()>> {
        self.push(stream, event, None);
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_charged<'a>(
        &'a self,
        stream: &'a StreamKey,
        event: LoggedEvent,
        ledger: &Ledger,
    ) -> BoxFuture<'a, io::Result<()>> {
        self.push(stream, event, Some(ledger));
        Box::pin(std::future::ready(Ok(())))
    }

    fn make_room(&self, stream: &StreamKey, bytes: usize, ledger: &Ledger) {
        self.lock().give_way(stream, bytes, ledger);
    }

    fn after<'a>(
        &'a self,
        stream: &'a StreamKey,
        sequence: u64,
    ) -> BoxFuture<'a, io::Result<Vec<LoggedEvent>>> {
        self.sweep();
        Box::pin(std::future::ready(Ok(self.lock().after(stream, sequence))))
    }

    fn end_stream(&self, stream: &StreamKey) {
        self.lock().end(stream);
    }

    fn forget(&self, session: &SessionId) {
        self.lock().forget(session);
    }

    fn sweep(&self) {
        self.lock().expire(self.limits.time);
    }
}

impl fmt::Debug for MemoryEventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryEventLog")
            .field("sessions", &state.sessions.len())
            .field("bytes", &state.bytes)
            .finish_non_exhaustive()
    }
}
