//! A store whose calls are watched, and go wrong as a test wants.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use toolwire_server::{Server, ServerBuilder};
use toolwire_store::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Lease, NewTask, Op, Owner, Renewed,
    StoreError, TaskHead, TaskId, TaskNote, TaskStore, TaskView,
};

use super::*;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// It is not carried out.
    Fails,
    /// It is not carried out for lack of room.
    Full,
    /// It is carried out, and its reply gets lost.
    LosesReply,
    /// It is carried out after half of this time, and its reply takes the other half.
    Takes(Duration),
}

type Plan = Box<dyn Fn(&'static str) -> Fate + Send>;

/// A way to a store.
#[derive(Clone)]
pub(super) struct Tap {
    store: Arc<dyn TaskStore>,
    plan: Arc<Mutex<Plan>>,
    calls: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Tap {
    pub(super) fn to(bench: &Bench) -> Self {
        let plan: Plan = Box::new(|_| Fate::Done);
        Self { store: bench.memory.tasks().clone(), plan: Arc::new(Mutex::new(plan)), calls: Arc::default() }
    }

    /// A server that reaches the store by this way.
    pub(super) fn node(&self, bench: &Bench) -> ServerBuilder {
        Server::builder("t", "1").store(bench.store.clone().with_tasks(Arc::new(self.clone())))
    }

    pub(super) fn plan(&self, plan: impl Fn(&'static str) -> Fate + Send + 'static) {
        *self.plan.lock().unwrap() = Box::new(plan);
    }

    /// Gives every call this fate from now on.
    pub(super) fn all(&self, fate: Fate) {
        self.plan(move |_| fate);
    }

    /// Leaves no room for what runs write. Giving a task back needs none.
    pub(super) fn refuse_growth(&self) {
        self.plan(|name| if name == "advance" { Fate::Full } else { Fate::Done });
    }

    /// Carries everything out, and loses every third reply.
    pub(super) fn lose_every_third_reply(&self) {
        let calls = AtomicUsize::new(0);
        self.plan(move |_| match calls.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => Fate::LosesReply,
            _ => Fate::Done,
        });
    }

    /// Returns the number of calls of this operation. `advance` does not count releases.
    pub(super) fn calls(&self, name: &str) -> usize {
        self.calls.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    fn pass<'a, T: Send + 'a>(&'a self, name: &'static str, call: Op<'a, T>) -> Op<'a, T> {
        Box::pin(async move {
            *self.calls.lock().unwrap().entry(name).or_default() += 1;
            let fate = (self.plan.lock().unwrap())(name);
            match fate {
                Fate::Done => call.await,
                Fate::Fails => Err(StoreError::unavailable("it is out of reach")),
                Fate::Full => Err(StoreError::Full("bytes of tests")),
                Fate::LosesReply => {
                    let _ = call.await;
                    Err(StoreError::unavailable("the reply was lost"))
                }
                Fate::Takes(time) => {
                    tokio::time::sleep(time / 2).await;
                    let done = call.await;
                    tokio::time::sleep(time / 2).await;
                    done
                }
            }
        })
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

impl TaskStore for Tap {
    fn create(&self, task: NewTask) -> Op<'_, Created> {
        self.pass("create", self.store.create(task))
    }
    fn view<'a>(&'a self, owner: &'a Owner, id: &'a TaskId) -> Op<'a, Option<TaskView>> {
        self.pass("view", self.store.view(owner, id))
    }
    fn list<'a>(
        &'a self,
        owner: &'a Owner,
        after: Option<(u64, &'a TaskId)>,
        limit: usize,
    ) -> Op<'a, Vec<TaskHead>> {
        self.pass("list", self.store.list(owner, after, limit))
    }
    fn revs<'a>(&'a self, ids: &'a [TaskId]) -> Op<'a, Vec<Option<u64>>> {
        self.pass("revs", self.store.revs(ids))
    }
    fn claim<'a>(&'a self, claim: &'a Claim) -> Op<'a, Vec<Claimed>> {
        self.pass("claim", self.store.claim(claim))
    }
    fn renew<'a>(&'a self, leases: &'a [Lease], lease: Duration) -> Op<'a, Renewed> {
        self.pass("renew", self.store.renew(leases, lease))
    }
    fn advance<'a>(&'a self, lease: &'a Lease, n: u64, step: Advance) -> Op<'a, u64> {
        let name = if matches!(step, Advance::Release) { "release" } else { "advance" };
        self.pass(name, self.store.advance(lease, n, step))
    }
    fn answers<'a>(&'a self, lease: &'a Lease) -> Op<'a, Vec<Entry>> {
        self.pass("answers", self.store.answers(lease))
    }
    fn answer<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a TaskId,
        answers: Vec<Answer>,
    ) -> Op<'a, Option<Answered>> {
        self.pass("answer", self.store.answer(owner, id, answers))
    }
    fn cancel<'a>(&'a self, owner: &'a Owner, id: &'a TaskId, why: TaskNote) -> Op<'a, Option<Cancelled>> {
        self.pass("cancel", self.store.cancel(owner, id, why))
    }
    fn sweep(&self, limit: usize) -> Op<'_, usize> {
        self.pass("sweep", self.store.sweep(limit))
    }
}
