//! Tasks: what is stored of one, and what can be done with it.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use toolwire_protocol::{ProgressToken, RawJson, Version, wire::TaskStatus};

use crate::{KeyId, NodeId, Op, Owner, Quota, SessionKey, TaskId, Token};

/// Keeps tasks: their requests, journals, questions and outcomes, and who works on them.
///
/// Every operation is atomic: all of it happens, or nothing, and whoever calls afterwards, on whatever node, sees it.
/// Any of them may be repeated when its outcome is not known, which is what
/// [`Unavailable`](crate::StoreError::Unavailable) means. Each ends within a few seconds. Time is the store's own;
/// callers give durations, never moments.
///
/// # The life of a task
///
/// A task is *ready*, *leased*, *timed*, *parked*, or has *ended*.
///
/// | from | by | to |
/// | --- | --- | --- |
/// | | [`create`](Self::create) | ready, or leased by the node that creates it |
/// | ready; timed, when its time has come; leased, when its lease is over | [`claim`](Self::claim) | leased |
/// | leased | [`Advance::Park`] | parked, timed, ready, or leased if it is held |
/// | leased | [`Advance::Release`] | ready |
/// | parked, timed | [`answer`](Self::answer), if it takes the last open question | ready |
/// | leased | [`Advance::Finish`] | ended: completed or failed |
/// | all but ended | [`cancel`](Self::cancel) | ended: cancelled |
///
/// Its status is `input_required` while a question is open, in whatever of these states, and `working` otherwise until
/// it ends.
///
/// # Leases and fences
///
/// Each claim raises the task's *fence* by one and brings a random token; together with the id they are the
/// [`Lease`]. A write whose lease is not the one that is stored is [`Lost`](crate::StoreError::Lost) and changes
/// nothing. So of all who believe that a task is theirs, one can write. A lease that is over, but that nobody has
/// claimed since, still holds: it can be renewed and written with.
///
/// Writes of one lease are numbered. The same number again is `Ok` and changes nothing, also when the first one has
/// ended the lease; a lower one is a [`Conflict`](crate::StoreError::Conflict).
///
/// # Attempts
///
/// A task counts its claims (being created with a lease is one) since its journal last gained an entry, by a run or by
/// an answer. A release or a park takes the claim of its run back. When the second claim in a row ends without any of
/// these, the third waits for half a lease beyond the end of the second's, the fourth for three leases, each further
/// one for fifteen ([`pause_before_next`]): a task that kills its nodes must not take all others with it.
///
/// # Expiry
///
/// What is parked, or leased and held with open questions, expires [`keep`](NewTask::keep) after its state last
/// changed; what has ended, after that or what [`Finish::keep`] says, whichever is longer. What is ready, leased or
/// timed does not expire before [`ttl`](NewTask::ttl) after its creation. [`TaskHead::expires_ms`] is the moment up to
/// which the task will be there for certain; it never goes back. [`Life`](crate::Life) has the rule. What has expired is not seen by any
/// operation any more, and [`sweep`](Self::sweep) removes it.
///
/// # Wakes
///
/// A store wakes by itself, when the write is visible: [`Topic::Task`](crate::Topic::Task) for everything that raises
/// [`TaskHead::rev`] and for what expires, [`Topic::Ready`](crate::Topic::Ready) when something can be claimed at once.
/// Nobody relies on these: whoever waits also asks every now and then.
pub trait TaskStore: fmt::Debug + Send + Sync {
    /// Adds a task. If one with this id and owner is there already, this is the same call once more: nothing is added, and the
    /// lease is renewed if it still is the one that the task was created with.
    ///
    /// # Errors
    /// `Full` when the quota has its limit of tasks that have not ended, or the store no room. `Conflict` when the id
    /// belongs to somebody else.
    fn create(&self, task: NewTask) -> Op<'_, Created>;

