//! Following a task to its end, whatever the server does meanwhile.

mod legacy;
mod modern;

use std::{future::pending, time::Duration};

use tokio::time::{Instant, sleep_until};
use toolwire_protocol::{
    Method, RawJson, RpcError,
    wire::{ResultType, Task, TaskStatus},
};
use toolwire_transport::BoxFuture;

use super::{handle::TaskHandle, state::TaskState};
use crate::{
    client::{CallOutcome, OnProgress},
    error::{Delivery, Error, ErrorKind},
    host::{HandlerClock, quietly},
};

/// How often to look at a task whose server does not say.
const USUAL_POLL: Duration = Duration::from_secs(1);
/// How often to look at a task of which the server tells by itself: it may have forgotten, or the connection may be
/// broken without anybody having noticed.
const SAFETY_POLL: Duration = Duration::from_secs(30);

/// Called with how a task stands.
type Publish<'a> = Box<dyn FnMut(&TaskState) + Send + 'a>;

/// Somebody who follows a task.
pub(super) struct Follow<'a> {
    task: &'a TaskHandle,
    /// Whether a question that no handler can answer ends it.
    strict: bool,
    publish: Option<Publish<'a>>,
    progress: Option<&'a mut OnProgress>,
    /// How long it may take, where the caller has said so.
    total: Option<Duration>,
}

impl<'a> Follow<'a> {
    pub(super) const fn new(task: &'a TaskHandle) -> Self {
        Self { task, strict: true, publish: None, progress: None, total: None }
    }

    /// Tells how the task stands.
    pub(super) fn publishing(mut self, publish: impl FnMut(&TaskState) + Send + 'a) -> Self {
        self.publish = Some(Box::new(publish));
        self
    }

    /// Leaves questions to others that no handler can answer.
    pub(super) const fn leaving_questions(mut self) -> Self {
        self.strict = false;
        self
    }

    /// Passes progress on, and ends after a time.
    pub(super) fn with(mut self, progress: Option<&'a mut OnProgress>, total: Option<Duration>) -> Self {
        self.progress = progress;
        self.total = total;
        self
    }

    /// Follows the task to its end.
    pub(super) async fn run(mut self) -> Result<CallOutcome, Error> {
        let task = self.task;
        if let Some(outcome) = task.outcome() {
            return Ok(outcome);
        }
        let client = task.client();
        client.check_tasks(Method::GetTask)?;
        let own = HandlerClock::default();
        // Questions come as requests in one of the eras, and handlers that answer those are measured already.
        let legacy = client.facts().core_tasks;
        let thinking = if legacy { &client.host().handler_clock } else { &own };
        let overdue = self.overdue(thinking);
        let outcome = tokio::select! {
            biased;
            outcome = async { if legacy { self.legacy().await } else { self.modern(thinking).await } } => outcome,
            error = overdue => Err(error),
        };
        match &outcome {
            Ok(outcome) => task.ended_with(outcome),
            Err(error) if matches!(error.kind(), ErrorKind::TaskGone | ErrorKind::TaskCancelled) => {
                task.mark_ended();
            }
            Err(_) => {}
        }
        outcome
    }

    /// Waits until it has taken too long. The time in handlers does not count.
    fn overdue<'c>(&self, thinking: &'c HandlerClock) -> impl Future<Output = Error> + use<'c> {
        let longest = self.task.client().settings().limits.task_time;
        let given = self.total.filter(|total| *total < longest);
        let limit = given.unwrap_or(longest);
        let (began, before) = (Instant::now(), thinking.time_of_all());
        async move {
            loop {
                let deadline = began + limit + thinking.time_of_all().saturating_sub(before);
                if Instant::now() >= deadline {
                    let error = Error::timeout(&Method::CallTool.into(), limit);
                    return if given.is_some() { error } else { error.with_limit("task_time") };
                }
                sleep_until(deadline).await;
            }
        }
    }

    /// How long to wait before the task is looked at again.
    fn interval(&self) -> Duration {
        let limits = &self.task.client().settings().limits;
        let wanted = self.task.last_task().and_then(|task| task.poll_interval);
        let wanted = wanted.map_or(USUAL_POLL, Duration::from_millis);
        wanted.min(limits.longest_poll).max(limits.shortest_poll)
    }

    fn publish(&mut self, state: &TaskState) {
        if let Some(publish) = &mut self.publish {
            quietly(|| publish(state));
        }
    }

    fn progress(&mut self, progress: Option<toolwire_protocol::wire::ProgressNotificationParams>) {
        if let (Some(call), Some(progress)) = (&mut self.progress, progress) {
            quietly(|| call(progress));
        }
    }

    /// The end, where the state of a task tells all about it.
    fn end(&self, state: &TaskState) -> Option<Result<CallOutcome, Error>> {
        let details = state.details();
        let wrong = |why: &str| Error::invalid_response(&Method::GetTask.into(), why);
        match state.status() {
            TaskStatus::Completed => {
                let result = details.result.as_ref();
                let result = result.ok_or_else(|| wrong("the task is completed and has no result"));
                Some(result.and_then(|result| self.outcome(result)))
            }
            TaskStatus::Failed => Some(match (&details.error, &details.result) {
                (Some(error), _) => Err(match error.decode::<RpcError>() {
                    Ok(error) => Error::from_rpc(&Method::CallTool.into(), error),
                    Err(error) => wrong(&format!("the error of the failed task: {error}")),
                }),
                // That is how tasks fail in the core of 2025-11-25.
                (None, Some(result)) => self.outcome(result),
                (None, None) => Err(wrong("the task has failed and does not say why")),
            }),
            TaskStatus::Cancelled => Some(Err(self.cancelled(state.as_task()))),
            _ => None,
        }
    }

    /// The result of the call that has become the task.
    fn outcome(&self, result: &RawJson) -> Result<CallOutcome, Error> {
        let wrong = |why: &dyn std::fmt::Display| {
            let text = format!("the result of the task {:?} is not that of a tool: {why}", self.task.id());
            Error::new(ErrorKind::InvalidResponse, Delivery::Unknown, text)
        };
        let mut outcome: CallOutcome = result.decode().map_err(|error| wrong(&error))?;
        if self.task.tool().is_some_and(|tool| self.task.client().host().wrapped.has(tool)) {
            outcome.mark_wrapped();
        }
        match &outcome.as_result().result_type {
            None | Some(ResultType::Complete) => Ok(outcome),
            Some(other) => Err(wrong(&format_args!("unexpected result type {:?}", other.as_str()))),
        }
    }

    fn cancelled(&self, task: &Task) -> Error {
        let why = task.status_message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        let text = format!("the task {:?} was cancelled{why}", self.task.id());
        Error::new(ErrorKind::TaskCancelled, Delivery::Rejected, text)
    }
}

/// A look at the task that is under way.
type Look<'a> = Option<BoxFuture<'a, Result<TaskState, Error>>>;

/// Waits for something that may not be under way.
async fn maybe<T>(future: &mut Option<BoxFuture<'_, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
