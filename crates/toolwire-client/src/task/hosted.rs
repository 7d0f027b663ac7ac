//! Tasks that this client runs for a server of 2025-11-25: questions whose answers take a while, asked with the wish that
//! they become tasks.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;
use toolwire_protocol::{
    Method, MethodName, RawJson, Request, RequestId, RpcError,
    envelope::write_notification,
    wire::{
        CreateTaskResult, ElicitRequestParams, InputRequest, JsonObject, ListTasksResult,
        PaginatedRequestParams, Task, TaskMetadata, TaskRequestParams, TaskStatus, meta::RELATED_TASK,
    },
};

use crate::{
    host::{Host, Reply},
    lock::lock,
    waiting::{Charge, Share, WAITING_BYTES},
};

/// How often a server should look at a task, in milliseconds.
const POLL_MS: u64 = 1000;
/// The shortest time for which a task is kept.
const SHORTEST_TTL: Duration = Duration::from_secs(1);
/// How many requests may wait for the result of one task.
const MAX_WAITING: usize = 8;

/// All tasks that are kept.
#[derive(Default)]
pub(crate) struct HostedTasks {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tasks: HashMap<String, Hosted>,
    begun: u64,
}

struct Hosted {
    /// The later, the larger.
    number: u64,
    task: Task,
    expires: Instant,
    outcome: Option<Result<RawJson, RpcError>>,
    /// What the outcome weighs.
    charge: Option<Charge>,
    waiting: Vec<(RequestId, Reply)>,
}

/// What a question says of the wish that it becomes a task.
pub(crate) const fn wish(question: &InputRequest) -> Option<&TaskMetadata> {
    match question {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => form.task.as_ref(),
        InputRequest::Elicit(ElicitRequestParams::Url(visit)) => visit.task.as_ref(),
        InputRequest::CreateMessage(params) => params.task.as_ref(),
        _ => None,
    }
}

/// What the queue of requests knows the question of a task by.
pub(crate) fn queue_id(id: &str) -> RequestId {
    RequestId::from(format!("toolwire task {id}"))
}

impl HostedTasks {
    /// Begins a task, if there is room for it.
    pub(crate) fn begin(&self, host: &Host, wish: &TaskMetadata) -> Result<Task, RpcError> {
        let limits = host.limits();
        let mut state = lock(&self.state);
        let now = Instant::now();
        state.sweep(host, now);
        if state.tasks.len() >= limits.hosted_tasks {
            return Err(RpcError::internal("this client is busy (the limit hosted_tasks)"));
        }
        let longest = limits.hosted_task_ttl.max(SHORTEST_TTL);
        let ttl = wish.ttl.map_or(longest, Duration::from_millis).clamp(SHORTEST_TTL, longest);
        state.begun += 1;
        let number = state.begun;
        let made = timestamp(SystemTime::now());
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let mut task = Task::new(new_id(number), TaskStatus::Working, made.clone(), made, Some(ttl_ms));
        task.poll_interval = Some(POLL_MS);
        let hosted = Hosted {
            number,
            task: task.clone(),
            expires: now + ttl,
            outcome: None,
            charge: None,
            waiting: Vec::new(),
        };
        state.tasks.insert(task.task_id.clone(), hosted);
        Ok(task)
    }

    /// The question of a task has its answer.
    pub(crate) fn end(&self, host: &Arc<Host>, id: &str, outcome: Result<RawJson, RpcError>) {
        let status = if outcome.is_ok() { TaskStatus::Completed } else { TaskStatus::Failed };
        let ended = lock(&self.state).end(host, id, status, outcome);
        if let Some(ended) = ended {
            ended.tell(host);
        }
    }

    /// Answers a request of the server that is about tasks.
    pub(crate) fn serve(&self, host: &Arc<Host>, method: Method, request: &Request, reply: Reply) {
        lock(&self.state).sweep(host, Instant::now());
        let served = match method {
            Method::GetTask => self.get(request),
            Method::ListTasks => self.list(request),
            Method::CancelTask => self.cancel(host, request),
            Method::GetTaskPayload => return self.result(request, reply),
            _ => Err(RpcError::method_not_found(request.method.as_str())),
        };
        reply(served);
    }

