//! A task of the server, and what can be done with it.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use tokio::runtime::Handle;
use toolwire_protocol::{
    ErrorCode, Method, MethodName, RawJson,
    wire::{
        DetailedTask, EmptyResult, InputResponses, Task, TaskRequestParams, TaskStatus,
        UpdateTaskRequestParams,
    },
};

use super::{
    follow::Follow,
    state::TaskState,
    ticket::{MAX_ID_BYTES, Ticket, is_id},
    updates::Updates,
};
use crate::{
    client::{CallOutcome, Client, Operation, Options},
    error::{Delivery, Error, ErrorKind},
    lock::lock,
};

/// How long the server has to take a cancellation that nobody waits for.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// What a call that was [started](crate::CallBuilder::start) came to.
#[derive(Debug)]
#[must_use = "it is the result, or the only handle to a task"]
#[expect(clippy::exhaustive_enums, reason = "the work is done or goes on")]
pub enum Started {
    /// The tool has answered.
    Done(CallOutcome),
    /// The work goes on as a task.
    Task(TaskHandle),
}

/// A task: work of the server that goes on whether or not anybody waits for it.
///
/// Dropping the handle does not end the task. Clones are handles to the same one. While it is followed, with
/// [`result`](Self::result) or [`updates`](Self::updates), the client's handlers answer what the task asks, each question
/// once.
///
/// ```
/// # use toolwire_client::{Client, Error};
/// # async fn example(client: Client, ticket: String) -> Result<(), Error> {
/// let task = client.task(&ticket)?;
/// let mut updates = task.updates();
/// while let Some(state) = updates.next().await {
///     println!("{:?} {}", state.status(), state.message().unwrap_or_default());
/// }
/// println!("{}", task.result().await?.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TaskHandle {
    client: Client,
    shared: Arc<Shared>,
}

struct Shared {
    id: Box<str>,
    tool: Option<Box<str>>,
    /// The version in which it was begun.
    version: Box<str>,
    known: Mutex<Known>,
}

/// What is known of a task.
#[derive(Default)]
struct Known {
    task: Option<Task>,
    /// The keys of questions that are answered.
    answered: BTreeSet<String>,
    /// The keys of questions that are being answered.
    answering: HashSet<String>,
    /// How many questions there were.
    questions: usize,
    outcome: Option<Box<CallOutcome>>,
    /// Whether it is known to have ended, or not to be there any more.
    ended: bool,
}

impl TaskHandle {
    /// A task that the server has just begun.
    pub(crate) fn begun(client: Client, task: Task, tool: Option<String>) -> Result<Self, Error> {
        if !is_id(&task.task_id) {
            let text = format!("the id of a task must have 1 to {MAX_ID_BYTES} bytes");
            return Err(Error::invalid_response(&Method::CallTool.into(), text));
        }
        let id = task.task_id.as_str().into();
        let version = client.version().as_str().into();
        let known = Mutex::new(Known { task: Some(task), ..Known::default() });
        let shared = Arc::new(Shared { id, tool: tool.map(Into::into), version, known });
        Ok(Self { client, shared })
    }

