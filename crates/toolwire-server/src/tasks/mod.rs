//! Calls that become tasks: work that outlives its request, and its process if there is a store for it.
//!
//! A task is a run of the handler against a journal, which lies in a [`TaskStore`](toolwire_store::TaskStore) instead of
//! with the client. `detach` makes one of a call, `runner` drives a run to its end or to where it waits, `revive` makes a
//! run of what is stored, `strangers` gives back what cannot be run here, and `heart` keeps leases and looks for work.
//! `serve`, `view` and `watch` are what clients see of it. Nothing here is part of a program that has no tasks: it is
//! reached by [`Tasks`], whose only maker is called by those who want some.

mod asker;
mod carry;
mod claims;
mod detach;
mod gate;
mod heart;
mod hub;
mod policy;
mod recent;
mod revive;
mod run;
mod runner;
mod runs;
mod serve;
mod service;
mod strangers;
mod undo;
mod vault;
mod view;
mod watch;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use toolwire_protocol::{Response, journal::Entry};
use toolwire_store::{Owner, SessionKey, Store, TaskId};
use toolwire_transport::BoxFuture;

pub(crate) use carry::Carrier;
pub(crate) use gate::Gate;
pub(crate) use hub::Watch;
pub(crate) use policy::TaskOffer;
pub use policy::TaskPolicy;
pub(crate) use serve::check_extension;
pub(crate) use watch::{Answering, Glance, Look, SessionTasks, Told, owner_of};

use crate::{
    Caller, CallerId, Context, Limits, Server, StateKeys, ToolRoute, ask::AskError, handler::Answer,
    server::WeakServer,
};
use service::TaskService;

/// Makes the engine.
pub(crate) type Engine = fn(Parts) -> Arc<dyn Tasks>;

/// What the engine is made of.
pub(crate) struct Parts {
    pub(crate) server: WeakServer,
    /// Where tasks are kept; without one in memory.
    pub(crate) store: Option<Store>,
    pub(crate) limits: Limits,
    pub(crate) keys: StateKeys,
    pub(crate) name: String,
    pub(crate) carriers: Vec<Carrier>,
}

/// Makes the engine. To be named only by those who want tasks.
pub(crate) fn engine(parts: Parts) -> Arc<dyn Tasks> {
    Arc::new(TaskService::new(parts))
}

/// The tasks of a server, as the rest of it sees them.
pub(crate) trait Tasks: fmt::Debug + Send + Sync {
    /// Begins to look for work, if that has not begun and there is a runtime; the first time when `first` is over.
    fn start(self: Arc<Self>, first: Duration);

    /// A place where clients are served looks for work as well, until it [leaves](Self::leave).
    fn enter(self: Arc<Self>);

    /// A place where clients were served is gone. Says whether it was the last one.
    fn leave(&self) -> bool;

    /// Begins nothing new, lets what runs come to its end within `patience`, and has the rest given back to the store.
    fn end(self: Arc<Self>, patience: Duration) -> BoxFuture<'static, ()>;

    /// Answers the call of a tool, by its result or by a task.
    fn call(self: Arc<Self>, cx: Context, route: Arc<ToolRoute>) -> Answer;

    /// Answers what is about tasks: `tasks/get` and its siblings.
    fn serve(self: Arc<Self>, cx: Context) -> Answer;

    /// What the tasks are known by that are made in the session of this caller, if it has one.
    fn session_key(&self, caller: &Caller) -> Option<SessionKey>;

    /// Has changes of a task told by the notifier of the server, at the latest two seconds after them, until it is dropped.
    fn follow(&self, id: TaskId) -> Watch;

    /// Looks at a task. `None` if there is nothing to see for whoever looks.
    fn look_at(self: Arc<Self>, look: Look) -> BoxFuture<'static, Option<Glance>>;

    /// Takes the response of a client to a question of a task. Gives other responses back.
    fn take_answer(
        self: Arc<Self>,
        owner: Owner,
        caller: CallerId,
        response: Response,
    ) -> Result<Answering, Response>;
}

/// What the context of a call has that may become a task, or is one.
#[derive(Debug, Default)]
pub(crate) struct InTask {
    pub(crate) gate: Gate,
    run: Mutex<Option<Arc<dyn Run>>>,
}

impl InTask {
    /// The run that the handler belongs to, if it is one of a task.
    pub(crate) fn run(&self) -> Option<Arc<dyn Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn set(&self, run: Option<Arc<dyn Run>>) {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }
}