    /// The task as its owner sees it. `None` when there is none, or it belongs to somebody else.
    fn view<'a>(&'a self, owner: &'a Owner, id: &'a TaskId) -> Op<'a, Option<TaskView>>;

    /// Tasks of an owner, the newest first: those that come after the one that was created at `after.0` with the id
    /// `after.1`, which may be gone. Tasks of the same moment are ordered by their ids, the highest first.
    fn list<'a>(
        &'a self,
        owner: &'a Owner,
        after: Option<(u64, &'a TaskId)>,
        limit: usize,
    ) -> Op<'a, Vec<TaskHead>>;

    /// The [revisions](TaskHead::rev) of tasks, in the order of `ids`; `None` for those that are gone. At most 1,000 are asked for
    /// at a time.
    fn revs<'a>(&'a self, ids: &'a [TaskId]) -> Op<'a, Vec<Option<u64>>>;

    /// Takes tasks that can be worked on, those first that have been due for the longest time. At most
    /// [`Claim::max`], and only those that the claim describes.
    fn claim<'a>(&'a self, claim: &'a Claim) -> Op<'a, Vec<Claimed>>;

    /// Makes leases last for `lease` from now. Those that cannot be renewed because they are lost are named in the answer.
    fn renew<'a>(&'a self, leases: &'a [Lease], lease: Duration) -> Op<'a, Renewed>;

    /// Writes what a run has come to. `n` numbers the writes of a lease, from 1 on. Gives the [revision](TaskHead::rev)
    /// of the task after it, so that whoever wrote can tell his own changes from those of others.
    ///
    /// # Errors
    /// `Lost` when the lease is not, or no longer, the one that is stored. `TooLarge` when a value or the journal is
    /// beyond the [limits](crate::limits), or what one caller has beyond a share that the store gives to each. `Full`
    /// when there is no room for anyone: runs try again, with the same number.
    fn advance<'a>(&'a self, lease: &'a Lease, n: u64, step: Advance) -> Op<'a, u64>;

    /// Returns all entries that [`answer`](Self::answer) has added under this lease, that is since its claim or since the
    /// task was created with it, in order. A [`Park`] does not begin anew: an answer may come while it is being written,
    /// and a run that is held would never hear of it. Runs ignore those that they know.
    ///
    /// # Errors
    /// `Lost` when the lease is not, or no longer, the one that is stored.
    fn answers<'a>(&'a self, lease: &'a Lease) -> Op<'a, Vec<Entry>>;

    /// Answers open questions. Each key is taken once; those that are not open are ignored. `None` when there is no
    /// such task, or it belongs to somebody else.
    fn answer<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a TaskId,
        answers: Vec<Answer>,
    ) -> Op<'a, Option<Answered>>;

    /// Ends a task that has not ended, and raises its fence: whoever works on it has lost it. Its note becomes `why`. `None`
    /// when there is no such task, or it belongs to somebody else.
    fn cancel<'a>(&'a self, owner: &'a Owner, id: &'a TaskId, why: TaskNote) -> Op<'a, Option<Cancelled>>;

    /// Removes at most `limit` tasks that have expired, each with everything that belongs to it, and says how many
    /// that were.
    fn sweep(&self, limit: usize) -> Op<'_, usize>;
}

/// How long the next claim has to wait beyond the end of this lease, when a task has been claimed `attempt` times
/// without any progress.
///
/// ```
/// use std::time::Duration;
/// use toolwire_store::pause_before_next;
///
/// let lease = Duration::from_secs(20);
/// let pauses = [1, 2, 3, 4, 5].map(|attempt| pause_before_next(attempt, lease).as_secs());
/// assert_eq!(pauses, [0, 10, 60, 300, 300]);
/// ```
pub fn pause_before_next(attempt: u32, lease: Duration) -> Duration {
    match attempt {
        0 | 1 => Duration::ZERO,
        2 => lease / 2,
        3 => lease.saturating_mul(3),
        _ => lease.saturating_mul(15),
    }
}

