//! From a call to a task.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};
use toolwire_protocol::{
    Feature, RawJson, RpcError,
    journal::{Entry, FORMAT, Folded, fold, unfold},
    schema::is_object_root,
    wire::{CreateTaskResult, JsonObject, TASKS_EXTENSION, TaskMetadata},
};
use toolwire_store::{Created, NewLease, NewTask, StoreError, TaskId, TaskRequest, Token};
use tracing::Instrument;

use super::{
    InTask, Run, carry,
    policy::{Course, TaskCaller, TaskPolicy},
    run::{Pulse, TaskRun},
    runner::Runner,
    runs::RunPlace,
    service::{TaskService, not_started},
    undo::{Undoing, undo},
    vault::{Part, TaskVault},
    view,
};
use crate::{
    Context, Reply, ToolRoute,
    ask::random,
    dispatch::{adapted, inline_tool, run_tool},
    engine::{DetachedRun, rounds},
    handler::Answer,
    output::{IntoToolOutput, ToolError},
};

/// How long the outcome of a write that makes a task is looked for before the caller is told that it is not known.
const CREATE_TIME: Duration = Duration::from_secs(10);

/// How long to wait before a write is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// How often a call that could become a task looks for a place to run in.
const PLACE_PACE: Duration = Duration::from_secs(1);

/// How long tasks are kept by default, in a store that lasts and in one that does not.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
const KEEP_IN_MEMORY: Duration = Duration::from_secs(60 * 60);

/// Answers the call of a tool, by its result or by a task.
pub(super) fn call(service: Arc<TaskService>, cx: Context, route: Arc<ToolRoute>) -> Answer {
    let Some(offer) = &route.task else { return without_tasks(cx, &route) };
    super::Tasks::start(Arc::clone(&service), Duration::ZERO);
    let version = cx.0.version;
    let asks = cx.0.peek.task.is_some();
    let declared = version.has(Feature::TasksExtension) && cx.caller().has_extension(TASKS_EXTENSION);
    match offer.policy.course(TaskCaller::of(version, asks, declared)) {
        Course::Inline => inline_tool(cx, &route),
        Course::Refused(error) => Box::pin(std::future::ready(Err(error))),
        Course::Unable => Box::pin(std::future::ready(ToolError::message(Course::UNABLE).into_tool_output())),
        Course::AtOnce => Box::pin(at_once(service, cx, route)),
        // What does not wait at the threshold is behind it before anything of it has run.
        Course::Threshold if !route.threshold => match route.refused(&cx) {
            Some(refused) => Box::pin(std::future::ready(refused)),
            None => Box::pin(at_once(service, cx, route)),
        },
        Course::Threshold => detachable(service, cx, route, None),
        Course::After(time) => detachable(service, cx, route, Some(time)),
    }
}

/// A tool that has no tasks, on a server that has some.
fn without_tasks(cx: Context, route: &Arc<ToolRoute>) -> Answer {
    if cx.0.version.has(Feature::CoreTasks) && cx.0.peek.task.is_some() {
        let message =
            format!("the tool {:?} does not support tasks; call it without `task`", route.tool.name);
        let error = RpcError::new(toolwire_protocol::ErrorCode::METHOD_NOT_FOUND, message);
        return Box::pin(std::future::ready(Err(error)));
    }
    inline_tool(cx, route)
}

/// Makes a task of a call of which nothing has run.
async fn at_once(service: Arc<TaskService>, cx: Context, route: Arc<ToolRoute>) -> Result<Reply, RpcError> {
    let task = cx.0.task.get_or_init(Arc::default);
    task.gate.open();
    let place = service.runs.place();
    let work = Work::NotBegun;
    let core = cx.0.version.has(Feature::CoreTasks);
    match detach(service, cx.clone(), Arc::clone(&route), work, place).await {
        Detached::Task(task) => Ok(Reply::Task(task)),
        // Who accepts a call with `task` must answer it with one.
        Detached::Inline(_, error) if core || !route.may_run_inline() => Err(error),
        Detached::Inline(..) => inline_tool(cx, &route).await,
        Detached::Unknown(error) => Err(error),
    }
}

/// A call that becomes a task when its handler comes to the threshold, or when it has taken so long.
fn detachable(
    service: Arc<TaskService>,
    cx: Context,
    route: Arc<ToolRoute>,
    after: Option<Duration>,
) -> Answer {
    if let Some(refused) = route.refused(&cx) {
        return Box::pin(std::future::ready(refused));
    }
    let task = cx.0.task.get_or_init(Arc::default);
    if after.is_some() {
        task.gate.open();
    }
    let work = run_tool(cx.clone(), &route, &route.endpoint);
    let timer = after.map(|after| Box::pin(sleep(after)));
    Box::pin(Detachable { service, cx, route, work, timer }.run())
}

