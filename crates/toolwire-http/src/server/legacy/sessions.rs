//! The sessions of an endpoint: who is known, and when somebody is forgotten.
//!
//! No session has a timer of its own. Who has expired is found out when the session is asked for, and
//! otherwise by one task that goes through all of them now and then, and that runs only while there are any.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{task::AbortHandle, time::Instant};
use toolwire_server::{Limits, PrincipalKey, engine::Session};
use toolwire_transport::{internal::QuickHash, ledger::Ledger};

use super::{event_log::EventLog, id::SessionId, session::HttpSession};
use crate::server::HttpLimits;

/// For how long a session must have been idle before another one may take its place.
///
/// When the table is full, sessions that never finished their handshake go first; then those that were idle for
/// longest, but none that was used within this time. If all of them were, new clients have to come back later. When a
/// caller has its share, that holds among its own sessions.
pub(super) const EVICTABLE_AFTER: Duration = Duration::from_secs(60);

/// The number of sessions that may go and are remembered from one search to the next, so that a crowd of new
/// clients does not have the whole table searched for each of them.
const MAX_CANDIDATES: usize = 256;

/// For how long there is no other search after one that has found nothing.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

/// How often expired sessions are looked for, at least.
const LONGEST_SWEEP: Duration = Duration::from_secs(10);

pub(super) struct Sessions {
    limits: HttpLimits,
    log: Arc<dyn EventLog>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<SessionId, Arc<HttpSession>, QuickHash>,
    /// For when the table is full.
    room: Room,
    /// For callers that have their share of it, until the sweeper comes by.
    rooms: HashMap<Ledger, Room>,
    sweeper: Option<AbortHandle>,
}

/// Sessions that may make room for others.
#[derive(Default)]
struct Room {
    /// Those that were found by the last search, the first to go at the end.
    candidates: Vec<SessionId>,
    /// The time of the last search, if it has found none.
    searched_in_vain: Option<Instant>,
}

/// Why there is no new session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// As many as there may be are in use.
    Full,
    /// The operating system gives no random numbers.
    NoRandomness,
}

impl Sessions {
    pub(super) fn new(limits: HttpLimits, log: Arc<dyn EventLog>) -> Arc<Self> {
        Arc::new(Self { limits, log, table: Mutex::default() })
    }

