//! One run of a task, as its handler and its node see it.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context as Task, Waker},
    time::{Duration, SystemTime},
};

use tokio::{sync::oneshot, time::Instant};
use toolwire_protocol::journal::Entry;
use toolwire_store::{Lease, TaskId};

use super::{Recorded, Run};
use crate::ask::AskError;

/// A run of a task on this node, from its claim to its end.
pub(super) struct TaskRun {
    pub(super) id: TaskId,
    attempt: u32,
    live: bool,
    /// Known when the task has been stored.
    lease: OnceLock<Lease>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is to be written to the journal, in order.
    queue: Vec<Wanted>,
    /// Whether there is no task to write to.
    refused: bool,
    note: Option<Progress>,
    end: Option<End>,
    /// Whether answers may have come.
    look: bool,
    /// Whoever drives the run.
    driver: Option<Waker>,
    pulse: Option<Pulse>,
    clock: Option<StoreClock>,
}

/// An entry that is to be written, and who waits for it.
pub(super) struct Wanted {
    pub(super) entry: Entry,
    pub(super) done: oneshot::Sender<Result<(), AskError>>,
}

/// How far the work has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Progress {
    pub(super) done: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// Why a run has to end before its handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The task was cancelled, has ended, or belongs to another run.
    Lost,
    /// This node was not able to renew its lease for so long that another one may have taken the task.
    Fenced,
    /// The server is shut down.
    Shutdown,
}

/// When the lease was last renewed for certain: when the renewal that succeeded was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulse {
    monotonic: Instant,
    wall: SystemTime,
}

impl Pulse {
    pub(super) fn now() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() }
    }

    /// How long ago that was. The monotonic clock of a machine that was suspended stands still, so the wall clock is asked as
    /// well.
    pub(super) fn age(&self) -> Duration {
        self.monotonic.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }
}

/// The time of the store, as far as it is known here.
#[derive(Clone, Copy, Debug)]
struct StoreClock {
    ms: u64,
    at: Instant,
}

impl StoreClock {
    fn now_ms(&self) -> u64 {
        self.ms.saturating_add(self.at.elapsed().as_millis().try_into().unwrap_or(u64::MAX))
    }
}

impl TaskRun {
    pub(super) fn new(id: TaskId, attempt: u32, live: bool) -> Self {
        Self { id, attempt, live, lease: OnceLock::new(), state: Mutex::default() }
    }

    /// The task is stored, and this run has its lease, which was asked for at `sent`.
    pub(super) fn begin(&self, lease: Lease, now_ms: u64, sent: Pulse) {
        // It is leased once.
        let _ = self.lease.set(lease);
        self.renewed(sent, now_ms);
    }

    pub(super) fn lease(&self) -> Option<Lease> {
        self.lease.get().copied()
    }

    /// The lease was renewed by what was sent then. Says by how many milliseconds the clock of the store has jumped.
    pub(super) fn renewed(&self, sent: Pulse, now_ms: u64) -> i64 {
        let mut state = self.lock();
        state.pulse = Some(sent);
        let jump = state.clock.map_or(0, |clock| now_ms.cast_signed() - clock.now_ms().cast_signed());
        state.clock = Some(StoreClock { ms: now_ms, at: Instant::now() });
        jump
    }

    /// How long ago the lease was renewed for certain.
    pub(super) fn age(&self) -> Duration {
        self.lock().pulse.map_or(Duration::ZERO, |pulse| pulse.age())
    }

    /// Ends the run. The first reason counts.
    pub(super) fn end(&self, why: End) {
        self.change(|state| {
            state.end.get_or_insert(why);
        });
    }

    /// Answers may have come.
    pub(super) fn look(&self) {
        self.change(|state| state.look = true);
    }

    /// Wakes whoever drives the run.
    pub(super) fn wake(&self) {
        self.change(|_| ());
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Says who drives the run, and why it has to end, if it has to.
    pub(super) fn poll_end(&self, task: &Task<'_>) -> Option<End> {
        let mut state = self.lock();
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(task.waker())) {
            state.driver = Some(task.waker().clone());
        }
        state.end
    }