/// A call before it has become a task.
struct Detachable {
    service: Arc<TaskService>,
    cx: Context,
    route: Arc<ToolRoute>,
    work: Answer,
    /// When it becomes one; without it, at the threshold.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Detachable {
    async fn run(mut self) -> Result<Reply, RpcError> {
        loop {
            if let Some(result) = poll_fn(|task| self.poll_inline(task)).await {
                return Ok(adapted(&self.route, result?, self.cx.0.version));
            }
            let place = self.service.runs.place();
            if let Some(timer) = &mut self.timer
                && place.is_none()
            {
                // It runs already, and goes on as it is until there is a place.
                timer.as_mut().reset(Instant::now() + PLACE_PACE);
                continue;
            }
            let begun = self.timer.is_some();
            let work = if begun { Work::Begun(self.work) } else { Work::AtThreshold(self.work) };
            let (service, cx) = (Arc::clone(&self.service), self.cx.clone());
            match detach(service, cx, Arc::clone(&self.route), work, place).await {
                Detached::Task(task) => return Ok(Reply::Task(task)),
                Detached::Inline(work, error) => {
                    if !self.route.may_run_inline() {
                        return Err(error);
                    }
                    tracing::debug!(%error, "a call could not become a task and goes on as it is");
                    if let Some(task) = self.cx.0.task.get() {
                        task.gate.open();
                    }
                    let work = work.ok_or(error)?;
                    return Ok(adapted(&self.route, work.await?, self.cx.0.version));
                }
                Detached::Unknown(error) => return Err(error),
            }
        }
    }

    /// Goes on with the call. `None` when it is to become a task.
    fn poll_inline(&mut self, task: &mut Task<'_>) -> Poll<Option<Result<Reply, RpcError>>> {
        if let Poll::Ready(result) = self.work.as_mut().poll(task) {
            return Poll::Ready(Some(result));
        }
        let detaches = match &mut self.timer {
            // What ends this round with questions is not on its way to become a task.
            Some(timer) => timer.as_mut().poll(task).is_ready() && !rounds::settled(&self.cx, task),
            None => self.cx.0.task.get().is_some_and(|gate| gate.gate.is_reached(task)),
        };
        if detaches { Poll::Ready(None) } else { Poll::Pending }
    }
}

/// What is moved into a task.
enum Work {
    /// Nothing has run yet.
    NotBegun,
    /// The handler waits at the threshold.
    AtThreshold(Answer),
    /// The handler runs.
    Begun(Answer),
}

impl Work {
    fn into_answer(self) -> Option<Answer> {
        match self {
            Self::NotBegun => None,
            Self::AtThreshold(work) | Self::Begun(work) => Some(work),
        }
    }
}

/// What became of the attempt.
enum Detached {
    Task(Box<CreateTaskResult>),
    /// There is no task, for this reason, and the work may go on as it is.
    Inline(Option<Answer>, RpcError),
    /// Nobody knows whether there is one.
    Unknown(RpcError),
}

/// Makes a task, in a task of its own, so that it comes to its end also if the caller goes away meanwhile.
async fn detach(
    service: Arc<TaskService>,
    cx: Context,
    route: Arc<ToolRoute>,
    work: Work,
    place: Option<RunPlace>,
) -> Detached {
    if service.is_down() {
        return Detached::Inline(
            work.into_answer(),
            not_started(&StoreError::unavailable("it was out of reach a moment ago")),
        );
    }
    if let Some(refusal) = service.refusal(&cx) {
        return Detached::Inline(work.into_answer(), refusal);
    }
    let draft = match Draft::new(&service, &cx, &route, place.is_some()) {
        Ok(draft) => draft,
        Err(error) => return Detached::Inline(work.into_answer(), error),
    };
    let span = tracing::info_span!(parent: None, "task", id = ?draft.new.id, attempt = 1);
    span.follows_from(tracing::Span::current());
    let (reply, answered) = oneshot::channel();
    let detaching = Detaching { service, cx, route, draft, place };
    tokio::spawn(detaching.run(work, reply).instrument(span));
    answered.await.unwrap_or_else(|_| Detached::Unknown(RpcError::internal("the server is going away")))
}

/// A task before it is stored.
struct Draft {
    new: NewTask,
    run: Arc<TaskRun>,
    folded: Folded,
    vault: TaskVault,
}

