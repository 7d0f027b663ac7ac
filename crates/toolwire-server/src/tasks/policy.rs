//! When the call of a tool becomes a task.

use std::{fmt, time::Duration};

use toolwire_protocol::{
    ErrorCode, Feature, RawJson, RpcError, Version,
    classify::Fault,
    wire::{TASKS_EXTENSION, TaskSupport},
};

use super::Engine;
use crate::{
    handler::{Handler, SharedEndpoint},
    output::IntoToolOutput,
    route::{Needs, tool},
};

/// When calls of a tool become tasks, and how these are run. Given to [`ToolRoute::task`](crate::ToolRoute::task).
///
/// A caller that knows nothing of tasks is answered as always, unless they are [`required`](Self::required).
///
/// # What a handler of a task must keep to
///
/// It may be run several times, on several replicas: after each question and after each crash it starts anew, and finds
/// what it has recorded. So it must not have effects outside [`once`](crate::Context::once) before its last question or
/// step, nor make questions of time, randomness or reads that are not recorded, nor keep state in statics, nor start work
/// that outlives it. Work that cannot be run again, because it holds a child process for instance, is
/// [`live`](Self::live).
///
/// ```
/// use std::time::Duration;
/// use toolwire_server::{TaskPolicy, tool};
///
/// let quick_or_not = tool("sum", || async { "3" }).task(TaskPolicy::after(Duration::from_secs(2)));
/// let agent = tool("agent", || async { "done" }).task(TaskPolicy::required().live());
/// ```
#[derive(Clone)]
#[must_use]
pub struct TaskPolicy {
    mode: Mode,
    keep: Option<Duration>,
    run_time: Option<Duration>,
    attempts: u32,
    revision: u32,
    live: bool,
    older: Vec<(u32, Older)>,
    /// What is wrong with it.
    problem: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Optional,
    After(Duration),
    Required,
}

/// A handler that knows the journals of an older revision.
#[derive(Clone)]
struct Older {
    endpoint: SharedEndpoint,
    needs: Needs,
}

/// How often a task is run without any progress before it is given up.
const ATTEMPTS: u32 = 5;

impl TaskPolicy {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            keep: None,
            run_time: None,
            attempts: ATTEMPTS,
            revision: 1,
            live: false,
            older: Vec::new(),
            problem: None,
        }
    }

    /// Every call of a caller that can deal with tasks becomes one.
    pub fn optional() -> Self {
        Self::new(Mode::Optional)
    }

    /// A call becomes a task when it has taken so long, if its caller can deal with tasks.
    pub fn after(time: Duration) -> Self {
        Self::new(Mode::After(time))
    }

    /// Every call becomes a task, and callers that cannot deal with tasks are refused.
    pub fn required() -> Self {
        Self::new(Mode::Required)
    }

    /// For work that cannot be run again: it waits for answers where it is, and fails when its process ends.
    pub fn live(mut self) -> Self {
        self.live = true;
        self
    }

    /// How long a task is kept after its last change, at least as long as it works. By default a day, without a
    /// [store](crate::ServerBuilder::store) an hour. A client of 2025-11-25 may ask for another time, up to this one or a day,
    /// whichever is longer.
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = Some(time);
        self
    }

    /// How long the handler may run between two questions. By default the limit
    /// [`task_run_time`](crate::Limits::task_run_time).
    pub fn run_time(mut self, time: Duration) -> Self {
        self.run_time = Some(time);
        self
    }

    /// How often a task is begun without anything being recorded, because its process crashed or was lost, before it
    /// fails. By default five times.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Which revision of the handler this is. Raise it when what a step means has changed: tasks of older revisions then
    /// run only where [`older`](Self::older) has their handler, and wait otherwise. By default 1.
    pub fn revision(mut self, revision: u32) -> Self {
        self.revision = revision;
        self
    }

    /// Runs the tasks that were begun by an older revision of the handler.
    pub fn older<H, In>(mut self, revision: u32, handler: H) -> Self
    where
        H: Handler<In>,
        H::Output: IntoToolOutput,
    {
        if self.older.iter().any(|(known, _)| *known == revision) {
            self.problem = Some(format!("there are two handlers for its revision {revision}"));
        }
        let route = tool("older", handler);
        self.older.push((revision, Older { endpoint: route.endpoint, needs: route.needs }));
        self
    }

    pub(crate) fn has_older(&self) -> bool {
        !self.older.is_empty()
    }

    /// The handlers of older revisions.
    pub(crate) fn endpoints(&mut self) -> impl Iterator<Item = &mut SharedEndpoint> {
        self.older.iter_mut().map(|(_, older)| &mut older.endpoint)
    }

    /// The handler of a revision that is not the newest.
    pub(super) fn older_endpoint(&self, revision: u32) -> Option<&SharedEndpoint> {
        self.older.iter().find(|(known, _)| *known == revision).map(|(_, older)| &older.endpoint)
    }

    /// All revisions that can be run.
    pub(super) fn revisions(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.revision).chain(self.older.iter().map(|(revision, _)| *revision))
    }

    pub(super) fn current(&self) -> u32 {
        self.revision
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    pub(super) fn most_attempts(&self) -> u32 {
        self.attempts
    }

    pub(super) fn kept(&self) -> Option<Duration> {
        self.keep
    }

    pub(super) fn longest_run(&self) -> Option<Duration> {
        self.run_time
    }

    pub(crate) fn support(&self) -> TaskSupport {
        match self.mode {
            Mode::Optional | Mode::After(_) => TaskSupport::Optional,
            Mode::Required => TaskSupport::Required,
        }
    }

    /// Adds what is wrong with it, and what its older handlers need, to the needs of the route.
    pub(crate) fn check(&self, needs: &mut Needs) {
        needs.problems.extend(self.problem.clone());
        if self.older.iter().any(|(revision, _)| *revision == self.revision) {
            needs.problems.push(format!("its revision {} is the newest and an older one", self.revision));
        }
        for (_, older) in &self.older {
            needs.states.extend_from_slice(&older.needs.states);
            needs.problems.extend_from_slice(&older.needs.problems);
            needs.from_request.extend_from_slice(&older.needs.from_request);
            needs.logs |= older.needs.logs;
        }
    }

    /// What becomes of a call.
    pub(super) fn course(&self, caller: TaskCaller) -> Course {
        match (self.mode, caller) {
            (_, TaskCaller::Core { asks: true }) => Course::AtOnce,
            (Mode::Optional | Mode::Required, TaskCaller::Extension { declared: true }) => Course::Threshold,
            (Mode::After(time), TaskCaller::Extension { declared: true }) => Course::After(time),
            (Mode::Optional | Mode::After(_), _) => Course::Inline,
            (Mode::Required, TaskCaller::Extension { declared: false }) => {
                Course::Refused(extension_is_missing())
            }
            (Mode::Required, TaskCaller::Core { asks: false }) => {
                let message = "this tool is run as a task only; add `task` to the request";
                Course::Refused(RpcError::new(ErrorCode::METHOD_NOT_FOUND, message))
            }
            (Mode::Required, TaskCaller::Neither) => Course::Unable,
        }
    }
}

