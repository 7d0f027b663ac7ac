//! The event log in the memory of this process.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt, io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use toolwire_transport::{BoxFuture, ledger::Charge};

use super::{EventLog, LoggedEvent};
use crate::server::{
    HttpLimits,
    legacy::id::{SessionId, StreamKey},
};

/// The limits of a [`MemoryEventLog`]. The newest event of a stream is always kept, whatever its size: it may
/// be the answer that somebody waits for.
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

/// How many names of streams that are gone may stay around before they are cleared away.
const ENDED_SLACK: usize = 64;

/// An [`EventLog`] in memory. When it is full, streams that have ended go first, the oldest before the others;
/// then the oldest events of the stream that is being written.
pub struct MemoryEventLog {
    limits: EventLogLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, SessionEvents>,
    /// Streams in the order in which they ended. Some of them may be gone already.
    ended: VecDeque<(Instant, StreamKey)>,
    /// How many of those are still there.
    ended_here: usize,
    bytes: usize,
    /// The same bytes where others can see them.
    charge: Option<Charge>,
}

#[derive(Default)]
struct SessionEvents {
    streams: BTreeMap<u64, StreamEvents>,
    /// Streams of this session in the order in which they ended.
    ended: VecDeque<u64>,
    events: usize,
    bytes: usize,
}

#[derive(Default)]
struct StreamEvents {
    events: VecDeque<LoggedEvent>,
    bytes: usize,
}

impl MemoryEventLog {
    /// An empty log.
    pub fn new(limits: EventLogLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// The same, with its bytes on the ledger of a server.
    pub(in crate::server::legacy) fn charged(limits: EventLogLimits, charge: Charge) -> Self {
        let state = State { charge: Some(charge), ..State::default() };
        Self { limits, state: Mutex::new(state) }
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
    pub(super) fn names_of_ended(&self) -> usize {
        self.lock().ended.len()
    }

    fn push(&self, key: &StreamKey, event: LoggedEvent) {
        let mut state = self.lock();
        state.expire(self.limits.time);
        state.push(key, event);
        state.make_room(key, &self.limits);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, key: &StreamKey, event: LoggedEvent) {
        let bytes = event.message.len();
        let session = self.sessions.entry(key.session).or_default();
        let stream = session.streams.entry(key.stream).or_default();
        stream.events.push_back(event);
        stream.bytes += bytes;
        session.events += 1;
        session.bytes += bytes;
        self.bytes += bytes;
        if let Some(charge) = &mut self.charge {
            charge.grow_unchecked(bytes);
        }
    }

    fn make_room(&mut self, key: &StreamKey, limits: &EventLogLimits) {
        while self.stream_is_over(key, limits) && self.drop_oldest(key) {}
        while self.session_is_over(key, limits) {
            if !(self.drop_ended_of(&key.session) || self.drop_oldest(key)) {
                break;
            }
        }
        while self.bytes > limits.total_bytes
            || self.charge.as_ref().is_some_and(|charge| charge.ledger().is_over())
        {
            if !(self.drop_ended() || self.drop_oldest(key)) {
                break;
            }
        }
    }

    fn let_go(&mut self, bytes: usize) {
        self.bytes -= bytes;
        if let Some(charge) = &mut self.charge {
            charge.shrink(bytes);
        }
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

    /// Drops the oldest event of a stream unless it is the only one. Says whether it did.
    fn drop_oldest(&mut self, key: &StreamKey) -> bool {
        let Some(session) = self.sessions.get_mut(&key.session) else { return false };
        let Some(stream) = session.streams.get_mut(&key.stream) else { return false };
        if stream.events.len() < 2 {
            return false;
        }
        let bytes = stream.events.pop_front().map_or(0, |event| event.message.len());
        stream.bytes -= bytes;
        session.events -= 1;
        session.bytes -= bytes;
        self.let_go(bytes);
        true
    }

    /// Drops the stream of a session that ended first. Says whether there was one.
    fn drop_ended_of(&mut self, session: &SessionId) -> bool {
        let Some(events) = self.sessions.get_mut(session) else { return false };
        let Some(&stream) = events.ended.front() else { return false };
        self.remove(&StreamKey { session: *session, stream });
        true
    }

    /// Drops the stream that ended first of all. Says whether there was one.
    fn drop_ended(&mut self) -> bool {
        let Some((_, key)) = self.ended.pop_front() else { return false };
        self.remove(&key);
        true
    }

    fn expire(&mut self, time: Duration) {
        let now = Instant::now();
        while self.ended.front().is_some_and(|(ended, _)| now.duration_since(*ended) >= time) {
            self.drop_ended();
        }
    }

    fn remove(&mut self, key: &StreamKey) {
        let Some(session) = self.sessions.get_mut(&key.session) else { return };
        let mut gone = 0;
        if let Some(stream) = session.streams.remove(&key.stream) {
            session.events -= stream.events.len();
            session.bytes -= stream.bytes;
            gone = stream.bytes;
        }
        let ended = session.ended.len();
        session.ended.retain(|ended| *ended != key.stream);
        self.ended_here -= ended - session.ended.len();
        if session.streams.is_empty() {
            self.sessions.remove(&key.session);
        }
        self.let_go(gone);
    }

    fn end(&mut self, key: &StreamKey) {
        let Some(session) = self.sessions.get_mut(&key.session) else { return };
        if session.streams.contains_key(&key.stream) && !session.ended.contains(&key.stream) {
            session.ended.push_back(key.stream);
            self.ended.push_back((Instant::now(), *key));
            self.ended_here += 1;
        }
    }

    fn forget(&mut self, session: &SessionId) {
        if let Some(events) = self.sessions.remove(session) {
            self.let_go(events.bytes);
            self.ended_here -= events.ended.len();
        }
        // Names of what is gone are cleared away in one go, and not for each session anew.
        if self.ended.len() > 2 * self.ended_here + ENDED_SLACK {
            let sessions = &self.sessions;
            self.ended.retain(|(_, key)| {
                sessions.get(&key.session).is_some_and(|session| session.ended.contains(&key.stream))
            });
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
        self.push(stream, event);
        Box::pin(std::future::ready(Ok(())))
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
