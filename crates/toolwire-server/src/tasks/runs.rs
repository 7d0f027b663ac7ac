//! The runs of tasks on this node, and how many there may be.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use toolwire_store::{Lease, TaskId};

use super::run::{End, Pulse, TaskRun};
use crate::Limits;

/// The runs on this node, one per task.
#[derive(Debug)]
pub(super) struct Runs {
    table: Mutex<Table>,
    places: Arc<Semaphore>,
    waiting_places: Arc<Semaphore>,
    /// Nothing is under way any more.
    idle: Notify,
    /// Nothing new may begin any more.
    closed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    running: HashMap<TaskId, Arc<TaskRun>>,
    /// Number of other things that are under way: claims, tasks that are being stored, writes that must not get lost.
    busy: usize,
    door: Door,
}

/// State of the admission of new runs.
#[derive(Clone, Copy, Debug, Default)]
enum Door {
    #[default]
    Open,
    /// Nothing new is begun. What runs may come to its end.
    Closed(Instant),
    /// The runs that are left have been told to end.
    Ended(Instant),
}

/// The place of a run, until it is dropped.
#[derive(Debug)]
pub(super) struct RunPlace {
    _permit: OwnedSemaphorePermit,
    _busy: Busy,
}

/// Something that has to be done before the process may end, until it is dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Runs>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut table = self.0.lock();
        table.busy -= 1;
        self.0.note_idle(&table);
    }
}

