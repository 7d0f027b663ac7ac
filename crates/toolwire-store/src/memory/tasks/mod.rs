//! Tasks in memory.

mod state;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use self::state::State;
use super::{Clock, MemoryLimits, RuntimeClock, lock};
use crate::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Hub, Lease, NewTask, Op, Owner,
    Renewed, StoreError, TaskHead, TaskId, TaskNote, TaskStore, TaskView, Topic,
    life::milliseconds,
    limits::Check,
    record::{Record, Source},
};

/// Tasks in the memory of this process. They end with it.
///
/// It is bounded, ended tasks included: what has ended is kept for as long as was promised, so a store that is full
/// takes no new tasks until something expires. Each caller has a share, so that one alone cannot fill it for all, and a
/// quarter of the bytes is for tasks that are there already. A task that is there can always be cancelled, and ended with
/// a short error.
pub struct MemoryTasks {
    limits: MemoryLimits,
    clock: Arc<dyn Clock>,
    hub: Hub,
    state: Mutex<State>,
}

/// All tasks as they were at a moment.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct TasksAtOnce(State);

/// How many expired tasks are removed at most when a new one comes.
const REMOVED_AT_ONCE: usize = 64;

impl MemoryTasks {
    /// An empty store with a clock and wakes of its own.
    pub fn new(limits: MemoryLimits) -> Self {
        Self::with(limits, Arc::new(RuntimeClock::new()), Hub::new())
    }

    /// An empty store that goes by this clock and wakes the listeners of this hub.
    pub fn with(limits: MemoryLimits, clock: Arc<dyn Clock>, hub: Hub) -> Self {
        Self { limits, clock, hub, state: Mutex::default() }
    }

    /// How many tasks there are, ended ones included.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes they take, by the count that is limited.
    pub fn bytes(&self) -> usize {
        self.lock().bytes()
    }

    /// Everything as it is now. For simulations of stores that lose what they have acknowledged.
    #[doc(hidden)]
    pub fn snapshot(&self) -> TasksAtOnce {
        TasksAtOnce(self.lock().clone())
    }

