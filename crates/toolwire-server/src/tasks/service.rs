//! The tasks of one server on this node.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::{
    sync::{Notify, Semaphore},
    task::AbortHandle,
    time::{Instant, timeout},
};
use toolwire_protocol::{ErrorCode, Feature, RawJson, Response, RpcError, journal::Entry, wire::JsonObject};
use toolwire_store::{
    Answer as StoredAnswer, Answered, Cancelled, NodeId, Outcome, Owner, Quota, SessionKey, Store,
    StoreError, TaskHead, TaskId, TaskNote, TaskStore, TaskView, memory::MemoryStore,
};

use toolwire_transport::BoxFuture;

use super::{
    Answering, Carrier, Glance, Look, Parts, Tasks,
    asker::{self, Askers},
    detach, heart,
    hub::{Watch, Watches},
    runs::Runs,
    serve,
    strangers::Strangers,
    undo,
    vault::{Part, TaskVault, Vault, VaultError},
    watch::{Tokens, owner_of},
};
use crate::{
    Caller, CallerId, CallerScope, Context, Limits, Reply, Server, ToolRoute, ask::random, handler::Answer,
    server::WeakServer,
};

/// How long a store has for one operation before it counts as out of reach.
const STORE_TIME: Duration = Duration::from_secs(5);

/// For how long a store that was out of reach is not asked to take new tasks.
const DOWN_TIME: Duration = Duration::from_secs(2);

/// The `reason` in the data of an error about a value that is larger than a store takes.
const TOO_LARGE: &str = "tooLarge";

/// The tasks of a server on this node: where they are kept, which ones run here, and who waits for what.
#[derive(Debug)]
pub(crate) struct TaskService {
    pub(super) store: Store,
    pub(super) node: NodeId,
    pub(super) limits: Limits,
    pub(super) vault: Arc<Vault>,
    pub(super) carriers: Vec<Carrier>,
    pub(super) runs: Arc<Runs>,
    pub(super) watches: Watches,
    /// Something can be claimed.
    pub(super) ready: Arc<Notify>,
    /// Something that runs here may be lost.
    pub(super) suspects: Arc<Notify>,
    /// Who waits for the result of what, and is asked meanwhile.
    pub(super) askers: Askers,
    /// What sessions want to be told the progress of their tasks with.
    pub(super) tokens: Tokens,
    /// The tasks that were claimed here and cannot be run here.
    pub(super) strangers: Strangers,
    /// Permits for tasks that are being undone, of which it is not known whether they were made.
    pub(super) undoing: Arc<Semaphore>,
    /// At how many places clients are served.
    served_at: AtomicUsize,
    server: WeakServer,
    heart: Mutex<Option<AbortHandle>>,
    /// When the store was last found out of reach.
    down: Mutex<Option<Instant>>,
}

