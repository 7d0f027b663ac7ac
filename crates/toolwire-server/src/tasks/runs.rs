//! The runs of tasks on this node, and how many there may be.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use toolwire_store::{Lease, TaskId};

use super::run::{End, Pulse, TaskRun};
use crate::Limits;

/// The runs on this node, one per task.
#[derive(Debug)]
pub(super) struct Runs {
    running: Mutex<HashMap<TaskId, Arc<TaskRun>>>,
    places: Arc<Semaphore>,
    waiting_places: Arc<Semaphore>,
    /// The last run has ended.
    idle: Notify,
}

/// The place of a run, until it is dropped.
#[derive(Debug)]
pub(super) struct RunPlace(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Runs {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            running: Mutex::default(),
            places: Arc::new(Semaphore::new(limits.task_runs)),
            waiting_places: Arc::new(Semaphore::new(limits.live_tasks)),
            idle: Notify::new(),
        }
    }

    /// A place for a run, if there is one.
    pub(super) fn place(&self) -> Option<RunPlace> {
        Arc::clone(&self.places).try_acquire_owned().ok().map(RunPlace)
    }

    /// Waits for a place.
    pub(super) async fn next_place(&self) -> Option<RunPlace> {
        Arc::clone(&self.places).acquire_owned().await.ok().map(RunPlace)
    }

    /// A place for a run that waits in memory, if there is one.
    pub(super) fn waiting_place(&self) -> Option<RunPlace> {
        Arc::clone(&self.waiting_places).try_acquire_owned().ok().map(RunPlace)
    }

    /// How many places are free.
    pub(super) fn free(&self) -> usize {
        self.places.available_permits()
    }

    /// Adds a run. Another one of the same task has lost it.
    pub(super) fn add(self: &Arc<Self>, run: &Arc<TaskRun>) -> Registered {
        if let Some(other) = self.lock().insert(run.id, Arc::clone(run)) {
            other.end(End::Lost);
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
        self.lock().get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<TaskRun>> {
        self.lock().values().cloned().collect()
    }

    /// The leases that are to be renewed.
    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().values().filter_map(|run| run.lease()).collect()
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

    /// Resolves when nothing runs.
    pub(super) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            idle.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<TaskRun>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut running = self.runs.lock();
        if running.get(&self.run.id).is_some_and(|known| Arc::ptr_eq(known, &self.run)) {
            running.remove(&self.run.id);
        }
        if running.is_empty() {
            self.runs.idle.notify_waiters();
        }
    }
}