impl Draft {
    fn new(
        service: &Arc<TaskService>,
        cx: &Context,
        route: &ToolRoute,
        leased: bool,
    ) -> Result<Self, RpcError> {
        let policy = route.policy().ok_or_else(|| RpcError::internal("the tool has no tasks"))?;
        let no_randomness = |_| RpcError::internal("there is no randomness to name a task with");
        let id = TaskId::from_bytes(random().map_err(no_randomness)?);
        let token = Token::from_bytes(random().map_err(no_randomness)?);
        let vault = service.vault(id);
        let request = request(service, cx, route, policy, &vault)?;
        let run = Arc::new(TaskRun::new(id, 1, policy.is_live()));
        let keep = keep(service, cx, policy)?;
        let (journal, folded) = {
            let journal = cx.journal();
            let (memory, begun) = journal.so_far();
            let mut entries = unfold(&memory);
            entries.extend(begun.into_iter().map(|name| Entry::Begun { name }));
            let folded = fold(&request.call, &entries);
            let folded = folded.map_err(|error| RpcError::internal(error.to_string()))?;
            let sealed = entries.into_iter().map(|entry| vault.seal_entry(entry));
            let sealed = sealed.collect::<Result<Vec<_>, _>>().map_err(|error| error.rpc_error())?;
            // From here on what is recorded waits for the task. Nothing falls between, because the journal is locked, and
            // nothing can fail any more that would leave it waiting.
            if let Some(task) = cx.0.task.get() {
                task.set(Some(Arc::clone(&run) as Arc<dyn Run>));
            }
            (sealed, folded)
        };
        let mut new = NewTask::new(id, TaskService::owner(cx), TaskService::quota(cx), request);
        new.limit = service.limits.tasks_per_owner;
        (new.format, new.key) = (FORMAT, vault.key());
        new.journal = journal;
        new.ttl = service.limits.task_ttl;
        new.keep = keep.min(new.ttl);
        new.lease =
            leased.then_some(NewLease { node: service.node, token, lease: service.limits.task_lease });
        Ok(Self { new, run, folded, vault })
    }
}

/// How long the task is kept: what its client asks for, or else the tool, within the limit.
fn keep(service: &TaskService, cx: &Context, policy: &TaskPolicy) -> Result<Duration, RpcError> {
    let asked: Option<TaskMetadata> = match cx.0.peek.task.as_deref() {
        Some(raw) if cx.0.version.has(Feature::CoreTasks) => {
            let read = serde_json::from_slice(raw);
            Some(read.map_err(|error| RpcError::invalid_params(format!("task: {error}")))?)
        }
        _ => None,
    };
    let default = if service.store.is_durable() { KEEP } else { KEEP_IN_MEMORY };
    // What has ended takes room in the store, so a client may not have it kept for as long as it likes.
    let longest = policy.kept().unwrap_or(default).max(KEEP);
    let asked = asked.and_then(|asked| asked.ttl).map(|ttl| Duration::from_millis(ttl).min(longest));
    Ok(asked.or_else(|| policy.kept()).unwrap_or(default).max(Duration::from_millis(1)))
}

/// The request as a later run needs it.
fn request(
    service: &TaskService,
    cx: &Context,
    route: &ToolRoute,
    policy: &TaskPolicy,
    vault: &TaskVault,
) -> Result<TaskRequest, RpcError> {
    let broken =
        |error: serde_json::Error| RpcError::internal(format!("the request cannot be kept: {error}"));
    let seal = |part, value| vault.seal(part, "", value).map_err(|error| error.rpc_error());
    let mut params: JsonObject = cx.decode()?;
    for carried_by_the_client in ["requestState", "inputResponses", "task"] {
        params.remove(carried_by_the_client);
    }
    let params = RawJson::of(&params).map_err(broken)?;
    let mut request = TaskRequest::new(route.tool.name.clone(), cx.0.version, seal(Part::Params, params)?);
    request.revision = policy.current();
    let principal = cx.principal().map(crate::Principal::record);
    request.principal = seal(Part::Principal, RawJson::of(&principal).map_err(broken)?)?;
    let carried = carry::pack(&service.carriers, &cx.0.extensions).map_err(broken)?;
    request.carried = seal(Part::Carried, carried)?;
    request.client = seal(Part::Client, client(cx).map_err(broken)?)?;
    request.session = service.session(cx.caller());
    request.progress = cx.0.peek.progress_token().cloned();
    request.call = cx.call_name();
    request.live = policy.is_live();
    request.wrap = route.output.as_ref().is_some_and(|output| !is_object_root(&output.schema));
    Ok(request)
}