impl fmt::Debug for TaskPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPolicy")
            .field("mode", &self.mode)
            .field("revision", &self.revision)
            .field("live", &self.live)
            .finish_non_exhaustive()
    }
}

/// The error for a client that has to declare the extension.
pub(crate) fn extension_is_missing() -> RpcError {
    let required = serde_json::json!({ "extensions": { TASKS_EXTENSION: {} } });
    Fault::MissingClientCapability { required: RawJson::from(&required) }.rpc_error()
}

/// What a tool whose calls may become tasks brings along.
#[derive(Clone)]
pub(crate) struct TaskOffer {
    pub(crate) policy: TaskPolicy,
    /// Makes the engine. It is here so that a program without such tools does not contain it.
    pub(crate) engine: Engine,
}

/// What is known of a caller about tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskCaller {
    /// Its revision has tasks in the core, and the request says whether it is to be one.
    Core { asks: bool },
    /// Its revision has them as an extension, which the request declares or not.
    Extension { declared: bool },
    /// Its revision has none.
    Neither,
}

impl TaskCaller {
    pub(super) fn of(version: Version, asks: bool, declared: bool) -> Self {
        if version.has(Feature::CoreTasks) {
            Self::Core { asks }
        } else if version.has(Feature::TasksExtension) {
            Self::Extension { declared }
        } else {
            Self::Neither
        }
    }
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Course {
    Inline,
    /// A task before anything of it is looked at.
    AtOnce,
    /// A task when the extractors are done.
    Threshold,
    /// A task when it has taken so long.
    After(Duration),
    Refused(RpcError),
    /// The caller's revision has no tasks, and the tool nothing else.
    Unable,
}

impl Course {
    /// What a model reads of [`Unable`](Self::Unable).
    pub(super) const UNABLE: &str =
        "this tool is run as a task only, which clients can do from protocol version 2025-11-25 on";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(policy: &TaskPolicy, version: Version, asks: bool, declared: bool) -> Course {
        policy.course(TaskCaller::of(version, asks, declared))
    }

    #[test]
    fn what_a_call_becomes_depends_on_the_policy_and_on_what_the_caller_knows_of_tasks() {
        use Version::{V2025_06_18, V2025_11_25, V2026_07_28};
        let two = Duration::from_secs(2);
        let (optional, after, required) =
            (TaskPolicy::optional(), TaskPolicy::after(two), TaskPolicy::required());
        for policy in [&optional, &after, &required] {
            assert_eq!(course(policy, V2025_11_25, true, false), Course::AtOnce);
        }
        assert_eq!(course(&optional, V2026_07_28, false, true), Course::Threshold);
        assert_eq!(course(&required, V2026_07_28, true, true), Course::Threshold);
        assert_eq!(course(&after, V2026_07_28, false, true), Course::After(two));
        for policy in [&optional, &after] {
            assert_eq!(course(policy, V2026_07_28, true, false), Course::Inline);
            assert_eq!(course(policy, V2025_11_25, false, true), Course::Inline);
            assert_eq!(course(policy, V2025_06_18, true, true), Course::Inline);
        }
        let Course::Refused(missing) = course(&required, V2026_07_28, false, false) else { panic!() };
        assert_eq!(missing.code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
        let Course::Refused(unasked) = course(&required, V2025_11_25, false, false) else { panic!() };
        assert_eq!(unasked.code, ErrorCode::METHOD_NOT_FOUND);
        assert_eq!(course(&required, V2025_06_18, true, false), Course::Unable);
    }
}
