//! How a task stands.

use std::time::Duration;

use toolwire_protocol::wire::{DetailedTask, InputRequest, InputRequests, Task, TaskStatus};

/// How a task stands; from [`TaskHandle::get`](super::TaskHandle::get) and [`Updates`](super::Updates).
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState(DetailedTask);

impl TaskState {
    pub(super) const fn new(task: DetailedTask) -> Self {
        Self(task)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.0.task.task_id
    }

    /// Whether it is being worked on, waits for answers, or has ended, and how.
    pub const fn status(&self) -> TaskStatus {
        self.0.task.status
    }

    /// Whether it will never change again.
    pub const fn has_ended(&self) -> bool {
        self.status().is_terminal()
    }

    /// How it stands in the server's words.
    pub fn message(&self) -> Option<&str> {
        self.0.task.status_message.as_deref()
    }

    /// What it waits for, each question under the key it is [answered](super::TaskHandle::answer) with. Servers of
    /// 2025-11-25 ask in another way, so they list none.
    pub fn questions(&self) -> impl Iterator<Item = (&str, &InputRequest)> {
        self.0.input_requests.iter().flat_map(InputRequests::iter)
    }

    /// For how long after its creation the server keeps it; `None` means without an end. It may change.
    pub fn ttl(&self) -> Option<Duration> {
        self.0.task.ttl.map(Duration::from_millis)
    }

    /// All that the server tells of every task.
    pub const fn as_task(&self) -> &Task {
        &self.0.task
    }

    pub(super) const fn details(&self) -> &DetailedTask {
        &self.0
    }
}