/// A write to the journal that is under way.
pub(crate) type Recorded = Pin<Box<dyn Future<Output = Result<(), AskError>> + Send>>;

/// A run of a task, as its handler sees it.
pub(crate) trait Run: fmt::Debug + Send + Sync {
    /// Writes an entry to the journal. It is written when this resolves, also if nobody waits for it.
    fn record(&self, entry: Entry) -> Recorded;

    /// Tells how far the work has come.
    fn report(&self, done: f64, total: Option<f64>, message: Option<String>);

    /// How often the task was begun without progress.
    fn attempt(&self) -> u32;

    /// A number that grows with each run.
    fn fence(&self) -> u64;

    /// Whether the run waits where it is.
    fn is_live(&self) -> bool;

    /// The time of the store, in milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// Time after which a mounted endpoint begins to claim tasks, at the earliest. A process that ends at once, because
/// it cannot listen for example, has not claimed any by then.
const MOUNT_PAUSE: Duration = Duration::from_secs(1);

/// A place where clients are served, as far as tasks are concerned. Tasks are worked on until it is dropped or
/// [ended](Self::ended).
#[doc(hidden)]
#[derive(Debug)]
pub struct TaskPlace {
    server: Server,
    entered: Option<Arc<dyn Tasks>>,
}

impl TaskPlace {
    /// Resolves when the tasks that run here have ended or were given back to their store, if the server is shut down. So
    /// it does if `process` says that the process ends with this place, and there is no other one: then they are given back
    /// at once, since the parent of the process may not wait for long.
    pub async fn ended(mut self, process: bool) {
        if self.server.shutting_down().is_cancelled() {
            return self.server.end_tasks().await;
        }
        let is_last = self.entered.take().is_none_or(|tasks| tasks.leave());
        if process
            && is_last
            && let Some(tasks) = self.server.tasks()
        {
            Arc::clone(tasks).end(Duration::ZERO).await;
        }
    }
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        if let Some(tasks) = self.entered.take() {
            tasks.leave();
        }
    }
}

impl Server {
    /// Begins to look for tasks that can be worked on, on servers that have some. Transports call it when they begin to
    /// serve; it does nothing without a runtime, and nothing if it was called before.
    #[doc(hidden)]
    pub fn start_tasks(&self) {
        if let Some(tasks) = self.tasks() {
            Arc::clone(tasks).start(Duration::ZERO);
        }
    }

    /// Begins to look for tasks a second later, for an endpoint that another program part may come to serve.
    #[doc(hidden)]
    pub fn start_tasks_soon(&self) {
        if let Some(tasks) = self.tasks() {
            Arc::clone(tasks).start(MOUNT_PAUSE);
        }
    }

    /// Begins to look for tasks, in the name of a place that sees to their end as well.
    #[doc(hidden)]
    pub fn begin_tasks(&self) -> TaskPlace {
        let entered = self.tasks().cloned();
        if let Some(tasks) = &entered {
            Arc::clone(tasks).enter();
        }
        TaskPlace { server: self.clone(), entered }
    }

    /// Ends the work on tasks in this process: no task is begun any more, those that run may finish within the limit
    /// `drain_timeout`, and the others are given back to their store, so that another process can go on with them at
    /// once. Resolves when that is done, at the latest five seconds after `drain_timeout`. What cannot go on elsewhere, as
    /// it is [live](TaskPolicy::live), has failed then.
    ///
    /// Functions that serve until [`shutdown`](Self::shutdown), such as [`serve_listener`](Self::serve_listener), do this
    /// before they return. It is for programs in which something else serves: call `shutdown` when the signal to end comes,
    /// and await this before the runtime ends. A server without tasks has nothing to do.
    ///
    /// ```
    /// # use toolwire_server::{Server, TaskPolicy, tool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let report = tool("report", || async { "done" }).task(TaskPolicy::optional());
    /// let server = Server::builder("reports", "1.0").tool(report).build().unwrap();
    /// // … requests are served by a framework, which has ended by now …
    /// server.shutdown();
    /// server.end_tasks().await;
    /// # }
    /// ```
    pub fn end_tasks(&self) -> impl Future<Output = ()> + Send + use<> {
        let ending = self.tasks().map(|tasks| Arc::clone(tasks).end(self.limits().drain_timeout));
        async move {
            if let Some(ending) = ending {
                ending.await;
            }
        }
    }
}
