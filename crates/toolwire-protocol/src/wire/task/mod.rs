//! Tasks: work that outlives its request.
//!
//! The core of 2025-11-25 and the tasks extension of the modern era use the same members with two
//! spellings. Both are read everywhere; here they are written in the spelling of the core, and by
//! `in_version` of the codec in the one that a revision has.

mod flat;

pub(crate) use flat::{write_result, write_some};

#[cfg(test)]
mod tests;

use super::{
    Extra, InputRequests, InputResponses, Meta, ResultType,
    macros::{wire_enum, wire_struct},
};
use crate::RawJson;

wire_struct! {
    /// A piece of work and how it stands.
    pub struct Task {
        /// Its id.
        task_id as "taskId": String,
        /// How it stands.
        status: TaskStatus,
        /// How it stands, in words.
        status_message as "statusMessage"?: String,
        /// When it was made, as an ISO 8601 time.
        created_at as "createdAt": String,
        /// When it last changed, as an ISO 8601 time.
        last_updated_at as "lastUpdatedAt": String,
        /// For how many milliseconds after its creation it is kept; none means for ever.
        ttl as "ttl" | "ttlMs": Option<u64>,
        /// How many milliseconds to wait between two looks at it.
        poll_interval as "pollInterval" | "pollIntervalMs"?: u64,
    }
}

wire_enum! {
    /// How a task stands.
    #[derive(PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum TaskStatus {
        /// It is being worked on.
        Working = "working",
        /// It waits for answers.
        InputRequired = "input_required",
        /// It is done.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether it will never change again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

wire_struct! {
    /// The wish of a requestor that its request becomes a task, in 2025-11-25 only.
    pub struct TaskMetadata {
        /// For how many milliseconds the task should be kept.
        ttl?: u64,
    }
}

wire_struct! {
    /// The task a message belongs to, in `_meta`, in 2025-11-25 only.
    pub struct RelatedTaskMetadata {
        /// The id of the task.
        task_id as "taskId": String,
    }
}

wire_struct! {
    /// The parameters of `tasks/get`, `tasks/result` and `tasks/cancel`.
    pub struct TaskRequestParams {
        /// The id of the task.
        task_id as "taskId": String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of `tasks/update`, in the extension.
    pub struct UpdateTaskRequestParams {
        /// The id of the task.
        task_id as "taskId": String,
        /// Answers to what the task asked for.
        input_responses as "inputResponses": InputResponses,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `tasks/list`, in 2025-11-25 only.
    pub struct ListTasksResult {
        /// The tasks on this page.
        tasks: Vec<Task>,
        /// Where the next page starts; absent on the last one.
        next_cursor as "nextCursor"?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

/// A task with whatever its status brings along: the result of `tasks/get` and the parameters of
/// `notifications/tasks/status` and `notifications/tasks`.
///
/// On the wire all members lie side by side; unknown ones end up in the task's `extra`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    pub task: Task,
    /// What it asks for, when it waits for answers.
    pub input_requests: Option<InputRequests>,
    /// What it came to, when it is completed.
    pub result: Option<RawJson>,
    /// The JSON-RPC error, when it failed.
    pub error: Option<RawJson>,
    /// What kind of result it is.
    pub result_type: Option<ResultType>,
    /// Metadata.
    pub meta: Option<Meta>,
}

impl DetailedTask {
    /// A task without any of the other members.
    pub const fn new(task: Task) -> Self {
        Self { task, input_requests: None, result: None, error: None, result_type: None, meta: None }
    }
}

impl From<Task> for DetailedTask {
    fn from(task: Task) -> Self {
        Self::new(task)
    }
}

/// The result that says that the work goes on as a task.
///
/// It is `{"task": {…}}` in 2025-11-25 and flat in the extension; both are read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task as it starts.
    pub task: Task,
    /// What kind of result it is.
    pub result_type: Option<ResultType>,
    /// Metadata.
    pub meta: Option<Meta>,
    /// Members that are not part of the model; in the flat form they end up in the task's `extra`.
    pub extra: Extra,
}

impl CreateTaskResult {
    /// A task without any of the other members.
    pub const fn new(task: Task) -> Self {
        Self { task, result_type: None, meta: None, extra: Extra::new() }
    }
}
