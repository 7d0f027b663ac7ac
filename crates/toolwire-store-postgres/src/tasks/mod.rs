//! Tasks. An operation locks the row, applies the rules that all stores share, and writes the row back: whoever waited for
//! the lock sees what the other has written. A claim reads the journals with a statement of their own, after the locks:
//! in one, an entry that was committed between its snapshot and its lock would be missing. It writes nothing before it has
//! read everything.

mod claim;
mod operations;
mod row;
mod save;

use std::sync::Arc;
use std::time::Duration;

use toolwire_store::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Lease, NewTask, Op, Owner, Renewed,
    TaskHead, TaskId, TaskNote, TaskStore, TaskView, limits::Check,
};

pub(crate) use row::{exact, signed, unsigned};

use crate::connection::Connections;
use claim::{ClaimTasks, RenewLeases, Sweep};
use operations::{AnswerTask, AnswersOf, CancelTask, CreateTask, ListTasks, RevsOf, View, Write};

/// How many tasks one call removes.
const SWEPT: usize = 500;

/// How many tasks one call lists.
const LISTED: usize = 1000;

/// Tasks in Postgres.
#[derive(Debug)]
pub(crate) struct PostgresTasks(pub(crate) Arc<Connections>);

impl TaskStore for PostgresTasks {
    fn create(&self, task: NewTask) -> Op<'_, Created> {
        Box::pin(async move {
            task.check()?;
            self.0.run(CreateTask(task)).await
        })
    }

    fn view<'a>(&'a self, owner: &'a Owner, id: &'a TaskId) -> Op<'a, Option<TaskView>> {
        Box::pin(self.0.run(View(*owner, *id)))
    }

    fn list<'a>(
        &'a self,
        owner: &'a Owner,
        after: Option<(u64, &'a TaskId)>,
        limit: usize,
    ) -> Op<'a, Vec<TaskHead>> {
        let after = after.map(|(created, id)| (created, *id));
        Box::pin(self.0.run(ListTasks { owner: *owner, after, limit: limit.min(LISTED) }))
    }

    fn revs<'a>(&'a self, ids: &'a [TaskId]) -> Op<'a, Vec<Option<u64>>> {
        Box::pin(self.0.run(RevsOf(ids.to_vec())))
    }

    fn claim<'a>(&'a self, claim: &'a Claim) -> Op<'a, Vec<Claimed>> {
        Box::pin(self.0.run(ClaimTasks(claim.clone())))
    }

    fn renew<'a>(&'a self, leases: &'a [Lease], lease: Duration) -> Op<'a, Renewed> {
        Box::pin(self.0.run(RenewLeases { leases: leases.to_vec(), lease }))
    }

    fn advance<'a>(&'a self, lease: &'a Lease, n: u64, step: Advance) -> Op<'a, u64> {
        Box::pin(async move {
            step.check()?;
            self.0.run(Write { lease: *lease, n, step }).await
        })
    }

    fn answers<'a>(&'a self, lease: &'a Lease) -> Op<'a, Vec<Entry>> {
        Box::pin(self.0.run(AnswersOf(*lease)))
    }

    fn answer<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a TaskId,
        answers: Vec<Answer>,
    ) -> Op<'a, Option<Answered>> {
        Box::pin(async move {
            answers.check()?;
            self.0.run(AnswerTask { owner: *owner, id: *id, answers }).await
        })
    }

    fn cancel<'a>(&'a self, owner: &'a Owner, id: &'a TaskId, why: TaskNote) -> Op<'a, Option<Cancelled>> {
        Box::pin(async move {
            why.check()?;
            self.0.run(CancelTask { owner: *owner, id: *id, why }).await
        })
    }

    fn sweep(&self, limit: usize) -> Op<'_, usize> {
        Box::pin(self.0.run(Sweep(limit.min(SWEPT))))
    }
}
