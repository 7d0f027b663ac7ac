//! A store of tasks that fails when it is told to.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use toolwire_store::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Lease, NewTask, Op, Owner, Renewed,
    StoreError, TaskHead, TaskId, TaskNote, TaskStore, TaskView,
};

/// What happens to a call. See [`Faulty`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is not carried out, and is `Unavailable`.
    Before,
    /// It is carried out, but its reply is lost: it is `Unavailable`.
    After,
    /// It is carried out after this time.
    Delay(Duration),
    /// It is carried out, and its reply takes this time.
    DelayReply(Duration),
    /// The process is aborted before it is carried out.
    AbortBefore,
    /// The process is aborted after it was carried out.
    AbortAfter,
}

/// Says what happens to each call: its number, counted from 1, and the name of the operation.
pub type Plan = Arc<dyn Fn(u64, &'static str) -> Option<Fault> + Send + Sync>;

/// A store of tasks whose calls fail, end the process or take their time as planned. Otherwise it does what the one inside it does.
///
/// ```
/// use std::sync::Arc;
/// use toolwire_store::{Store, TaskStore};
/// use toolwire_testkit::store::faulty::{Fault, Faulty};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = Store::memory();
/// let faulty = Faulty::kth(store.tasks().clone(), 2, Fault::After);
/// assert!(faulty.sweep(1).await.is_ok());
/// assert!(faulty.sweep(1).await.unwrap_err().is_unavailable());
/// assert!(faulty.sweep(1).await.is_ok());
/// let store = store.with_tasks(Arc::new(faulty));
/// # }
/// ```
pub struct Faulty {
    inner: Arc<dyn TaskStore>,
    calls: AtomicU64,
    plan: Plan,
}

impl Faulty {
    /// A store that does what the plan says with each call.
    pub fn new(inner: Arc<dyn TaskStore>, plan: Plan) -> Self {
        Self { inner, calls: AtomicU64::new(0), plan }
    }

    /// A store of which one call, counted from 1, goes wrong.
    pub fn kth(inner: Arc<dyn TaskStore>, k: u64, fault: Fault) -> Self {
        Self::new(inner, Arc::new(move |call, _| (call == k).then_some(fault)))
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn run<'a, T: Send + 'a>(&'a self, name: &'static str, call: Op<'a, T>) -> Op<'a, T> {
        Box::pin(async move {
            let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
            let fault = (self.plan)(number, name);
            match fault {
                Some(Fault::Before) => return Err(StoreError::unavailable("a fault, before the call")),
                Some(Fault::AbortBefore) => std::process::abort(),
                Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
                _ => {}
            }
            let done = call.await;
            match fault {
                Some(Fault::After) => Err(StoreError::unavailable("a fault, after the call")),
                Some(Fault::AbortAfter) => std::process::abort(),
                Some(Fault::DelayReply(time)) => {
                    tokio::time::sleep(time).await;
                    done
                }
                _ => done,
            }
        })
    }
}

impl TaskStore for Faulty {
    fn create(&self, task: NewTask) -> Op<'_, Created> {
        self.run("create", self.inner.create(task))
    }

    fn view<'a>(&'a self, owner: &'a Owner, id: &'a TaskId) -> Op<'a, Option<TaskView>> {
        self.run("view", self.inner.view(owner, id))
    }

    fn list<'a>(
        &'a self,
        owner: &'a Owner,
        after: Option<(u64, &'a TaskId)>,
        limit: usize,
    ) -> Op<'a, Vec<TaskHead>> {
        self.run("list", self.inner.list(owner, after, limit))
    }

    fn revs<'a>(&'a self, ids: &'a [TaskId]) -> Op<'a, Vec<Option<u64>>> {
        self.run("revs", self.inner.revs(ids))
    }

    fn claim<'a>(&'a self, claim: &'a Claim) -> Op<'a, Vec<Claimed>> {
        self.run("claim", self.inner.claim(claim))
    }

    fn renew<'a>(&'a self, leases: &'a [Lease], lease: Duration) -> Op<'a, Renewed> {
        self.run("renew", self.inner.renew(leases, lease))
    }

    fn advance<'a>(&'a self, lease: &'a Lease, n: u64, step: Advance) -> Op<'a, u64> {
        self.run("advance", self.inner.advance(lease, n, step))
    }

    fn answers<'a>(&'a self, lease: &'a Lease) -> Op<'a, Vec<Entry>> {
        self.run("answers", self.inner.answers(lease))
    }

    fn answer<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a TaskId,
        answers: Vec<Answer>,
    ) -> Op<'a, Option<Answered>> {
        self.run("answer", self.inner.answer(owner, id, answers))
    }

    fn cancel<'a>(&'a self, owner: &'a Owner, id: &'a TaskId, why: TaskNote) -> Op<'a, Option<Cancelled>> {
        self.run("cancel", self.inner.cancel(owner, id, why))
    }

    fn sweep(&self, limit: usize) -> Op<'_, usize> {
        self.run("sweep", self.inner.sweep(limit))
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("inner", &self.inner)
            .field("calls", &self.calls())
            .finish_non_exhaustive()
    }
}
