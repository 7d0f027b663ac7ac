//! Undoing tasks of which it is not known whether they were made.

use std::{sync::Arc, time::Duration};

use tokio::{sync::OwnedSemaphorePermit, time::sleep};
use toolwire_protocol::RawJson;
use toolwire_store::{NewLease, NewTask, TaskRequest, Token};

use super::{runs::Busy, service::TaskService};
use crate::ask::random;

/// Maximum number of tasks that are being undone. Each takes less than a kilobyte.
pub(super) const UNDOING: usize = 4096;

/// Time for which a task is kept that was made only to be undone.
const KEEP_UNDONE: Duration = Duration::from_secs(60);

/// Pause before the first repetition.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Cancels a task of which it is not known whether it was made. It is tried until it is done, since a task that was made
/// would be run by another node as soon as its lease is over. What is held meanwhile is small, and is not the task.
pub(super) async fn undo(undoing: Undoing) {
    let Undoing { service, new, _busy, _permit } = undoing;
    let mut pause = FIRST_PAUSE;
    loop {
        // If it was made, this renews its lease; if not, what is made now is in the place of what may still come.
        let known = match service.ask(service.tasks().create(new.clone())).await {
            Ok(_) => service.cancel(&new.owner, &new.id).await.is_ok(),
            Err(error) => !error.is_unavailable(),
        };
        if known {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(service.limits.task_lease / 8);
    }
}

/// A task that is to be undone.
pub(super) struct Undoing {
    service: Arc<TaskService>,
    new: NewTask,
    _busy: Busy,
    _permit: OwnedSemaphorePermit,
}

impl Undoing {
    /// Returns `None` if the maximum number of tasks is being undone already.
    pub(super) fn new(service: &Arc<TaskService>, made: &NewTask) -> Option<Self> {
        let permit = Arc::clone(&service.undoing).try_acquire_owned().ok()?;
        // By its id and its owner it is the task that may have been made. If it was not, this is one that has no tool, so
        // that no node claims it, and that is gone soon.
        let request = TaskRequest::new("", made.request.version, RawJson::from(&serde_json::Value::Null));
        let mut new = NewTask::new(made.id, made.owner, made.quota, request);
        new.limit = service.limits.tasks_per_owner.saturating_add(UNDOING);
        (new.keep, new.ttl) = (KEEP_UNDONE, KEEP_UNDONE);
        // It must not be begun before it is known.
        new.lease = Some(made.lease.unwrap_or_else(|| NewLease {
            node: service.node,
            token: Token::from_bytes(random().unwrap_or_default()),
            lease: service.limits.task_lease,
        }));
        Some(Self { service: Arc::clone(service), new, _busy: service.runs.busy(), _permit: permit })
    }
}
