//! From a task as it is kept to what each revision is told of it.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::{
    Feature, RawJson, RpcError, Version,
    codec::{Adapt, WireResult, adapt_error},
    time::rfc3339,
    wire::{
        CallToolResult, Content, CreateTaskResult, DetailedTask, ElicitRequestParams, InputRequest,
        InputRequests, Meta, RequestParams, ResultType, Task, TaskStatus, meta::RELATED_TASK,
    },
};

/// A task at one moment, without the spelling of any revision. What a status does not bring along is not told, whatever
/// is in here.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made of a record, member by member")]
pub struct TaskState {
    /// Its id.
    pub id: String,
    /// How it stands. Completed means that it has a result, whatever that says.
    pub status: TaskStatus,
    /// Whether its result says that the tool has failed.
    pub is_error: bool,
    /// How it stands, in the words of whoever works on it.
    pub message: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed.
    pub updated_ms: u64,
    /// When it will be gone if nothing else happens.
    pub expires_ms: u64,
    /// How many milliseconds to wait between two looks at it.
    pub poll_ms: u64,
    /// The questions that wait for an answer, by their keys for the client.
    pub open: InputRequests,
    /// What it came to.
    pub outcome: Option<TaskOutcome>,
}

/// What a task came to.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a request has a result or an error")]
pub enum TaskOutcome {
    /// The result of its call.
    Result(CallToolResult),
    /// The error that its call ended with.
    Error(RpcError),
}

/// How many characters of a text are told as the message of a status.
const MESSAGE_CHARS: usize = 200;

impl TaskState {
    /// The status that `version` has for it: a result that says that the tool has failed makes the task of one revision
    /// a failed one, and is a result like any other in the next.
    pub const fn status_in(&self, version: Version) -> TaskStatus {
        match self.status {
            TaskStatus::Completed if self.is_error && version.has(Feature::CoreTasks) => TaskStatus::Failed,
            status => status,
        }
    }

    /// The task without what its status brings along.
    pub fn task(&self, version: Version) -> Task {
        let status = self.status_in(version);
        let mut task = Task::new(
            self.id.as_str(),
            status,
            rfc3339(self.created_ms),
            rfc3339(self.updated_ms.max(self.created_ms)),
            Some(self.expires_ms.saturating_sub(self.created_ms).max(1)),
        )
        .poll_interval(self.poll_ms.max(1));
        task.status_message = self.status_message();
        task
    }

    /// How it stands, in words: what it came to if it failed, what it waits for, or what was said last.
    fn status_message(&self) -> Option<String> {
        let first_text =
            |result: &CallToolResult| result.content.iter().find_map(Content::as_text).map(shorten);
        let found = match (self.status, &self.outcome) {
            (TaskStatus::Failed, Some(TaskOutcome::Error(error))) => Some(shorten(&error.message)),
            (TaskStatus::Completed, Some(TaskOutcome::Result(result))) if self.is_error => first_text(result),
            (TaskStatus::InputRequired, _) => {
                self.open.iter().next().map(|(_, question)| waits_for(question))
            }
            _ => None,
        };
        found.or_else(|| self.message.as_deref().map(shorten)).filter(|message| !message.is_empty())
    }

    /// The answer to the call that became this task. It is written as a [`CreatedTask`].
    pub fn created(&self) -> CreateTaskResult {
        // A task begins as one that is worked on, however quick it was.
        let state = Self { status: TaskStatus::Working, outcome: None, ..self.clone() };
        CreateTaskResult::new(state.task(Version::LATEST))
    }

    /// The answer to `tasks/get`, and to `tasks/cancel` where that answers with a task.
    pub fn shown(&self, version: Version) -> ShownTask {
        ShownTask { task: self.detailed(version), version }
    }

    /// The parameters of the notification that tells of a change. `meta` is what belongs to the stream it goes out by.
    pub fn notification(&self, version: Version, meta: Option<Meta>) -> ShownTask {
        let mut task = self.detailed(version);
        task.meta = meta;
        ShownTask { task, version }
    }