    /// Forgets all that was written since.
    #[doc(hidden)]
    pub fn restore(&self, then: &TasksAtOnce) {
        *self.lock() = then.0.clone();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Does something at one moment, then wakes those whom it concerns: only then is it visible to them.
    fn at_once<T>(
        &self,
        act: impl FnOnce(&mut State, u64, &mut Vec<Topic>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut wakes = Vec::new();
        let done = {
            let mut state = self.lock();
            // Under the lock, so that a later write never has an earlier time.
            let now = self.clock.now_ms();
            act(&mut state, now, &mut wakes)
        };
        if !wakes.is_empty() {
            self.hub.send(&wakes);
        }
        done
    }

    fn create_now(&self, task: NewTask) -> Result<Created, StoreError> {
        task.check()?;
        self.at_once(|state, now, wakes| {
            wakes.extend(state.expire(now, REMOVED_AT_ONCE));
            let (id, asked) = (task.id, task.lease);
            let lease = asked.map(|lease| Lease { id, fence: 1, token: lease.token });
            if let Some(there) = state.get(&id, now) {
                if there.owner != task.owner {
                    return Err(StoreError::Conflict);
                }
                let lease_ms = asked.map_or(0, |lease| milliseconds(lease.lease));
                let holds = |lease: &Lease| {
                    state.update(&id, |record| record.renew(lease, lease_ms, now)).unwrap_or_default()
                };
                let lease = lease.filter(holds);
                let record = state.get(&id, now).ok_or(StoreError::Conflict)?;
                return Ok(Created::new(record.view(id, now), lease, now));
            }
            // One that has expired and was not removed yet. Its id is not used again.
            if state.is_known(&id) {
                return Err(StoreError::Conflict);
            }
            let limit = task.limit;
            let record = Record::new(task, now);
            state.has_room_for(&record, limit, &self.limits)?;
            let view = record.view(id, now);
            wakes.push(record.topic(id));
            if lease.is_none() {
                wakes.push(Topic::Ready);
            }
            state.insert(id, record);
            Ok(Created::new(view, lease, now))
        })
    }

    fn claim_now(&self, claim: &Claim) -> Result<Vec<Claimed>, StoreError> {
        self.at_once(|state, now, _| {
            // All are chosen before the first one is taken: one whose lease is over at once must not be taken twice.
            let mut claimed = Vec::new();
            for id in state.due(claim, now) {
                state.update(&id, |record| record.claim(claim, now));
                let journal = state.journal(&id, 0).iter().map(|(entry, _)| entry.clone()).collect();
                let record = state.get(&id, now);
                claimed.extend(record.map(|record| record.claimed(id, claim.token, journal, now)));
            }
            Ok(claimed)
        })
    }

    fn advance_now(&self, lease: &Lease, n: u64, step: Advance) -> Result<u64, StoreError> {
        step.check()?;
        self.at_once(|state, now, wakes| {
            let record = state.get(&lease.id, now).ok_or(StoreError::Lost)?;
            if !record.admits(lease, n)? {
                return Ok(record.rev);
            }
            record.fits(&step)?;
            let growth = record.growth(&step);
            state.is_within_share(&record.quota, growth, &self.limits)?;
            state.has_room(&record.quota, growth, &self.limits)?;
            let visible = !matches!(step, Advance::Record(_) | Advance::Release);
            let changed = state.update(&lease.id, |record| {
                record.advance(n, step, now);
                (record.rev, record.is_ready(), record.topic(lease.id))
            });
            let (rev, ready, topic) = changed.ok_or(StoreError::Lost)?;
            wakes.extend(visible.then_some(topic));
            wakes.extend(ready.then_some(Topic::Ready));
            Ok(rev)
        })
    }

    fn answer_now(
        &self,
        owner: &Owner,
        id: &TaskId,
        answers: Vec<Answer>,
    ) -> Result<Option<Answered>, StoreError> {
        answers.check()?;
        self.at_once(|state, now, wakes| {
            let Some(record) = state.of(owner, id, now) else { return Ok(None) };
            let wanted = record.wanted(answers);
            state.has_room(&record.quota, record.fits_answers(&wanted)?, &self.limits)?;
            let topic = record.topic(*id);
            let answered = state.update(id, |record| record.answer(wanted, now));
            if let Some(answered) = &answered {
                wakes.extend((!answered.taken.is_empty()).then_some(topic));
                wakes.extend(answered.ready.then_some(Topic::Ready));
            }
            Ok(answered)
        })
    }

    fn cancel_now(&self, owner: &Owner, id: &TaskId, why: TaskNote) -> Result<Option<Cancelled>, StoreError> {
        why.check()?;
        self.at_once(|state, now, wakes| {
            let Some(record) = state.of(owner, id, now) else { return Ok(None) };
            if record.has_ended() {
                return Ok(Some(Cancelled::new(record.view(*id, now), true)));
            }
            wakes.push(record.topic(*id));
            Ok(state.update(id, |record| {
                record.cancel(why, now);
                Cancelled::new(record.view(*id, now), false)
            }))
        })
    }
}

impl TaskStore for MemoryTasks {
    fn create(&self, task: NewTask) -> Op<'_, Created> {
        Box::pin(async move { self.create_now(task) })
    }

    fn view<'a>(&'a self, owner: &'a Owner, id: &'a TaskId) -> Op<'a, Option<TaskView>> {
        Box::pin(async move {
            self.at_once(|state, now, _| Ok(state.of(owner, id, now).map(|record| record.view(*id, now))))
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a Owner,
        after: Option<(u64, &'a TaskId)>,
        limit: usize,
    ) -> Op<'a, Vec<TaskHead>> {
        Box::pin(async move {
            self.at_once(|state, now, _| {
                let after = after.map(|(created, id)| (created, *id));
                let page = state.owned(owner, after, now).take(limit);
                Ok(page.map(|(id, record)| record.head(id, now)).collect())
            })
        })
    }

    fn revs<'a>(&'a self, ids: &'a [TaskId]) -> Op<'a, Vec<Option<u64>>> {
        Box::pin(async move {
            self.at_once(|state, now, _| {
                Ok(ids.iter().map(|id| state.get(id, now).map(|record| record.rev)).collect())
            })
        })
    }

    fn claim<'a>(&'a self, claim: &'a Claim) -> Op<'a, Vec<Claimed>> {
        Box::pin(async move { self.claim_now(claim) })
    }

    fn renew<'a>(&'a self, leases: &'a [Lease], lease: Duration) -> Op<'a, Renewed> {
        Box::pin(async move {
            self.at_once(|state, now, _| {
                let mut lost = Vec::new();
                for one in leases {
                    let is_there = state.get(&one.id, now).is_some();
                    let renew = |record: &mut Record| record.renew(one, milliseconds(lease), now);
                    if !is_there || state.update(&one.id, renew) != Some(true) {
                        lost.push(one.id);
                    }
                }
                Ok(Renewed::new(lost, now))
            })
        })
    }

    fn advance<'a>(&'a self, lease: &'a Lease, n: u64, step: Advance) -> Op<'a, u64> {
        Box::pin(async move { self.advance_now(lease, n, step) })
    }

    fn answers<'a>(&'a self, lease: &'a Lease) -> Op<'a, Vec<Entry>> {
        Box::pin(async move {
            self.at_once(|state, now, _| {
                let record = state.get(&lease.id, now).filter(|record| record.is_run_by(lease));
                let since = state.journal(&lease.id, record.ok_or(StoreError::Lost)?.parked_at);
                let answers = since.iter().filter(|(_, from)| *from == Source::Answer);
                Ok(answers.map(|(entry, _)| entry.clone()).collect())
            })
        })
    }

    fn answer<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a TaskId,
        answers: Vec<Answer>,
    ) -> Op<'a, Option<Answered>> {
        Box::pin(async move { self.answer_now(owner, id, answers) })
    }

    fn cancel<'a>(&'a self, owner: &'a Owner, id: &'a TaskId, why: TaskNote) -> Op<'a, Option<Cancelled>> {
        Box::pin(async move { self.cancel_now(owner, id, why) })
    }

    fn sweep(&self, limit: usize) -> Op<'_, usize> {
        Box::pin(async move {
            self.at_once(|state, now, wakes| {
                wakes.extend(state.expire(now, limit));
                Ok(wakes.len())
            })
        })
    }
}

impl fmt::Debug for MemoryTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryTasks")
            .field("tasks", &state.len())
            .field("bytes", &state.bytes())
            .finish_non_exhaustive()
    }
}
