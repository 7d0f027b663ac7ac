//! The client against a server that follows a script.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod cache;
mod calls;
#[cfg(all(unix, feature = "child"))]
mod child;
mod close;
mod hosted_tasks;
mod hostile;
mod limits;
mod link;
mod listen;
mod negotiate;
mod observe;
mod pages;
mod reconnect;
mod restore;
mod rounds;
mod script;
mod server_requests;
mod tasks;
mod tasks_later;
mod tasks_legacy;
mod timeouts;
mod together;