impl Runs {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            table: Mutex::default(),
            places: Arc::new(Semaphore::new(limits.task_runs)),
            waiting_places: Arc::new(Semaphore::new(limits.live_tasks)),
            idle: Notify::new(),
            closed: Notify::new(),
        }
    }

    /// A place for a run, if there is one, and if more may come.
    pub(super) fn place(self: &Arc<Self>) -> Option<RunPlace> {
        if self.is_closed() {
            return None;
        }
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(RunPlace { _permit: permit, _busy: self.busy() })
    }

    /// Places for tasks that are to be claimed: half of those that are free, and at least one if there is one. The others
    /// are for calls that come while the store is asked.
    pub(super) fn places(self: &Arc<Self>) -> Vec<RunPlace> {
        let wanted = self.places.available_permits().div_ceil(2);
        (0..wanted).map_while(|_| self.place()).collect()
    }

    /// Waits for a place.
    pub(super) async fn next_place(self: &Arc<Self>) -> Option<RunPlace> {
        let permit = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some(RunPlace { _permit: permit, _busy: self.busy() })
    }

    /// A place for a run that waits in memory, if there is one.
    pub(super) fn waiting_place(self: &Arc<Self>) -> Option<RunPlace> {
        let permit = Arc::clone(&self.waiting_places).try_acquire_owned().ok()?;
        Some(RunPlace { _permit: permit, _busy: self.busy() })
    }

    /// Something is under way that has to be done before the process may end.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.lock().busy += 1;
        Busy(Arc::clone(self))
    }

    /// Lets nothing new begin. Returns the time since when that is so.
    pub(super) fn close(&self) -> Instant {
        let mut table = self.lock();
        match table.door {
            Door::Open => {
                let now = Instant::now();
                table.door = Door::Closed(now);
                self.closed.notify_waiters();
                now
            }
            Door::Closed(since) | Door::Ended(since) => since,
        }
    }

    /// Ends everything that still runs, and what is added from now on.
    pub(super) fn end_all(&self) {
        let since = self.close();
        let running: Vec<_> = {
            let mut table = self.lock();
            table.door = Door::Ended(since);
            table.running.values().cloned().collect()
        };
        for run in running {
            run.end(End::Shutdown);
        }
    }

    /// Lets new runs begin again.
    pub(super) fn open(&self) {
        self.lock().door = Door::Open;
    }

    /// Returns whether nothing new may begin.
    pub(super) fn is_closed(&self) -> bool {
        !matches!(self.lock().door, Door::Open)
    }

    /// Resolves when nothing new may begin.
    pub(super) async fn until_closed(&self) {
        loop {
            let closed = self.closed.notified();
            tokio::pin!(closed);
            closed.as_mut().enable();
            if self.is_closed() {
                return;
            }
            closed.await;
        }
    }

    /// The longest time since a lease of a run was renewed for certain.
    pub(super) fn oldest_pulse(&self) -> Duration {
        let table = self.lock();
        table.running.values().map(|run| run.age()).max().unwrap_or_default()
    }

    /// Adds a run. Another one of the same task has lost it.
    pub(super) fn add(self: &Arc<Self>, run: &Arc<TaskRun>) -> Registered {
        let (other, door) = {
            let mut table = self.lock();
            (table.running.insert(run.id, Arc::clone(run)), table.door)
        };
        if let Some(other) = other {
            other.end(End::Lost);
        }
        if let Door::Ended(_) = door {
            run.end(End::Shutdown);
        }
        Registered { runs: Arc::clone(self), run: Arc::clone(run) }
    }

    /// The task does not belong to this node any more.
    pub(super) fn lost(&self, id: &TaskId) {
        if let Some(run) = self.get(id) {
            run.end(End::Lost);
        }
    }

    /// Answers may have come for a run that waits here.
    pub(super) fn look(&self, id: &TaskId) {
        if let Some(run) = self.get(id) {
            run.look();
        }
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<Arc<TaskRun>> {
        self.lock().running.get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<TaskRun>> {
        self.lock().running.values().cloned().collect()
    }

    /// The leases that are to be renewed.
    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().running.values().filter_map(|run| run.lease()).collect()
    }

    /// These leases were renewed, but for those that are lost. Gives the largest jump of the store's clock.
    pub(super) fn renewed(&self, leases: &[Lease], lost: &[TaskId], sent: Pulse, now_ms: u64) -> i64 {
        let mut jump = 0_i64;
        for lease in leases {
            let Some(run) = self.get(&lease.id).filter(|run| run.lease() == Some(*lease)) else { continue };
            if lost.contains(&lease.id) {
                run.end(End::Lost);
            } else {
                let by = run.renewed(sent, now_ms);
                jump = if by.abs() > jump.abs() { by } else { jump };
            }
        }
        jump
    }

    /// Resolves when nothing is under way.
    pub(super) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    fn note_idle(&self, table: &Table) {
        if table.is_idle() {
            self.idle.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.busy == 0
    }
}

/// A run that is known here, until it ends.
#[derive(Debug)]
pub(super) struct Registered {
    runs: Arc<Runs>,
    run: Arc<TaskRun>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut table = self.runs.lock();
        if table.running.get(&self.run.id).is_some_and(|known| Arc::ptr_eq(known, &self.run)) {
            table.running.remove(&self.run.id);
        }
        self.runs.note_idle(&table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(places: usize) -> Arc<Runs> {
        let limits = Limits { task_runs: places, ..Limits::default() };
        Arc::new(Runs::new(&limits))
    }

    #[tokio::test]
    async fn a_claim_leaves_half_of_the_free_places_to_calls() {
        let runs = runs(5);
        let claimed = runs.places();
        assert_eq!(claimed.len(), 3);
        let called = runs.place().unwrap();
        assert_eq!(runs.places().len(), 1, "the last one can be taken by either");
        drop((claimed, called));
        runs.close();
        assert!(runs.place().is_none() && runs.places().is_empty(), "nothing new is begun");
        runs.open();
        assert!(runs.place().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_added_after_the_end_is_ended_and_waited_for() {
        let runs = runs(1);
        let add = |byte| {
            let run = Arc::new(TaskRun::new(TaskId::from_bytes([byte; 24]), 1, false));
            (runs.add(&run), run)
        };
        let ended = |run: &TaskRun| run.poll_end(&std::task::Context::from_waker(std::task::Waker::noop()));
        let (first, run) = add(1);
        let since = runs.close();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(runs.close(), since);
        assert_eq!(ended(&run), None, "it may come to its end");
        runs.end_all();
        let (second, late) = add(2);
        assert_eq!((ended(&run), ended(&late)), (Some(End::Shutdown), Some(End::Shutdown)));
        let busy = runs.busy();
        let mut idle = std::pin::pin!(runs.until_idle());
        for held in [Box::new(first) as Box<dyn Send>, Box::new(second), Box::new(busy)] {
            let waits = tokio::time::timeout(Duration::ZERO, idle.as_mut()).await;
            assert!(waits.is_err(), "something is under way");
            drop(held);
        }
        idle.await;
    }
}
