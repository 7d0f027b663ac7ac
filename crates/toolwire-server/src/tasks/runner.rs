//! Drives one run of a task to its end, or to where it waits.

mod ending;
mod waiting;
mod writing;

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll},
    time::Duration,
};

use tokio::time::{Sleep, sleep};
use toolwire_protocol::{RpcError, journal::Folded};
use toolwire_store::Lease;

use self::{
    waiting::{Held, Seen},
    writing::Writing,
};
use super::{
    run::{End, TaskRun},
    runs::{Registered, RunPlace},
    service::TaskService,
    vault::TaskVault,
};
use crate::{Context, Reply, engine::DetachedRun};

/// The longest pause between two tries of an operation of the store.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Drives a run. It has the only hand that writes to the task.
pub(super) struct Runner {
    pub(super) service: Arc<TaskService>,
    pub(super) run: Arc<TaskRun>,
    pub(super) cx: Context,
    pub(super) lease: Lease,
    pub(super) vault: TaskVault,
    /// What the journal comes to.
    pub(super) folded: Folded,
    pub(super) live: bool,
    pub(super) run_time: Duration,
    /// How long the tool wants its tasks to be kept.
    pub(super) keep: Option<Duration>,
    pub(super) place: Option<RunPlace>,
    pub(super) registered: Registered,
}

/// What a run has come to.
enum Turn {
    Done(Result<Reply, RpcError>),
    /// The handler waits for answers or a time, and for nothing else.
    Settled,
    /// Answers may have come.
    Look,
    Overtime,
    End(End),
}

/// The run while it goes on.
struct Driven {
    base: Runner,
    work: Option<DetachedRun>,
    /// The number of the last write.
    n: u64,
    writing: Option<Writing>,
    /// Entries that are to be written one by one, because together they were refused.
    alone: usize,
    note_due: Option<Pin<Box<Sleep>>>,
    /// The end of the time of the run. It counts while the run has a place.
    deadline: Pin<Box<Sleep>>,
    /// What a run that waits here has asked, while it does.
    held: Option<Held>,
    /// The answers that it was given, or that were not for it.
    seen: Seen,
}

impl Runner {
    /// Runs `work`, which is what the handler does.
    pub(super) async fn drive(self, work: DetachedRun) {
        Driven::new(self, Some(work)).drive().await;
    }

    /// Ends the task without running anything.
    pub(super) async fn fail(self, error: RpcError) {
        Driven::new(self, None).finish(Err(error)).await;
    }
}

impl Driven {
    fn new(base: Runner, work: Option<DetachedRun>) -> Self {
        let deadline = Box::pin(sleep(base.run_time));
        Self {
            base,
            work,
            n: 0,
            writing: None,
            alone: 0,
            note_due: None,
            deadline,
            held: None,
            seen: Seen::default(),
        }
    }

    async fn drive(mut self) {
        loop {
            match poll_fn(|task| self.poll_turn(task)).await {
                Turn::Done(Ok(Reply::NeedInput(need))) => return self.ask(need).await,
                Turn::Done(result) => return self.finish(result).await,
                Turn::Settled if self.base.live => {
                    if let Err(error) = self.hold().await {
                        // The reason why it has to end is the better one.
                        if !(error.is_for_room() && self.base.run.has_end()) {
                            return self.finish_unless_lost(error).await;
                        }
                    }
                }
                Turn::Settled => return self.park().await,
                Turn::Look => {
                    if self.take_answers().await.is_err() {
                        return;
                    }
                }
                Turn::Overtime => {
                    let seconds = self.base.run_time.as_secs();
                    let error =
                        format!("the task ran for {seconds} s without a question (limit task_run_time)");
                    return self.finish(Err(RpcError::internal(error))).await;
                }
                Turn::End(end) => return self.end(end).await,
            }
        }
    }

    fn poll_turn(&mut self, task: &mut Task<'_>) -> Poll<Turn> {
        loop {
            // Before the end is looked at: a write that was given up because of it does not reach the handler.
            if let Some(end) = self.poll_writing(task) {
                return Poll::Ready(Turn::End(end));
            }
            // Looked at before every poll of the handler: a node that was frozen must not go on with what is not its own.
            if let Some(end) = self.base.run.poll_end(task) {
                return Poll::Ready(Turn::End(end));
            }
            if !self.base.live && self.base.run.age() >= self.base.service.fencing_age() {
                return Poll::Ready(Turn::End(End::Fenced));
            }
            if self.held.is_some() && self.base.run.take_look() {
                return Poll::Ready(Turn::Look);
            }
            if self.base.place.is_some() && self.deadline.as_mut().poll(task).is_ready() {
                return Poll::Ready(Turn::Overtime);
            }
            if let Some(work) = &mut self.work
                && let Poll::Ready(result) = Pin::new(work).poll(task)
            {
                return Poll::Ready(Turn::Done(result));
            }
            if self.writing.is_none() {
                if self.begin_writing(task) {
                    continue;
                }
                let settled = self.base.cx.journal().is_settled(task.waker());
                if settled && !self.is_held_for_all() {
                    return Poll::Ready(Turn::Settled);
                }
                if settled {
                    // It had some of its answers, and waits for the others as it did before it had them: without a
                    // place, and for as long as they take.
                    self.base.place = None;
                }
            }
            return Poll::Pending;
        }
    }
}