    /// A task of which there is a ticket.
    pub(crate) fn resumed(client: Client, ticket: &str) -> Result<Self, Error> {
        let Ticket { server, version, id, tool, answered, .. } = Ticket::read(ticket)?;
        client.check_tasks(Method::GetTask)?;
        let here = client.server_info().map(|info| &info.name);
        if let (Some(there), Some(here)) = (&server, here)
            && there != here
        {
            let text = format!("the ticket is for the server {there:?}, and this one is {here:?}");
            return Err(Error::invalid_params(&Method::GetTask.into(), text));
        }
        let known = Mutex::new(Known { questions: answered.len(), answered, ..Known::default() });
        let (id, tool, version) = (id.into(), tool.map(Into::into), version.into());
        Ok(Self { client, shared: Arc::new(Shared { id, tool, version, known }) })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// The tool that was called, if that is known.
    pub fn tool(&self) -> Option<&str> {
        self.shared.tool.as_deref()
    }

    /// One line of text with which [`Client::task`] can go on with the task, in another process or with another version
    /// of the protocol. It names the server, the task, and which of its questions are answered.
    ///
    /// Where a server cannot tell its callers apart, whoever knows the id can read the result: keep it like a password.
    pub fn ticket(&self) -> String {
        let shared = &self.shared;
        let server = self.client.server_info().map(|info| info.name.clone());
        let answered = lock(&shared.known).answered.clone();
        let tool = shared.tool.as_deref().map(str::to_owned);
        Ticket::new(server, shared.version.clone().into(), shared.id.clone().into(), tool, answered).write()
    }

    /// How it stood when it was last heard of; nothing is sent.
    pub fn last_state(&self) -> Option<TaskState> {
        let task = lock(&self.shared.known).task.clone();
        task.map(|task| TaskState::new(task.into()))
    }

    /// Asks the server how it stands.
    ///
    /// # Errors
    /// [`TaskGone`](ErrorKind::TaskGone) when the server does not know it any more, and whatever fails a request.
    pub async fn get(&self) -> Result<TaskState, Error> {
        let details: DetailedTask = self.request(Method::GetTask).await?;
        self.learn(details)
    }

    /// The result, as soon as there is one. The client's handlers answer what the task asks meanwhile.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the task as it is, and another can be awaited.
    ///
    /// # Errors
    /// The error that the task has failed with; [`TaskCancelled`](ErrorKind::TaskCancelled),
    /// [`TaskGone`](ErrorKind::TaskGone); [`Unanswerable`](ErrorKind::Unanswerable) when it asks what no handler can
    /// answer, after which [`answer`](Self::answer) may.
    pub async fn result(&self) -> Result<CallOutcome, Error> {
        Box::pin(Follow::new(self).run()).await
    }

    /// The result, as soon as there is one, however long its questions wait: those that no handler can answer are left
    /// open, to be answered with [`answer`](Self::answer) or by another client.
    ///
    /// ```
    /// # use toolwire_client::{Client, Error};
    /// use toolwire_protocol::wire::ElicitResult;
    ///
    /// # async fn example(client: Client, ticket: String) -> Result<(), Error> {
    /// let task = client.task(&ticket)?;
    /// for (key, question) in task.get().await?.questions() {
    ///     println!("{key}: {question:?}");
    /// }
    /// task.answer("depth", ElicitResult::decline()).await?;
    /// println!("{}", task.wait().await?.text());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future leaves the task as it is, and another can be awaited.
    ///
    /// # Errors
    /// As [`result`](Self::result), without [`Unanswerable`](ErrorKind::Unanswerable).
    pub async fn wait(&self) -> Result<CallOutcome, Error> {
        Box::pin(Follow::new(self).leaving_questions().run()).await
    }

    /// The [`result`](Self::result), as soon as there is one. Calls `tell` with how the task stands, whenever that has
    /// changed.
    ///
    /// # Errors
    /// As [`result`](Self::result).
    pub async fn result_with(&self, mut tell: impl FnMut(&TaskState) + Send) -> Result<CallOutcome, Error> {
        let mut last = None;
        let tell = |state: &TaskState| {
            if last.as_ref() != Some(state) {
                last = Some(state.clone());
                tell(state);
            }
        };
        Box::pin(Follow::new(self).publishing(tell).run()).await
    }

    /// How it stands, again and again until its end: pushed where the server does so, and asked for at its pace
    /// otherwise. The client's handlers answer what the task asks meanwhile; what they cannot answer is left to
    /// [`answer`](Self::answer).
    pub fn updates(&self) -> Updates {
        Updates::new(self.clone())
    }

    /// Answers a question of the task, in place of a handler. `reply` is what the question's method returns, such as an
    /// [`ElicitResult`](toolwire_protocol::wire::ElicitResult).
    ///
    /// # Errors
    /// When the question was answered already; [`Rpc`](ErrorKind::Rpc) when the server refuses the answer, because it is
    /// too large for instance, and the question is still open; [`TaskGone`](ErrorKind::TaskGone) when the server does not
    /// know the task; [`NotInThisVersion`](ErrorKind::NotInThisVersion) in 2025-11-25, where only handlers can answer.
    pub async fn answer(&self, key: impl Into<String>, reply: impl Serialize + Send) -> Result<(), Error> {
        let method = MethodName::from(Method::UpdateTask);
        self.client.check_tasks(Method::UpdateTask)?;
        let key = key.into();
        let reply = RawJson::of(&reply).map_err(|error| Error::invalid_params(&method, error))?;
        let claims = self.claim([&key]);
        if claims.keys.is_empty() {
            return Err(Error::invalid_params(
                &method,
                format_args!("the question {key:?} is answered already"),
            ));
        }
        self.update([(key, reply)].into_iter().collect()).await?;
        claims.answered_but(&[]);
        Ok(())
    }

    /// Asks the server to end the task. One that has ended already stays as it is. A modern server need not do so at
    /// once, and may even finish it.
    ///
    /// # Errors
    /// [`TaskGone`](ErrorKind::TaskGone) when the server does not know it, and whatever fails a request.
    pub async fn cancel(&self) -> Result<(), Error> {
        let cancelled = self.request::<EmptyResult>(Method::CancelTask).await;
        let gone = |error: &Error| error.kind() == ErrorKind::TaskGone;
        if cancelled.as_ref().is_err_and(gone) && self.client.facts().core_tasks {
            // That is also what is said about a task that has ended.
            return match self.get().await {
                Ok(state) if state.has_ended() => Ok(()),
                _ => cancelled.map(drop),
            };
        }
        cancelled.map(drop)
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// The last known poll interval and status.
    pub(super) fn last_task(&self) -> Option<Task> {
        lock(&self.shared.known).task.clone()
    }

    pub(super) fn outcome(&self) -> Option<CallOutcome> {
        lock(&self.shared.known).outcome.as_deref().cloned()
    }

    pub(super) fn ended_with(&self, outcome: &CallOutcome) {
        let mut known = lock(&self.shared.known);
        known.ended = true;
        known.outcome = Some(Box::new(outcome.clone()));
    }

    /// Takes in how the task stands, if that can be.
    pub(super) fn learn(&self, details: DetailedTask) -> Result<TaskState, Error> {
        let wrong = |why: String| Error::invalid_response(&Method::GetTask.into(), why);
        let task = &details.task;
        if *task.task_id != *self.shared.id {
            return Err(wrong(format!("it is about another task than {:?}", self.shared.id)));
        }
        let mut known = lock(&self.shared.known);
        let before = known.task.as_ref().map(|task| task.status);
        if let Some(ended) = before.filter(|before| before.is_terminal() && *before != task.status) {
            let (from, to) = (name(ended), name(task.status));
            return Err(wrong(format!(
                "the task was {from} and is now {to}, and what has ended cannot change"
            )));
        }
        known.ended |= task.status.is_terminal();
        known.task = Some(task.clone());
        drop(known);
        Ok(TaskState::new(details))
    }

    /// Sends a request about this task.
    async fn request<R: DeserializeOwned>(&self, method: Method) -> Result<R, Error> {
        self.send(method, &TaskRequestParams::new(self.id())).await
    }

    pub(super) async fn update(&self, answers: InputResponses) -> Result<(), Error> {
        let params = UpdateTaskRequestParams::new(self.id(), answers);
        let Err(refused) = self.ask::<EmptyResult>(Method::UpdateTask, &params).await else { return Ok(()) };
        if !is_about_params(&refused) {
            return Err(refused);
        }
        // Servers refuse an answer with the same code as a task that they do not know.
        match self.get().await {
            Err(gone) if gone.kind() == ErrorKind::TaskGone => Err(gone),
            _ => Err(refused),
        }
    }

    async fn send<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Error> {
        self.ask(method, params).await.map_err(|error| self.gone_if_unknown(error))
    }

    async fn ask<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Error> {
        self.client.check_tasks(method)?;
        let result = self.client.ask_once(method, params, Options::default()).await?;
        result.decode().map_err(|error| Error::invalid_response(&method.into(), error))
    }

    /// A refusal that is what a server says about a task that it does not know.
    fn gone_if_unknown(&self, error: Error) -> Error {
        if !is_about_params(&error) {
            return error;
        }
        let text = format!(
            "the server does not know the task {:?} any more: it has expired, or it is somebody else's",
            self.id()
        );
        Error::new(ErrorKind::TaskGone, Delivery::Rejected, text).with_source(error)
    }

    /// Says that these questions are being answered; those that are answered, or being so, are left out.
    pub(super) fn claim<'k>(&self, keys: impl IntoIterator<Item = &'k String>) -> Claims {
        let mut known = lock(&self.shared.known);
        let known = &mut *known;
        let free = keys.into_iter().filter(|key| !known.answered.contains(*key));
        let keys: Vec<String> = free.filter(|key| known.answering.insert((*key).clone())).cloned().collect();
        Claims { shared: Arc::clone(&self.shared), keys }
    }

    /// Counts questions, up to the limit.
    pub(super) fn count_questions(&self, more: usize) -> Result<(), Error> {
        let limit = self.client.settings().limits.task_questions;
        let mut known = lock(&self.shared.known);
        known.questions += more;
        if known.questions <= limit {
            return Ok(());
        }
        let text = format!("the task {:?} keeps asking: more than {limit} questions", self.id());
        Err(Error::new(ErrorKind::TooManyRounds, Delivery::Rejected, text).with_limit("task_questions"))
    }

    fn has_ended(&self) -> bool {
        lock(&self.shared.known).ended
    }

    pub(super) fn mark_ended(&self) {
        lock(&self.shared.known).ended = true;
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = lock(&self.shared.known).task.as_ref().map(|task| task.status);
        f.debug_struct("TaskHandle")
            .field("id", &self.shared.id)
            .field("status", &status)
            .finish_non_exhaustive()
    }
}

/// Whether a server refuses what a request says, such as the id of a task.
fn is_about_params(error: &Error) -> bool {
    error.rpc().is_some_and(|error| error.code == ErrorCode::INVALID_PARAMS)
}

/// Questions that are being answered by whoever holds this.
pub(super) struct Claims {
    shared: Arc<Shared>,
    pub(super) keys: Vec<String>,
}

impl Claims {
    /// The server has the answers, but for those to these questions.
    pub(super) fn answered_but(self, unanswerable: &[String]) {
        let answered = self.keys.iter().filter(|key| !unanswerable.contains(key)).cloned();
        lock(&self.shared.known).answered.extend(answered);
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        let mut known = lock(&self.shared.known);
        for key in &self.keys {
            known.answering.remove(key);
        }
    }
}

/// Cancels a task that nobody waits for any more, and that nobody else knows of.
struct CancelOnDrop(TaskHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let task = &self.0;
        if task.has_ended() || task.client.host().hub.is_closed() {
            return;
        }
        // Without a runtime nothing can be sent any more.
        let Ok(runtime) = Handle::try_current() else { return };
        let task = task.clone();
        runtime.spawn(async move {
            if let Ok(Err(error)) = tokio::time::timeout(CANCEL_PATIENCE, task.cancel()).await {
                tracing::debug!(%error, "a task that nobody waits for could not be cancelled");
            }
        });
    }
}

impl Client {
    /// Waits for the result of a task that a call has become. Whoever stops waiting cancels it.
    pub(crate) async fn await_task<T: Operation>(
        &self,
        params: &T::Params,
        task: Task,
        options: &mut Options,
    ) -> Result<T, Error> {
        let task = TaskHandle::begun(self.clone(), task, T::tool(params).map(str::to_owned))?;
        let leaving = CancelOnDrop(task);
        let follow = Follow::new(&leaving.0).with(options.progress.as_mut(), options.total_timeout);
        let outcome = follow.run().await?;
        T::of_task(outcome).ok_or_else(|| Error::invalid_response(&T::METHOD.into(), "it became a task"))
    }

    /// Whether a method that is about tasks can be used.
    pub(super) fn check_tasks(&self, method: Method) -> Result<(), Error> {
        self.check(method)?;
        if self.host().follows_tasks() {
            return Ok(());
        }
        Err(Error::invalid_params(&method.into(), "this client was built without tasks"))
    }
}

pub(super) fn name(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Working => "working",
        TaskStatus::InputRequired => "waiting for input",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
        _ => "in another state",
    }
}
