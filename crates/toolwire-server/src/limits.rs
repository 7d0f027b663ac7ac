//! Every limit of a server, with its name, its default and what it protects.

use std::time::Duration;

/// The limits of a server. All are finite; change those that do not fit.
///
/// ```
/// use std::time::Duration;
/// use toolwire_server::{Limits, Server};
///
/// let limits = Limits { handler_timeout: Duration::from_secs(30), ..Limits::default() };
/// let server = Server::builder("clock", "1.0").limits(limits).build().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "meant to be written as a literal with ..Limits::default()")]
pub struct Limits {
    /// The longest message a peer may send, in bytes. Longer ones are answered with an error and skipped.
    /// Default 4 MiB. Worst case: this much memory per connection while a message arrives.
    pub message_bytes: usize,
    /// The number of bytes that the id of a request may have, and the token by which it asks for progress: both are kept while the
    /// request runs, and sent with what belongs to it. A request with a longer id is answered with an error that does not
    /// repeat it. Default 1 KiB.
    pub request_id_bytes: usize,
    /// How many requests are served at the same time, of all callers together and whichever way they came in.
    /// Further ones are refused as busy, over HTTP with status 429. Default 4096.
    pub requests: usize,
    /// How many of them one caller may have: a principal, or else an address. Default 1024.
    pub requests_per_caller: usize,
    /// How many requests of one connection or one legacy session run at the same time. Default 256.
    pub requests_in_flight: usize,
    /// How many more of one connection wait for their turn before further ones are refused as busy. Default 1024.
    /// Requests that come by HTTP do not wait: their client can send them again.
    pub queued_requests: usize,
    /// How many bytes of answers may wait for a client that reads slowly before its further requests are
    /// refused as busy. Default 32 MiB; at twice that, nothing more is read from it.
    pub queued_bytes: usize,
    /// How many bytes may be held for all callers together: requests, answers that were not taken, sessions,
    /// subscriptions. What would cross the line is refused as busy. Default 1 GiB.
    pub held_bytes: usize,
    /// How many of them for one caller. Default 256 MiB.
    pub held_bytes_per_caller: usize,
    /// How many of them for one connection or legacy session. Default 64 MiB.
    pub held_bytes_per_connection: usize,
    /// How many bytes a client may say of itself, in `initialize` or with each request. Default 16 KiB.
    pub client_facts_bytes: usize,
    /// How many legacy sessions one caller may have. Default 1024.
    pub sessions_per_caller: usize,
    /// How many principals without a legacy session have values of [`Session`](crate::Session) at once. Beyond that,
    /// those used least recently are forgotten. Default 4096. Worst case: so many times what a session's values take.
    pub principal_sessions: usize,
    /// How long such values are kept since they were last used. They are looked through whenever one is taken. Default
    /// 30 minutes.
    pub principal_session_idle: Duration,
    /// How many `subscriptions/listen` requests are open at once, of all callers together. Default 4096.
    pub listeners: usize,
    /// How many of them one caller may have. Default 1024.
    pub listeners_per_caller: usize,
    /// How many requests to the client may be open at once, per connection. Default 64.
    pub pending_asks: usize,
    /// How many `subscriptions/listen` streams, and how many subscribed resources in each (or in a legacy
    /// session), one connection may have. Default 1024.
    pub subscriptions: usize,
    /// How many items one page of a list holds. Default 500.
    pub page_items: usize,
    /// How long a handler may run. Default ten minutes.
    pub handler_timeout: Duration,
    /// How long running handlers may go on after the peer has closed its side. Default five seconds.
    pub drain_timeout: Duration,
    /// How many clients [`serve_listener`](crate::Server::serve_listener) serves at once; further ones wait to be accepted.
    /// Default 1024.
    pub connections: usize,
    /// How many messages one batch (2025-03-26) may hold. Default 64.
    pub batch_messages: usize,
    /// How many tasks that have not ended one caller may have: a principal, or else an address. Further calls are answered
    /// without a task, or refused as busy. Default 256.
    pub tasks_per_owner: usize,
    /// How many tasks run at the same time in this process. Others wait until one of them ends, or waits itself. Default
    /// 64.
    pub task_runs: usize,
    /// How long a task may run between two questions, or until its end. Then it has failed. Default one hour.
    pub task_run_time: Duration,
    /// How many [live](crate::TaskPolicy::live) tasks wait for answers in the memory of this process. Default 256.
    pub live_tasks: usize,
    /// How long a task may work and sleep, and the longest that it can be kept. Default 30 days.
    pub task_ttl: Duration,
    /// How long a task belongs to a process that says nothing more of it, before another one may take it over. Processes
    /// say so four times as often. Default 20 seconds.
    pub task_lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: toolwire_protocol::framing::DEFAULT_MAX_MESSAGE_BYTES,
            request_id_bytes: 1024,
            requests: 4096,
            requests_per_caller: 1024,
            requests_in_flight: 256,
            queued_requests: 1024,
            queued_bytes: 32 * 1024 * 1024,
            held_bytes: 1024 * 1024 * 1024,
            held_bytes_per_caller: 256 * 1024 * 1024,
            held_bytes_per_connection: 64 * 1024 * 1024,
            client_facts_bytes: 16 * 1024,
            sessions_per_caller: 1024,
            principal_sessions: 4096,
            principal_session_idle: Duration::from_secs(30 * 60),
            listeners: 4096,
            listeners_per_caller: 1024,
            pending_asks: 64,
            subscriptions: 1024,
            page_items: 500,
            handler_timeout: Duration::from_secs(600),
            drain_timeout: Duration::from_secs(5),
            connections: 1024,
            batch_messages: 64,
            tasks_per_owner: 256,
            task_runs: 64,
            task_run_time: Duration::from_secs(60 * 60),
            live_tasks: 256,
            task_ttl: Duration::from_secs(30 * 24 * 60 * 60),
            task_lease: Duration::from_secs(20),
        }
    }
}