/// One entry of a journal. What it means is for those who write it: a store keeps it byte for byte.
pub type Entry = RawJson;

/// A task that is to be stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewTask {
    /// Its name, which has never been used before.
    pub id: TaskId,
    /// Whom it belongs to.
    pub owner: Owner,
    /// For whom it is counted as long as it has not ended.
    pub quota: Quota,
    /// How many of that quota there may be. Default 256.
    pub limit: usize,
    /// The format of its journal. Only nodes that read it can claim the task. Default 1.
    pub format: u32,
    /// The key that its values are sealed with, if they are. Only nodes that have it can claim the task.
    pub key: Option<KeyId>,
    /// The request that it carries out.
    pub request: TaskRequest,
    /// What is in its journal already.
    pub journal: Vec<Entry>,
    /// How long it is kept after its state last changed. Default 24 hours.
    pub keep: Duration,
    /// How long it is kept at least while it works. Default 30 days.
    pub ttl: Duration,
    /// How often its owner may ask for it. Default 1 s.
    pub poll: Duration,
    /// Who works on it already, and for how long that holds. Without one it is ready.
    pub lease: Option<NewLease>,
}

impl NewTask {
    /// A task with the defaults of its fields, not leased.
    pub fn new(id: TaskId, owner: Owner, quota: Quota, request: TaskRequest) -> Self {
        Self {
            id,
            owner,
            quota,
            limit: 256,
            format: 1,
            key: None,
            request,
            journal: Vec::new(),
            keep: Duration::from_secs(24 * 60 * 60),
            ttl: Duration::from_secs(30 * 24 * 60 * 60),
            poll: Duration::from_secs(1),
            lease: None,
        }
    }
}

/// A lease that a task is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who, proven by what, for how long: there is no more to say")]
pub struct NewLease {
    /// Who works on the task.
    pub node: NodeId,
    /// What its writes show.
    pub token: Token,
    /// For how long, by the store's clock.
    pub lease: Duration,
}

/// The request that a task carries out, with all that a later run needs to know of it.
///
/// Its JSON form is what stores keep. Names may be added to it, never removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRequest {
    /// The tool that was called.
    pub tool: String,
    /// The revision of the tool's function that began it. Only nodes that serve this one can claim the task.
    pub revision: u32,
    /// The protocol version of the call.
    #[serde(deserialize_with = "crate::version::read")]
    pub version: Version,
    /// The parameters of the call.
    pub params: RawJson,
    /// What the client has said of itself.
    pub client: RawJson,
    /// Who called, without any token.
    pub principal: RawJson,
    /// The extensions that travel with the task.
    pub carried: RawJson,
    /// The session that it was created in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionKey>,
    /// What the client wants to be told the progress with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressToken>,
    /// What idempotency keys are made of.
    pub call: String,
    /// Whether it can only be run by the process that began it.
    #[serde(default)]
    pub live: bool,
    /// Whether the caller was shown an output schema in which the result is wrapped.
    #[serde(default)]
    pub wrap: bool,
}

impl TaskRequest {
    /// A call of a tool. The rest is empty: revision 1, no client, principal or extensions (`null`), an empty `call`.
    pub fn new(tool: impl Into<String>, version: Version, params: RawJson) -> Self {
        let null = || RawJson::from(&serde_json::Value::Null);
        Self {
            tool: tool.into(),
            revision: 1,
            version,
            params,
            client: null(),
            principal: null(),
            carried: null(),
            session: None,
            progress: None,
            call: String::new(),
            live: false,
            wrap: false,
        }
    }
}

/// What [`TaskStore::create`] has made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Created {
    /// The task.
    pub view: TaskView,
    /// The lease that the caller has now. `None` if he asked for none, or has lost it between two calls.
    pub lease: Option<Lease>,
    /// The store's time.
    pub now_ms: u64,
}

impl Created {
    /// The answer of a store.
    pub fn new(view: TaskView, lease: Option<Lease>, now_ms: u64) -> Self {
        Self { view, lease, now_ms }
    }
}