/// What a client has said of itself in its handshake. What it says with each request is in the parameters.
fn client(cx: &Context) -> serde_json::Result<RawJson> {
    if cx.0.known_caller.is_none() {
        return RawJson::of(&());
    }
    let caller = cx.caller();
    RawJson::of(&super::revive::Client {
        info: caller.info().cloned(),
        capabilities: caller.raw_capabilities(),
    })
}

/// A task that is being stored.
struct Detaching {
    service: Arc<TaskService>,
    cx: Context,
    route: Arc<ToolRoute>,
    draft: Draft,
    place: Option<RunPlace>,
}

impl Detaching {
    async fn run(self, work: Work, reply: oneshot::Sender<Detached>) {
        let sent = Pulse::now();
        let begun = matches!(work, Work::Begun(_));
        let created = match self.create(begun).await {
            Ok(created) => created,
            Err(error) => return self.refuse(work, &error, reply),
        };
        let task = Box::new(view::created(&self.service, &created.view.head));
        let owner = self.draft.new.owner;
        let id = self.draft.new.id;
        // Only now may the answer leave.
        if reply.send(Detached::Task(task)).is_err() && self.cx.0.version.has(Feature::TasksExtension) {
            tracing::debug!(?id, "nobody waits for a task that was made; it is cancelled");
            let _ = self.service.cancel(&owner, &id).await;
            return;
        }
        let (Some(lease), Some(place)) = (created.lease, self.place) else {
            // Another one will run it, from the start.
            self.service.ready.notify_one();
            return;
        };
        let Draft { run, folded, vault, .. } = self.draft;
        run.begin(lease, created.now_ms, sent);
        let registered = self.service.runs.add(&run);
        let policy = self.route.policy();
        let runner = Runner {
            lease,
            vault,
            folded,
            live: policy.is_some_and(TaskPolicy::is_live),
            run_time: policy.and_then(TaskPolicy::longest_run).unwrap_or(self.service.limits.task_run_time),
            keep: policy.and_then(TaskPolicy::kept),
            place: Some(place),
            registered,
            run,
            cx: self.cx.clone(),
            service: self.service,
        };
        let begun = work.into_answer();
        let work = begun.unwrap_or_else(|| checked_tool(&self.cx, &self.route));
        let work = DetachedRun::new(&self.cx, work);
        if let Some(task) = self.cx.0.task.get() {
            task.gate.open();
        }
        runner.drive(work).await;
    }

    /// Stores the task. What is not known is asked again until it is, for some time.
    async fn create(&self, begun: bool) -> Result<Created, StoreError> {
        let until = Instant::now() + CREATE_TIME;
        let store = self.service.tasks();
        loop {
            match self.service.ask(store.create(self.draft.new.clone())).await {
                // A handler that runs is not kept waiting for that.
                Err(error) if error.is_unavailable() && begun => return Err(error),
                Err(error) if error.is_unavailable() && Instant::now() < until => sleep(PAUSE).await,
                created => return created,
            }
        }
    }

    /// There is no task, or nobody knows.
    fn refuse(self, work: Work, error: &StoreError, reply: oneshot::Sender<Detached>) {
        if let Some(task) = self.cx.0.task.get() {
            task.set(None);
        }
        self.draft.run.refuse();
        let unknown = error.is_unavailable();
        if unknown {
            // If it was stored after all, another node would run it as well.
            if let Some(undoing) = Undoing::new(&self.service, &self.draft.new) {
                tokio::spawn(undo(undoing));
            } else {
                let id = self.draft.new.id;
                tracing::warn!(?id, "a task that may have been made is not undone: too many of them are");
            }
        }
        let answer = match work {
            Work::Begun(work) => Detached::Inline(Some(work), not_started(error)),
            _ if unknown => {
                let message = "the store did not answer in time; the task may have been started";
                let data = serde_json::json!({ "mayHaveRun": true });
                Detached::Unknown(RpcError::internal(message).with_data(&data))
            }
            work => Detached::Inline(work.into_answer(), not_started(error)),
        };
        // Whoever is gone does not care.
        let _ = reply.send(answer);
    }
}

/// The call of a tool with its arguments checked first.
pub(super) fn checked_tool(cx: &Context, route: &Arc<ToolRoute>) -> Answer {
    match route.refused(cx) {
        Some(refused) => Box::pin(std::future::ready(refused)),
        None => run_tool(cx.clone(), route, &route.endpoint),
    }
}

impl InTask {
    /// What a run that was revived has from the start.
    pub(super) fn of(run: Arc<dyn Run>) -> Self {
        let task = Self::default();
        task.gate.open();
        task.set(Some(run));
        task
    }
}