    /// Returns whether the run has to end.
    pub(super) fn has_end(&self) -> bool {
        self.lock().end.is_some()
    }

    pub(super) fn take_look(&self) -> bool {
        std::mem::take(&mut self.lock().look)
    }

    /// What is to be written: everything that has gathered, or only the first.
    pub(super) fn take_entries(&self, most: usize) -> Vec<Wanted> {
        let mut state = self.lock();
        let taken = state.queue.len().min(most);
        state.queue.drain(..taken).collect()
    }

    pub(super) fn put_back(&self, entries: Vec<Wanted>) {
        self.lock().queue.splice(..0, entries);
    }

    /// Ends a run whose task was not made. What its handler records from now on, and has recorded since the attempt, is
    /// in the memory of the request, which is all there is.
    pub(super) fn refuse(&self) {
        let mut state = self.lock();
        state.refused = true;
        let queue = std::mem::take(&mut state.queue);
        drop(state);
        for wanted in queue {
            // A step whose future was dropped does not wait.
            let _ = wanted.done.send(Ok(()));
        }
    }

    pub(super) fn has_note(&self) -> bool {
        self.lock().note.is_some()
    }

    pub(super) fn take_note(&self) -> Option<Progress> {
        self.lock().note.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run for TaskRun {
    fn record(&self, entry: Entry) -> Recorded {
        let (done, written) = oneshot::channel();
        let wanted = Wanted { entry, done };
        self.change(|state| {
            if state.refused {
                // It does no harm if the step does not wait any more.
                let _ = wanted.done.send(Ok(()));
            } else {
                state.queue.push(wanted);
            }
        });
        Box::pin(async move {
            // A handler that is left behind by a run that has ended has nothing to write to.
            written.await.unwrap_or(Err(AskError::Suspended))
        })
    }

    fn report(&self, done: f64, total: Option<f64>, message: Option<String>) {
        self.change(|state| {
            // What was said last stays until something else is said.
            let message = message.or_else(|| state.note.take().and_then(|note| note.message));
            state.note = Some(Progress { done, total, message });
        });
    }

    fn attempt(&self) -> u32 {
        self.attempt
    }

    fn fence(&self) -> u64 {
        self.lease.get().map_or(0, |lease| lease.fence)
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn now_ms(&self) -> u64 {
        self.lock().clock.map_or(0, |clock| clock.now_ms())
    }
}

impl fmt::Debug for TaskRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRun")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_store_goes_on_between_two_renewals() {
        let run = TaskRun::new(TaskId::from_bytes([1; 24]), 1, false);
        assert_eq!(run.renewed(Pulse::now(), 1_000), 0);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(run.now_ms(), 6_000);
        assert!(run.age() >= Duration::from_secs(5));
        assert_eq!(run.renewed(Pulse::now(), 66_000), 60_000, "it has jumped");
        assert_eq!(run.renewed(Pulse::now(), 6_000), -60_000);
        assert!(run.age() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn the_first_reason_to_end_counts() {
        let run = TaskRun::new(TaskId::from_bytes([1; 24]), 1, false);
        run.end(End::Fenced);
        run.end(End::Lost);
        assert_eq!(run.poll_end(&Task::from_waker(Waker::noop())), Some(End::Fenced));
    }

    #[tokio::test]
    async fn a_step_never_waits_for_a_task_that_was_not_made() {
        let run = TaskRun::new(TaskId::from_bytes([1; 24]), 1, false);
        let before = run.record(Entry::Begun { name: "a".to_owned() });
        run.refuse();
        assert_eq!(before.await, Ok(()));
        assert_eq!(run.record(Entry::Begun { name: "b".to_owned() }).await, Ok(()));
        assert!(run.take_entries(usize::MAX).is_empty());
    }
}