/// The right to write to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "what a write has to show, and no more")]
pub struct Lease {
    /// The task.
    pub id: TaskId,
    /// Grows with each claim. It can be shown to others, too, who then take only what comes from the newest run.
    pub fence: u64,
    /// What proves that the claim was this one.
    pub token: Token,
}

/// What a task shows in a list.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskHead {
    /// Its name.
    pub id: TaskId,
    /// The tool that was called.
    pub tool: String,
    /// How it stands.
    pub status: TaskStatus,
    /// Whether its result says of itself that it is an error.
    pub is_error: bool,
    /// How far it is.
    pub note: TaskNote,
    /// When it was created, in milliseconds since 1970 by the store's clock.
    pub created_ms: u64,
    /// When it last changed, the same way. Never before an earlier one.
    pub updated_ms: u64,
    /// Until when it is there for certain, the same way. Never before an earlier one.
    pub expires_ms: u64,
    /// How often its owner may ask for it, in milliseconds.
    pub poll_ms: u64,
    /// Grows with each change of what a view shows, that is with everything but claims, releases, renewals and entries of
    /// the journal that only the handler knows of.
    pub rev: u64,
    /// The session that it was created in.
    pub session: Option<SessionKey>,
}

impl TaskHead {
    /// The head of a task that was just created. For stores.
    pub fn new(id: TaskId, tool: impl Into<String>, created_ms: u64) -> Self {
        Self {
            id,
            tool: tool.into(),
            status: TaskStatus::Working,
            is_error: false,
            note: TaskNote::default(),
            created_ms,
            updated_ms: created_ms,
            expires_ms: created_ms,
            poll_ms: 1000,
            rev: 1,
            session: None,
        }
    }
}

/// A task as its owner sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskView {
    /// What it shows in a list.
    pub head: TaskHead,
    /// The questions that are open.
    pub open: Vec<OpenQuestion>,
    /// How it ended. A task that was cancelled has none.
    pub outcome: Option<Outcome>,
}

impl TaskView {
    /// The answer of a store.
    pub fn new(head: TaskHead, open: Vec<OpenQuestion>, outcome: Option<Outcome>) -> Self {
        Self { head, open, outcome }
    }
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a key and its value")]
pub struct OpenQuestion {
    /// The key that it is answered with. One key never stands for two questions of a task.
    pub key: String,
    /// The question.
    pub question: RawJson,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these two")]
pub enum Outcome {
    /// With a result: it is completed.
    Result(RawJson),
    /// With an error: it has failed.
    Error(RawJson),
}

/// How far a task is, for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskNote {
    /// What it is doing, or what became of it. Sealed where values are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<RawJson>,
    /// How much of it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// How much there is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

impl TaskNote {
    /// A note with a message and no numbers.
    pub fn message(message: RawJson) -> Self {
        Self { message: Some(message), done: None, total: None }
    }
}

/// Which tasks a node can work on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// The node.
    pub node: NodeId,
    /// What the writes of the new leases show. A new random one for each claim.
    pub token: Token,
    /// The tools and revisions of them that the node serves.
    pub serves: Vec<(String, u32)>,
    /// The newest format of journals that it reads. It reads all older ones. Default 1.
    pub format: u32,
    /// The keys that it has. What is not sealed needs none.
    pub keys: Vec<KeyId>,
    /// How many it takes at most.
    pub max: usize,
    /// For how long it takes them.
    pub lease: Duration,
}

impl Claim {
    /// A claim of tasks that are not sealed, in format 1.
    pub fn new(node: NodeId, token: Token, serves: Vec<(String, u32)>, max: usize, lease: Duration) -> Self {
        Self { node, token, serves, format: 1, keys: Vec::new(), max, lease }
    }
}

/// A task that a node has taken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claimed {
    /// The right to write to it.
    pub lease: Lease,
    /// Whom it belongs to.
    pub owner: Owner,
    /// What it shows.
    pub head: TaskHead,
    /// The request that it carries out.
    pub request: TaskRequest,
    /// Everything that was ever written to its journal, in order.
    pub journal: Vec<Entry>,
    /// How often it was claimed without progress, this time included.
    pub attempt: u32,
    /// The format of the journal.
    pub format: u32,
    /// The key that its values are sealed with, if they are.
    pub key: Option<KeyId>,
    /// The store's time.
    pub now_ms: u64,
}

