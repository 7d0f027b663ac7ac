//! Sessions and nodes in memory.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{Clock, MemoryLimits, RuntimeClock, lock};
use crate::{
    Hub, NodeId, Op, SessionKey, SessionRecord, SessionStore, StoreError, Topic, life::milliseconds,
    limits::Check,
};

/// What a session weighs beside the texts that it holds.
const OVERHEAD: usize = 512;
/// How many nodes are remembered.
const NODES: usize = 10_000;

/// Sessions in the memory of this process.
pub struct MemorySessions {
    limits: MemoryLimits,
    clock: Arc<dyn Clock>,
    hub: Hub,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<SessionKey, Kept>,
    expiry: BTreeSet<(u64, SessionKey)>,
    nodes: HashMap<NodeId, u64>,
    bytes: usize,
}

struct Kept {
    /// `None` when it was removed, and must not come back.
    record: Option<SessionRecord>,
    until_ms: u64,
}

impl Kept {
    fn weight(&self) -> usize {
        OVERHEAD + self.record.as_ref().map_or(0, SessionRecord::weight)
    }
}

impl MemorySessions {
    /// An empty store with a clock and wakes of its own.
    pub fn new(limits: MemoryLimits) -> Self {
        Self::with(limits, Arc::new(RuntimeClock::new()), Hub::new())
    }

    /// An empty store that goes by this clock and wakes the listeners of this hub.
    pub fn with(limits: MemoryLimits, clock: Arc<dyn Clock>, hub: Hub) -> Self {
        Self { limits, clock, hub, state: Mutex::default() }
    }

    /// How many sessions are kept, those that were removed included as long as they must not come back.
    pub fn len(&self) -> usize {
        lock(&self.state).sessions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn put_now(
        &self,
        session: &SessionRecord,
        expect: Option<u64>,
        idle: Duration,
    ) -> Result<u64, StoreError> {
        session.check()?;
        let mut state = lock(&self.state);
        let now = self.clock.now_ms();
        state.expire(now);
        let there = state.sessions.get(&session.key);
        let (rev, seen) = match (expect, there.map(|kept| &kept.record)) {
            (None, None) if state.sessions.len() >= self.limits.sessions => {
                return Err(StoreError::Full("sessions in memory"));
            }
            (None, None) => (1, session.seen),
            (Some(expect), Some(Some(record))) if record.rev == expect => {
                (expect + 1, record.seen.max(session.seen))
            }
            _ => return Err(StoreError::Conflict),
        };
        let record = SessionRecord { rev, seen, ..session.clone() };
        let kept = Kept { record: Some(record), until_ms: now.saturating_add(milliseconds(idle)) };
        let freed = there.map_or(0, Kept::weight);
        if state.bytes - freed + kept.weight() > self.limits.session_bytes {
            return Err(StoreError::Full("bytes of sessions in memory"));
        }
        state.keep(session.key, kept);
        Ok(rev)
    }
}

impl State {
    fn keep(&mut self, key: SessionKey, kept: Kept) {
        self.bytes += kept.weight();
        self.expiry.insert((kept.until_ms, key));
        if let Some(before) = self.sessions.insert(key, kept) {
            self.bytes -= before.weight();
            if self.sessions.get(&key).is_some_and(|kept| kept.until_ms != before.until_ms) {
                self.expiry.remove(&(before.until_ms, key));
            }
        }
    }

    fn expire(&mut self, now: u64) {
        while let Some((until, key)) = self.expiry.first().copied() {
            if until > now {
                return;
            }
            self.expiry.remove(&(until, key));
            if let Some(kept) = self.sessions.remove(&key) {
                self.bytes -= kept.weight();
            }
        }
    }

    fn touch(&mut self, key: &SessionKey, seen: u64, until_ms: u64) {
        let Some(kept) = self.sessions.get_mut(key) else { return };
        let Some(record) = &mut kept.record else { return };
        record.seen = record.seen.max(seen);
        let before = std::mem::replace(&mut kept.until_ms, until_ms);
        self.expiry.remove(&(before, *key));
        self.expiry.insert((until_ms, *key));
    }
}

impl SessionStore for MemorySessions {
    fn put<'a>(&'a self, session: &'a SessionRecord, expect: Option<u64>, idle: Duration) -> Op<'a, u64> {
        Box::pin(async move {
            let rev = self.put_now(session, expect, idle)?;
            self.hub.send(&[Topic::Session(session.key)]);
            Ok(rev)
        })
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> Op<'a, Option<SessionRecord>> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            state.expire(self.clock.now_ms());
            Ok(state.sessions.get(key).and_then(|kept| kept.record.clone()))
        })
    }

    fn touch<'a>(&'a self, keys: &'a [(SessionKey, u64)], idle: Duration) -> Op<'a, ()> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            let now = self.clock.now_ms();
            state.expire(now);
            for (key, seen) in keys {
                state.touch(key, *seen, now.saturating_add(milliseconds(idle)));
            }
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a SessionKey) -> Op<'a, bool> {
        Box::pin(async move {
            let was_there = {
                let mut state = lock(&self.state);
                state.expire(self.clock.now_ms());
                let until = state.sessions.get(key).filter(|kept| kept.record.is_some());
                let until = until.map(|kept| kept.until_ms);
                if let Some(until_ms) = until {
                    state.keep(*key, Kept { record: None, until_ms });
                }
                until.is_some()
            };
            if was_there {
                self.hub.send(&[Topic::Session(*key)]);
            }
            Ok(was_there)
        })
    }

    fn beat<'a>(&'a self, node: &'a NodeId, lease: Duration) -> Op<'a, ()> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            let now = self.clock.now_ms();
            if state.nodes.len() >= NODES {
                state.nodes.retain(|_, until| *until > now);
            }
            if state.nodes.len() >= NODES && !state.nodes.contains_key(node) {
                return Err(StoreError::Full("nodes"));
            }
            state.nodes.insert(*node, now.saturating_add(milliseconds(lease)));
            Ok(())
        })
    }

    fn alive<'a>(&'a self, node: &'a NodeId) -> Op<'a, bool> {
        Box::pin(async move {
            let now = self.clock.now_ms();
            Ok(lock(&self.state).nodes.get(node).is_some_and(|until| *until > now))
        })
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").field("sessions", &self.len()).finish_non_exhaustive()
    }
}