impl TaskService {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { server, store, limits, keys, name, carriers } = parts;
        let store = store.unwrap_or_else(|| MemoryStore::default().store());
        Self {
            store,
            // Without randomness nothing of this works, and every task is refused for want of an id.
            node: NodeId::from_bytes(random().unwrap_or_default()),
            vault: Arc::new(Vault::new(&keys, &name)),
            carriers,
            runs: Arc::new(Runs::new(&limits)),
            watches: Watches::new(server.upgrade().map(|server| server.notify().clone()).unwrap_or_default()),
            askers: Askers::default(),
            tokens: Tokens::default(),
            strangers: Strangers::default(),
            ready: Arc::default(),
            suspects: Arc::default(),
            limits,
            undoing: Arc::new(Semaphore::new(undo::UNDOING)),
            served_at: AtomicUsize::new(0),
            server,
            heart: Mutex::default(),
            down: Mutex::default(),
        }
    }

    /// The server, unless nobody has it any more.
    pub(super) fn server(&self) -> Option<Server> {
        self.server.upgrade()
    }

    pub(super) fn tasks(&self) -> &Arc<dyn TaskStore> {
        self.store.tasks()
    }

    /// Runs an operation of the store, for no longer than it may take.
    pub(super) async fn ask<T>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let outcome = timeout(STORE_TIME, operation).await;
        let outcome = outcome.unwrap_or_else(|_| Err(StoreError::unavailable("no answer within 5 s")));
        self.note_health(outcome.as_ref().err());
        outcome
    }

    /// Each change of state is told once.
    fn note_health(&self, error: Option<&StoreError>) {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Some(StoreError::Unavailable(cause)) => {
                if down.replace(Instant::now()).is_none() {
                    tracing::warn!(%cause, "the store of tasks is out of reach");
                }
            }
            _ => {
                if down.take().is_some() {
                    tracing::warn!("the store of tasks is back");
                }
            }
        }
    }

    /// Whether the store was out of reach a moment ago.
    pub(super) fn is_down(&self) -> bool {
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        down.is_some_and(|since| since.elapsed() < DOWN_TIME)
    }

    /// Whom tasks of this caller belong to.
    pub(crate) fn owner(cx: &Context) -> Owner {
        owner_of(&cx.0.extensions)
    }

    /// Whether the caller can be told apart from others, so that it may see a list of its tasks.
    pub(crate) fn is_identified(&self, cx: &Context) -> bool {
        let owner = Self::owner(cx);
        owner != Owner::Anonymous && !self.is_ambiguous(&owner)
    }

    /// Whether an owner of this machine may be another one on the next, which uses the store, too.
    fn is_ambiguous(&self, owner: &Owner) -> bool {
        self.store.is_remote() && matches!(owner, Owner::Local(_))
    }

    /// Why no task of this caller is stored, if none is.
    pub(super) fn refusal(&self, cx: &Context) -> Option<RpcError> {
        self.is_ambiguous(&Self::owner(cx)).then(|| {
            RpcError::internal(
                "this caller has no task in a store of several machines, because it has no principal; nothing was started",
            )
        })
    }

    /// For whom tasks of this caller are counted: strangers by their addresses.
    pub(super) fn quota(cx: &Context) -> Quota {
        let owner = Self::owner(cx);
        let mut digest = Sha256::new();
        digest.update(owner.to_bytes());
        if owner == Owner::Anonymous
            && let Some(key) = cx.caller_key()
        {
            digest.update(key.to_bytes());
        }
        Quota::from_bytes(digest.finalize().into())
    }

    /// The session of a caller, if it has one: whom changes of its tasks are told to without being asked.
    pub(crate) fn session(&self, caller: &Caller) -> Option<SessionKey> {
        let id = caller.id();
        (id.scope() == CallerScope::Session).then(|| {
            let mut digest = Sha256::new();
            digest.update(self.node.as_bytes());
            digest.update(id.to_bytes());
            SessionKey::from_bytes(digest.finalize().into())
        })
    }

    /// Opens what is stored of a task.
    pub(crate) fn vault(&self, id: TaskId) -> TaskVault {
        self.vault.of(id)
    }

    /// Waits for changes of a task from now on.
    pub(crate) fn watch(&self, id: TaskId) -> Watch {
        self.watches.watch(id)
    }

    /// A task of this owner, if there is one.
    pub(crate) async fn view(&self, owner: &Owner, id: &TaskId) -> Result<Option<TaskView>, RpcError> {
        if self.is_ambiguous(owner) {
            return Ok(None);
        }
        self.ask(self.tasks().view(owner, id)).await.map_err(|error| unreadable(&error))
    }

    /// Tasks of this owner, the newest first.
    pub(crate) async fn list(
        &self,
        owner: &Owner,
        after: Option<(u64, &TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskHead>, RpcError> {
        self.ask(self.tasks().list(owner, after, limit)).await.map_err(|error| unreadable(&error))
    }

    /// Answers questions of a task, by the keys that they have for the client. `None` if there is no such task.
    pub(crate) async fn answer(
        &self,
        owner: &Owner,
        id: &TaskId,
        answers: Vec<Entry>,
    ) -> Result<Option<Answered>, RpcError> {
        let Some(view) = self.view(owner, id).await? else { return Ok(None) };
        self.answer_seen(owner, &view, answers).await
    }

    /// Answers questions of a task that was looked at just now. Each answer is sealed with the key of its question: this
    /// node may have newer ones, which those that run the task do not know yet.
    pub(crate) async fn answer_seen(
        &self,
        owner: &Owner,
        view: &TaskView,
        answers: Vec<Entry>,
    ) -> Result<Option<Answered>, RpcError> {
        let id = &view.head.id;
        let mut sealed = Vec::with_capacity(answers.len());
        for entry in answers {
            // Keys that are not open are ignored. The store decides again, as others may answer at the same time.
            let key = entry.name().to_owned();
            let Some(open) = view.open.iter().find(|open| open.key == key) else { continue };
            let vault = self.vault(*id).like_question(&key, &open.question);
            let entry = vault.and_then(|vault| vault.seal_entry(entry));
            // Another replica may have the keys that this one lacks.
            let entry = entry.map_err(|error| error.rpc_error().with_data(&retry()))?;
            sealed.push(StoredAnswer { key, entry });
        }
        if sealed.is_empty() {
            return Ok(Some(Answered::default()));
        }
        let answered =
            self.ask(self.tasks().answer(owner, id, sealed)).await.map_err(|error| match error {
                StoreError::TooLarge { limit, .. } => too_large(&error, limit),
                error => unchanged(&error),
            })?;
        if let Some(answered) = &answered {
            self.changed_here(id);
            if answered.ready {
                // Here, without a detour over the store.
                self.ready.notify_one();
            }
        }
        Ok(answered)
    }

    /// Cancels a task. `None` if there is no such task.
    pub(crate) async fn cancel(&self, owner: &Owner, id: &TaskId) -> Result<Option<Cancelled>, RpcError> {
        let why = self.note(id, "cancelled by the client").map_err(|error| error.rpc_error())?;
        let cancelled =
            self.ask(self.tasks().cancel(owner, id, why)).await.map_err(|error| unchanged(&error))?;
        if cancelled.is_some() {
            self.runs.lost(id);
            self.changed_here(id);
        }
        Ok(cancelled)
    }

    /// A note that says something to people.
    pub(super) fn note(&self, id: &TaskId, text: &str) -> Result<TaskNote, VaultError> {
        let text = RawJson::of(text).map_err(|_| VaultError::NotJson)?;
        Ok(TaskNote::message(self.vault(*id).seal(Part::Note, "", text)?))
    }

    /// How a task ended, as it was before it was sealed.
    pub(crate) fn open_outcome(&self, id: &TaskId, outcome: &Outcome) -> Result<Outcome, VaultError> {
        let vault = self.vault(*id);
        Ok(match outcome {
            Outcome::Result(result) => Outcome::Result(vault.open(Part::Result, "", result)?),
            Outcome::Error(error) => Outcome::Error(vault.open(Part::Error, "", error)?),
        })
    }

    /// A question of a task.
    pub(crate) fn open_question(
        &self,
        id: &TaskId,
        key: &str,
        question: &RawJson,
    ) -> Result<RawJson, VaultError> {
        self.vault(*id).open(Part::Question, key, question)
    }

    /// What a note says. What cannot be opened says nothing.
    pub(crate) fn open_note(&self, id: &TaskId, note: &TaskNote) -> Option<String> {
        let message = note.message.as_ref()?;
        self.vault(*id).open(Part::Note, "", message).ok()?.decode().ok()
    }

    /// A task has changed by what this node did.
    pub(super) fn changed_here(&self, id: &TaskId) {
        self.watches.changed(*id, None);
        self.runs.look(id);
    }
}

impl Tasks for TaskService {
    fn start(self: Arc<Self>, first: Duration) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut heart = self.heart.lock().unwrap_or_else(PoisonError::into_inner);
        // One that was left behind by another runtime beats no more.
        if heart.as_ref().is_none_or(AbortHandle::is_finished) {
            if self.server().is_none_or(|server| server.shutting_down().is_cancelled()) {
                return;
            }
            self.runs.open();
            let beating = runtime.spawn(heart::beat(&self, first));
            *heart = Some(beating.abort_handle());
        }
    }

    fn enter(self: Arc<Self>) {
        if self.served_at.fetch_add(1, Ordering::AcqRel) == 0 {
            // A claim that waits for its first time waits no longer.
            self.ready.notify_one();
        }
        self.start(Duration::ZERO);
    }

    fn leave(&self) -> bool {
        self.served_at.fetch_sub(1, Ordering::AcqRel) == 1
    }

    fn end(self: Arc<Self>, patience: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { heart::end(&self, patience).await })
    }

    fn call(self: Arc<Self>, cx: Context, route: Arc<ToolRoute>) -> Answer {
        let progress = cx.0.peek.progress_token().filter(|_| cx.0.version.has(Feature::CoreTasks)).cloned();
        let Some(token) = progress else { return detach::call(self, cx, route) };
        let answer = detach::call(Arc::clone(&self), cx, route);
        Box::pin(async move {
            let reply = answer.await?;
            if let Reply::Task(created) = &reply
                && let Ok(id) = created.task.task_id.parse()
            {
                self.tokens.keep(id, token);
            }
            Ok(reply)
        })
    }

    fn serve(self: Arc<Self>, cx: Context) -> Answer {
        Arc::clone(&self).start(Duration::ZERO);
        serve::serve(self, cx)
    }

    fn session_key(&self, caller: &Caller) -> Option<SessionKey> {
        self.session(caller)
    }

    fn follow(&self, id: TaskId) -> Watch {
        self.watch(id)
    }

    fn look_at(self: Arc<Self>, look: Look) -> BoxFuture<'static, Option<Glance>> {
        Box::pin(async move { self.glance(look).await })
    }

    fn take_answer(
        self: Arc<Self>,
        owner: Owner,
        caller: CallerId,
        response: Response,
    ) -> Result<Answering, Response> {
        if !asker::is_answer(&response) {
            return Err(response);
        }
        Ok(Box::pin(asker::answer(self, owner, caller, response)))
    }
}