impl Claimed {
    /// The answer of a store: the first attempt, at a journal of format 1 that is not sealed and empty.
    pub fn new(lease: Lease, owner: Owner, head: TaskHead, request: TaskRequest, now_ms: u64) -> Self {
        Self { lease, owner, head, request, journal: Vec::new(), attempt: 1, format: 1, key: None, now_ms }
    }
}

/// What became of leases that were to be renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renewed {
    /// Those that are lost. All others are renewed.
    pub lost: Vec<TaskId>,
    /// The store's time.
    pub now_ms: u64,
}

impl Renewed {
    /// The answer of a store.
    pub fn new(lost: Vec<TaskId>, now_ms: u64) -> Self {
        Self { lost, now_ms }
    }
}

/// What a run writes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Advance {
    /// Adds entries to the journal. The run goes on.
    Record(Vec<Entry>),
    /// Changes the note. The run goes on.
    Note(TaskNote),
    /// The run waits for answers, for a time, or for both.
    Park(Park),
    /// The run, and the task, has ended.
    Finish(Finish),
    /// The run was given up, and somebody else shall begin another one now.
    Release,
}

/// What a run waits for.
///
/// Of the questions in `open`, those are opened that have never been answered; every other open question of the task is closed.
/// If all of them have been answered meanwhile, or neither a question nor a time was given, the task is ready
/// at once. Otherwise it waits until none is open any more or, if there is one, until the time has come.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Park {
    /// Added to the journal.
    pub entries: Vec<Entry>,
    /// The questions that the run waits for, all of them.
    pub open: Vec<OpenQuestion>,
    /// When to go on in any case, from now.
    pub wake: Option<Duration>,
    /// Whether the run stays in the memory of its node, with its lease.
    pub hold: bool,
    /// The note from now on; `None` leaves it as it is.
    pub note: Option<TaskNote>,
}

/// How a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finish {
    /// With what.
    pub outcome: Outcome,
    /// Whether the result says of itself that it is an error.
    pub is_error: bool,
    /// How long to keep it from now. It never shortens what [`NewTask::keep`] gives.
    pub keep: Duration,
    /// The note from now on; `None` leaves it as it is.
    pub note: Option<TaskNote>,
}

impl Finish {
    /// The end of a task that is kept for as long as it was said when it was created.
    pub fn new(outcome: Outcome) -> Self {
        Self { outcome, is_error: false, keep: Duration::ZERO, note: None }
    }
}

/// An answer to an open question.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a key and its value")]
pub struct Answer {
    /// The key of the question.
    pub key: String,
    /// What is added to the journal if the question is open.
    pub entry: Entry,
}

/// What became of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answered {
    /// The keys that were open, and have been answered by this call.
    pub taken: Vec<String>,
    /// The keys that are open still.
    pub left: Vec<String>,
    /// Whether this call made the task ready.
    pub ready: bool,
}

impl Answered {
    /// The answer of a store.
    pub fn new(taken: Vec<String>, left: Vec<String>, ready: bool) -> Self {
        Self { taken, left, ready }
    }
}

/// What became of a cancellation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cancelled {
    /// The task as it is now.
    pub now: TaskView,
    /// Whether it had ended before, so that nothing was changed.
    pub was_terminal: bool,
}

impl Cancelled {
    /// The answer of a store.
    pub fn new(now: TaskView, was_terminal: bool) -> Self {
        Self { now, was_terminal }
    }
}
