//! Tasks that this node has claimed and cannot run: given back, so that another node can, and failed only when no node
//! seems to be able to.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use toolwire_protocol::RpcError;
use toolwire_store::{Advance, Claimed, Park, StoreError, TaskId};

use super::service::TaskService;

/// How long a task is left to others before it fails.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// When a task that was given back can be claimed again.
const PAUSE: Duration = Duration::from_secs(60);

/// How many such tasks are remembered. Of others it is not known since when nobody runs them, so they are left to others
/// for as long as a task works at most.
const REMEMBERED: usize = 4096;

/// How long a task is remembered that is not claimed here any more: another node runs it, or it is gone.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 60);

/// How often a write that gives a task back is tried. After that its lease ends by itself, which counts as an attempt.
const TRIES: u32 = 3;

/// How long to wait before it is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Since when tasks are known that cannot be run here.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<HashMap<TaskId, Known>>);

#[derive(Debug)]
struct Known {
    /// The claim since which no other node is known to have run the task.
    first: Instant,
    last: Instant,
    /// The length of the journal at the last claim. It grows when another node runs the task.
    journal: usize,
}

impl Strangers {
    /// Notes the claim of a task that cannot be run here, with so many entries in its journal. Returns for how long it has
    /// been claimed here in vain, as far as no other node has run it meanwhile.
    fn meet(&self, id: TaskId, journal: usize) -> Duration {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() >= REMEMBERED {
            known.retain(|_, known| now.duration_since(known.last) < FORGOTTEN_AFTER);
        }
        if known.len() >= REMEMBERED && !known.contains_key(&id) {
            return Duration::ZERO;
        }
        let known = known.entry(id).or_insert(Known { first: now, last: now, journal });
        if known.journal != journal || now.duration_since(known.last) >= FORGOTTEN_AFTER {
            known.first = now;
        }
        (known.last, known.journal) = (now, journal);
        now.duration_since(known.first)
    }

    fn forget(&self, id: &TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl TaskService {
    /// Whether a task that cannot be run here is left to others, and not yet for so long that it has to end.
    pub(super) fn is_left_to_others(&self, claimed: &Claimed, why: impl FnOnce() -> RpcError) -> bool {
        let id = claimed.lease.id;
        let known_for = self.strangers.meet(id, claimed.journal.len());
        let age = claimed.now_ms.saturating_sub(claimed.head.created_ms);
        if known_for >= PATIENCE || u128::from(age) >= self.limits.task_ttl.as_millis() {
            self.strangers.forget(&id);
            return false;
        }
        if known_for.is_zero() {
            let why = why();
            tracing::warn!(%why, "a task that was claimed cannot be run here and is left to other nodes");
        }
        true
    }

    /// Gives a task back that cannot be run here: as if it had not been claimed, but for a pause in which others are first.
    pub(super) async fn give_back(&self, claimed: &Claimed) {
        for _ in 0..TRIES {
            match self.park_as_it_is(claimed).await {
                Ok(()) | Err(StoreError::Lost) => return,
                Err(error) => tracing::debug!(%error, "a task could not be given back"),
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn park_as_it_is(&self, claimed: &Claimed) -> Result<(), StoreError> {
        let lease = &claimed.lease;
        let view = self.ask(self.tasks().view(&claimed.owner, &lease.id)).await?.ok_or(StoreError::Lost)?;
        // Parking closes the questions that it does not name, and opens none that is answered.
        let mut park = Park::default();
        (park.open, park.wake) = (view.open, Some(PAUSE));
        self.ask(self.tasks().advance(lease, 1, Advance::Park(park))).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_are_remembered_and_those_that_others_run_are_forgotten() {
        let strangers = Strangers::default();
        let id = |number: usize| {
            let mut id = [0; 24];
            id[..8].copy_from_slice(&(number as u64).to_be_bytes());
            TaskId::from_bytes(id)
        };
        for number in 0..REMEMBERED {
            assert_eq!(strangers.meet(id(number), 0), Duration::ZERO);
        }
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(strangers.meet(id(0), 0), Duration::from_secs(60));
        assert_eq!(strangers.meet(id(REMEMBERED), 0), Duration::ZERO);
        assert_eq!(strangers.0.lock().unwrap().len(), REMEMBERED, "there is no room");
        tokio::time::advance(FORGOTTEN_AFTER).await;
        strangers.meet(id(REMEMBERED), 0);
        assert_eq!(strangers.0.lock().unwrap().len(), 1, "the others were not seen for long");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(strangers.meet(id(REMEMBERED), 0), Duration::from_secs(1));
        strangers.forget(&id(REMEMBERED));
        assert_eq!(strangers.meet(id(REMEMBERED), 0), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_another_node_has_run_is_met_anew() {
        let strangers = Strangers::default();
        let id = TaskId::from_bytes([1; 24]);
        let later = |time| tokio::time::advance(time);
        assert_eq!(strangers.meet(id, 1), Duration::ZERO);
        later(FORGOTTEN_AFTER / 2).await;
        assert_eq!(strangers.meet(id, 1), FORGOTTEN_AFTER / 2);
        later(Duration::from_secs(60)).await;
        assert_eq!(strangers.meet(id, 2), Duration::ZERO, "its journal has grown");
        later(Duration::from_secs(60)).await;
        assert_eq!(strangers.meet(id, 2), Duration::from_secs(60));
        later(FORGOTTEN_AFTER).await;
        assert_eq!(strangers.meet(id, 2), Duration::ZERO, "another node has had it for an hour");
    }
}