    fn detailed(&self, version: Version) -> DetailedTask {
        let mut task = DetailedTask::new(self.task(version));
        // The core of a revision has other ways for the rest: `tasks/result`, and requests on its stream.
        if !version.has(Feature::TasksExtension) {
            return task;
        }
        match (self.status, &self.outcome) {
            (TaskStatus::InputRequired, _) => task.input_requests = Some(self.open.clone()),
            (TaskStatus::Completed, Some(TaskOutcome::Result(result))) => {
                task.result = Some(inline(result.clone(), version));
            }
            (TaskStatus::Failed, Some(TaskOutcome::Error(error))) => {
                task.error = RawJson::of(&adapt_error(version, error.clone())).ok();
            }
            _ => {}
        }
        task
    }

    /// The answer to `tasks/result`: exactly what the call would have been answered with, and a word on which task it
    /// belongs to. `None` while there is none.
    pub fn payload(&self) -> Option<Result<CallToolResult, RpcError>> {
        match (self.status, &self.outcome) {
            (TaskStatus::Cancelled, _) => Some(Err(RpcError::internal("the task was cancelled"))),
            (status, _) if !status.is_terminal() => None,
            (_, Some(TaskOutcome::Result(result))) => {
                let mut result = result.clone();
                relate(&mut result.meta, &self.id);
                Some(Ok(result))
            }
            (_, Some(TaskOutcome::Error(error))) => Some(Err(error.clone())),
            (_, None) => Some(Err(RpcError::internal("the task has ended without a result"))),
        }
    }
}

/// A result as part of a task. Which task that is, is said around it.
fn inline(mut result: CallToolResult, version: Version) -> RawJson {
    result.adapt(version);
    result.result_type = Some(ResultType::Complete);
    if let Some(meta) = &mut result.meta {
        meta.remove(RELATED_TASK);
    }
    result.meta = result.meta.filter(|meta| !meta.is_empty());
    // What was read from JSON can be written as JSON.
    RawJson::of(&result).unwrap_or_else(|_| RawJson::from(&serde_json::json!({"content": []})))
}

fn waits_for(question: &InputRequest) -> String {
    match question {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
            shorten(&format!("waits for an answer: {}", form.message))
        }
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => {
            shorten(&format!("waits for a visit to a URL: {}", url.message))
        }
        InputRequest::CreateMessage(_) => "waits for the client's model".to_owned(),
        InputRequest::ListRoots(_) => "waits for the client's roots".to_owned(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MESSAGE_CHARS - 1).chain(['…']).collect(),
    }
}

/// Says in `_meta` that a message belongs to a task, as the core of 2025-11-25 wants it.
pub fn relate(meta: &mut Option<Meta>, task: &str) {
    let related = BTreeMap::from([("taskId".to_owned(), serde_json::Value::from(task))]);
    meta.get_or_insert_default().insert(RELATED_TASK, serde_json::Map::from_iter(related));
}

/// Says in a question that it belongs to a task.
pub fn relate_question(question: &mut InputRequest, task: &str) {
    match question {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => relate(&mut form.meta, task),
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => relate(&mut url.meta, task),
        InputRequest::CreateMessage(params) => relate(&mut params.meta, task),
        InputRequest::ListRoots(params) => {
            relate(&mut params.get_or_insert_with(RequestParams::new).meta, task);
        }
    }
}

/// A new task, as the result of the call that became it.
#[derive(Clone, Debug)]
pub struct CreatedTask {
    created: CreateTaskResult,
    version: Version,
}

impl From<CreateTaskResult> for CreatedTask {
    fn from(created: CreateTaskResult) -> Self {
        Self { created, version: Version::LATEST }
    }
}

impl Serialize for CreatedTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.created.in_version(self.version).serialize(serializer)
    }
}

impl Adapt for CreatedTask {
    fn adapt(&mut self, version: Version) {
        self.version = version;
    }
}

impl WireResult for CreatedTask {
    const RESULT_TYPE: &'static str = "task";

    fn take_meta(&mut self) -> Option<Meta> {
        self.created.result_type = None;
        self.created.meta.take()
    }
}

/// A task as a result, or as the parameters of a notification, for the revision that it was made for.
#[derive(Clone, Debug)]
pub struct ShownTask {
    task: DetailedTask,
    version: Version,
}

impl Serialize for ShownTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.task.in_version(self.version).serialize(serializer)
    }
}

impl Adapt for ShownTask {
    fn adapt(&mut self, version: Version) {
        debug_assert_eq!(version, self.version, "a task was made for another revision");
    }
}

impl WireResult for ShownTask {
    fn take_meta(&mut self) -> Option<Meta> {
        self.task.meta.take()
    }
}