    fn get(&self, request: &Request) -> Result<RawJson, RpcError> {
        let TaskRequestParams { task_id, .. } = decode(request)?;
        written(&lock(&self.state).find(&task_id)?.task)
    }

    fn list(&self, request: &Request) -> Result<RawJson, RpcError> {
        let params: PaginatedRequestParams = decode(request)?;
        if params.cursor.is_some() {
            return Err(RpcError::invalid_params("there is no such cursor: all tasks are on one page"));
        }
        let state = lock(&self.state);
        let mut tasks: Vec<&Hosted> = state.tasks.values().collect();
        tasks.sort_unstable_by_key(|hosted| std::cmp::Reverse(hosted.number));
        written(&ListTasksResult::new(
            tasks.into_iter().map(|hosted| hosted.task.clone()).collect::<Vec<_>>(),
        ))
    }

    fn cancel(&self, host: &Arc<Host>, request: &Request) -> Result<RawJson, RpcError> {
        let TaskRequestParams { task_id, .. } = decode(request)?;
        let (task, ended) = {
            let mut state = lock(&self.state);
            if state.find(&task_id)?.outcome.is_some() {
                return Err(RpcError::invalid_params("the task has ended already"));
            }
            let why = Err(RpcError::internal("the task was cancelled"));
            let ended = state.end(host, &task_id, TaskStatus::Cancelled, why);
            (state.find(&task_id)?.task.clone(), ended)
        };
        host.stop(&queue_id(&task_id));
        if let Some(ended) = ended {
            ended.tell(host);
        }
        written(&task)
    }

    /// The result, as soon as there is one.
    fn result(&self, request: &Request, reply: Reply) {
        let found = decode(request).and_then(|TaskRequestParams { task_id, .. }| {
            let mut state = lock(&self.state);
            let hosted = state.tasks.get_mut(&task_id).ok_or_else(unknown)?;
            match &hosted.outcome {
                Some(Ok(result)) => Ok(Ok(related(result, &task_id)?)),
                Some(Err(error)) => Err(error.clone()),
                None if hosted.waiting.len() >= MAX_WAITING => {
                    Err(RpcError::internal("too many requests wait for the result of this task"))
                }
                None => Ok(Err(task_id)),
            }
        });
        match found {
            Ok(Ok(result)) => reply(Ok(result)),
            Err(error) => reply(Err(error)),
            Ok(Err(task_id)) => {
                let mut state = lock(&self.state);
                match state.tasks.get_mut(&task_id) {
                    Some(hosted) => hosted.waiting.push((request.id.clone(), reply)),
                    // Nobody takes a task away between the two, because requests are read one after the other.
                    None => reply(Err(unknown())),
                }
            }
        }
    }

    /// The server does not wait for a result any more.
    pub(crate) fn cancelled(&self, id: &RequestId) {
        for hosted in lock(&self.state).tasks.values_mut() {
            hosted.waiting.retain(|(waiting, _)| waiting != id);
        }
    }

    /// Whoever asked is gone.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut lock(&self.state).tasks);
        drop(gone);
    }
}

/// A task that has just ended, and those who waited for it.
struct Ended {
    task: Task,
    outcome: Result<RawJson, RpcError>,
    waiting: Vec<(RequestId, Reply)>,
}

impl Ended {
    fn tell(self, host: &Arc<Host>) {
        for (_, reply) in self.waiting {
            reply(self.outcome.clone().and_then(|result| related(&result, &self.task.task_id)));
        }
        let method = MethodName::from(Method::TaskStatus);
        if let Ok(message) = write_notification(&method, &self.task) {
            host.notify(method, message);
        }
    }
}

impl State {
    fn find(&self, id: &str) -> Result<&Hosted, RpcError> {
        self.tasks.get(id).ok_or_else(unknown)
    }

