//! Tasks: work that outlives the request that began it.
//!
//! A client follows tasks of its server ([`handle`], [`follow`]): in 2025-11-25 it holds `tasks/result` open, which
//! carries the task's questions, and in the modern era it asks with `tasks/get` and answers with `tasks/update`. It also
//! runs tasks for a server of 2025-11-25 ([`hosted`]), which may ask for an answer that takes a while.

mod follow;
mod handle;
mod hosted;
mod state;
mod ticket;
mod trouble;
mod updates;
mod watchers;

pub use handle::{Started, TaskHandle};
pub use state::TaskState;
pub use updates::Updates;

pub(crate) use hosted::{HostedTasks, created, queue_id, wish};
pub(crate) use watchers::Watchers;