    /// Starts a session.
    pub(super) fn open(
        self: &Arc<Self>,
        session: Session,
        principal: Option<PrincipalKey>,
        limits: &Limits,
    ) -> Result<Arc<HttpSession>, Refused> {
        let id = SessionId::random().map_err(|error| {
            tracing::error!(%error, "no random numbers for a session id");
            Refused::NoRandomness
        })?;
        let opened = Arc::new(HttpSession::new(id, session, principal, Arc::clone(&self.log), limits));
        let mut gone = Vec::new();
        let mut table = self.lock();
        if table.sessions.len() >= self.limits.sessions {
            gone = table.make_room(None, &self.limits);
        }
        let fits = table.sessions.len() < self.limits.sessions;
        if fits {
            table.sessions.insert(id, Arc::clone(&opened));
            if table.sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
                table.sweeper =
                    Some(tokio::spawn(sweep(Arc::downgrade(self), self.interval())).abort_handle());
            }
        }
        drop(table);
        close(&gone);
        if fits { Ok(opened) } else { Err(Refused::Full) }
    }

    /// Ends a session of a caller that has its share of them, as [`EVICTABLE_AFTER`] says. Returns `false` if there is none
    /// that may go.
    pub(super) fn make_room_for(&self, caller: &Ledger) -> bool {
        let gone = self.lock().make_room(Some(caller), &self.limits);
        close(&gone);
        gone.iter().any(|session| session.is_of(caller))
    }

    /// The session with this id, if it exists and is this principal's. Being asked for keeps it alive.
    pub(super) fn find(&self, id: &SessionId, principal: Option<PrincipalKey>) -> Option<Arc<HttpSession>> {
        let mut table = self.lock();
        let session = table.sessions.get(id)?;
        if !session.belongs_to(principal) {
            tracing::warn!(session = ?id, "somebody else's session was asked for");
            return None;
        }
        if !session.touch(Instant::now(), &self.limits) {
            let expired = table.sessions.remove(id);
            drop(table);
            close(expired.as_slice());
            return None;
        }
        Some(Arc::clone(session))
    }

    /// Ends a session.
    pub(super) fn remove(&self, id: &SessionId) {
        let removed = self.lock().sessions.remove(id);
        if let Some(session) = removed {
            session.close();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Lets go of everything that has expired. Says whether any session is left to look after.
    fn sweep(&self) -> bool {
        let mut table = self.lock();
        let expired = table.take_expired(&self.limits);
        table.rooms = HashMap::new();
        for session in table.sessions.values() {
            session.forget_ended(self.limits.event_timeout);
        }
        let left = !table.sessions.is_empty();
        if !left {
            // Whoever comes next starts it again. The room that many sessions took goes back as well.
            table.sweeper = None;
            table.sessions = HashMap::default();
        }
        drop(table);
        close(&expired);
        self.log.sweep();
        left
    }

    /// Often enough to notice the end of the shortest time.
    fn interval(&self) -> Duration {
        let shortest = self.limits.session_idle.min(self.limits.session_handshake);
        (shortest / 2).clamp(Duration::from_millis(100), LONGEST_SWEEP)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn take_expired(&mut self, limits: &HttpLimits) -> Vec<Arc<HttpSession>> {
        let now = Instant::now();
        self.sessions
            .extract_if(|_, session| session.has_expired(now, limits))
            .map(|(_, gone)| gone)
            .collect()
    }

    /// Makes room for one more session, of `caller` if there is one, as [`EVICTABLE_AFTER`] says, and gives those that have
    /// to go.
    fn make_room(&mut self, caller: Option<&Ledger>, limits: &HttpLimits) -> Vec<Arc<HttpSession>> {
        let mut room = match caller {
            Some(caller) => self.rooms.remove(caller).unwrap_or_default(),
            None => std::mem::take(&mut self.room),
        };
        let gone = self.make_room_in(&mut room, caller, limits);
        match caller {
            // Without a sweeper there are no sessions, and nothing would take it out again.
            Some(caller) if self.sweeper.is_some() => drop(self.rooms.insert(caller.clone(), room)),
            Some(_) => {}
            None => self.room = room,
        }
        gone
    }

    fn make_room_in(
        &mut self,
        room: &mut Room,
        caller: Option<&Ledger>,
        limits: &HttpLimits,
    ) -> Vec<Arc<HttpSession>> {
        let now = Instant::now();
        if let Some(gone) = self.take_candidate(room, now) {
            return vec![gone];
        }
        if room.searched_in_vain.is_some_and(|searched| now.duration_since(searched) < SEARCH_PAUSE) {
            return Vec::new();
        }
        let counts = |session: &HttpSession| caller.is_none_or(|caller| session.is_of(caller));
        let mut gone = self.take_expired(limits);
        let mut found = gone.iter().any(|session| counts(session));
        if !found {
            room.candidates = self.evictable(counts, now);
            let candidate = self.take_candidate(room, now);
            found = candidate.is_some();
            gone.extend(candidate);
        }
        room.searched_in_vain = (!found).then_some(now);
        gone
    }

    /// The first candidate that has not come back to life in the meantime.
    fn take_candidate(&mut self, room: &mut Room, now: Instant) -> Option<Arc<HttpSession>> {
        while let Some(id) = room.candidates.pop() {
            if self.sessions.get(&id).is_some_and(|session| evictable(session, now).is_some()) {
                tracing::debug!(session = ?id, "a session made room for a new one");
                return self.sessions.remove(&id);
            }
        }
        None
    }

    fn evictable(&self, counts: impl Fn(&HttpSession) -> bool, now: Instant) -> Vec<SessionId> {
        let sessions = self.sessions.iter().filter(|(_, session)| counts(session));
        let mut found: Vec<_> =
            sessions.filter_map(|(id, session)| Some((evictable(session, now)?, *id))).collect();
        found.sort_unstable_by_key(|(order, _)| *order);
        found.truncate(MAX_CANDIDATES);
        found.into_iter().rev().map(|(_, id)| id).collect()
    }
}

/// Whether a session may make room for another, and if so, in which order they go.
fn evictable(session: &HttpSession, now: Instant) -> Option<(bool, Instant)> {
    let (idle, initialized) = (session.idle_since()?, session.is_initialized());
    let may_go = !initialized || now.duration_since(idle) >= EVICTABLE_AFTER;
    may_go.then_some((initialized, idle))
}

fn close(gone: &[Arc<HttpSession>]) {
    for session in gone {
        session.close();
    }
}

/// Goes through the sessions now and then, until there are none, or the endpoint is gone.
async fn sweep(sessions: Weak<Sessions>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(sessions) = sessions.upgrade() else { return };
        if !sessions.sweep() {
            return;
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(sweeper) = &table.sweeper {
            sweeper.abort();
        }
        // Requests that run for them hold on to their sessions, and would go on for nobody.
        for session in table.sessions.values() {
            session.close();
        }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("len", &self.len()).finish_non_exhaustive()
    }
}