impl Drop for TaskService {
    fn drop(&mut self) {
        if let Some(heart) = self.heart.lock().unwrap_or_else(PoisonError::into_inner).take() {
            heart.abort();
        }
    }
}

/// Nothing was changed, or nobody knows; either way it may be tried again.
fn unchanged(error: &StoreError) -> RpcError {
    tracing::warn!(%error, "a task could not be changed");
    RpcError::internal(format!("{error}; try again")).with_data(&retry())
}

fn unreadable(error: &StoreError) -> RpcError {
    tracing::warn!(%error, "a task could not be read");
    RpcError::internal(format!("{error}; the task goes on, ask again")).with_data(&retry())
}

/// A refusal that is about a size, which the client tells from one about the task by its reason.
fn too_large(error: &StoreError, limit: usize) -> RpcError {
    let data = serde_json::json!({ "reason": TOO_LARGE, "limit": limit });
    RpcError::invalid_params(format!("{error}; the question is still open")).with_data(&data)
}

fn retry() -> JsonObject {
    JsonObject::from_iter([("retry".to_owned(), true.into())])
}

/// What a caller is told whose task could not be made.
pub(super) fn not_started(error: &StoreError) -> RpcError {
    match error {
        StoreError::Full(what) => {
            let message =
                format!("the server is busy: there is no room for more {what}; nothing was started");
            RpcError::new(ErrorCode::INTERNAL_ERROR, message).with_data(&retry())
        }
        StoreError::TooLarge { .. } => RpcError::invalid_params(format!("{error}; nothing was started")),
        error => RpcError::internal(format!("{error}; nothing was started")).with_data(&retry()),
    }
}