    /// Ends a task once.
    fn end(
        &mut self,
        host: &Host,
        id: &str,
        status: TaskStatus,
        outcome: Result<RawJson, RpcError>,
    ) -> Option<Ended> {
        let hosted = self.tasks.get_mut(id).filter(|hosted| hosted.outcome.is_none())?;
        let weight = outcome.as_ref().map_or(0, |result| result.text().len());
        let charge = host.waiting_bytes.guard(weight, Share::Quarter);
        let fits = charge.is_some() || outcome.is_err();
        let (status, outcome) = if fits {
            (status, outcome)
        } else {
            let error = RpcError::internal(format!(
                "this client has no room for the answer (the limit {WAITING_BYTES})"
            ));
            (TaskStatus::Failed, Err(error))
        };
        hosted.task.status = status;
        hosted.task.status_message = outcome.as_ref().err().map(|error| error.message.to_string());
        hosted.task.last_updated_at = timestamp(SystemTime::now());
        hosted.outcome = Some(outcome.clone());
        hosted.charge = charge;
        Some(Ended { task: hosted.task.clone(), outcome, waiting: std::mem::take(&mut hosted.waiting) })
    }

    /// Forgets what has expired, and stops what is still being worked on of it.
    fn sweep(&mut self, host: &Host, now: Instant) {
        self.tasks.retain(|id, hosted| {
            let alive = hosted.expires > now;
            if !alive {
                host.stop(&queue_id(id));
                for (_, reply) in hosted.waiting.drain(..) {
                    reply(Err(unknown()));
                }
            }
            alive
        });
    }
}

/// The answer to a request that has become this task.
pub(crate) fn created(task: Task) -> Result<RawJson, RpcError> {
    written(&CreateTaskResult::new(task))
}

fn decode<T: DeserializeOwned>(request: &Request) -> Result<T, RpcError> {
    request.params.decode().map_err(|error| RpcError::invalid_params(format!("{}: {error}", request.method)))
}

fn written<T: Serialize>(result: &T) -> Result<RawJson, RpcError> {
    RawJson::of(result).map_err(|error| RpcError::internal(format!("the answer cannot be written: {error}")))
}

/// A result, with the task it belongs to.
fn related(result: &RawJson, id: &str) -> Result<RawJson, RpcError> {
    let cannot =
        |error: serde_json::Error| RpcError::internal(format!("the answer cannot be written: {error}"));
    let mut members: JsonObject = result.decode().map_err(cannot)?;
    let meta = members.entry("_meta").or_insert_with(|| JsonObject::new().into());
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(RELATED_TASK.to_owned(), serde_json::json!({ "taskId": id }));
    }
    written(&members)
}

/// One text for all that is not there, whatever the reason.
fn unknown() -> RpcError {
    RpcError::invalid_params("there is no such task, or it has expired")
}

/// An id that was never used and cannot be guessed: the hashers are keyed with randomness of the system.
fn new_id(number: u64) -> String {
    let random = || RandomState::new().hash_one(number);
    format!("{:016x}{:016x}-{number}", random(), random())
}

/// A moment as the protocol writes it: UTC with milliseconds.
fn timestamp(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Days since 0000-03-01, in eras of 400 years, so that leap days are the last of their year.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

impl fmt::Debug for HostedTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedTasks").field("tasks", &lock(&self.state).tasks.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_protocol_does() {
        for (second, expected) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_709_251_199, "2024-02-29T23:59:59.007Z"),
            (1_709_251_200, "2024-03-01T00:00:00.007Z"),
            (1_795_046_399, "2026-11-18T23:59:59.007Z"),
            (4_102_444_800, "2100-01-01T00:00:00.007Z"),
        ] {
            assert_eq!(
                timestamp(UNIX_EPOCH + Duration::from_secs(second) + Duration::from_millis(7)),
                expected
            );
        }
    }

    #[test]
    fn no_id_is_used_twice() {
        assert_ne!(new_id(1), new_id(1));
    }
}
