//! What a server holds now, for metrics.

use toolwire_transport::ledger::{Account, Ledger};

use crate::Server;

/// What a server holds for its callers at one moment, to be put next to its [`Limits`](crate::Limits).
///
/// ```
/// use toolwire_server::Server;
///
/// let server = Server::builder("demo", "1.0").build().unwrap();
/// let usage = server.usage();
/// assert_eq!((usage.requests, usage.held_bytes), (0, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Requests that run or wait; bounded by `requests`.
    pub requests: usize,
    /// Listeners that are open; bounded by `listeners`.
    pub listeners: usize,
    /// Legacy sessions.
    pub sessions: usize,
    /// All of the bytes below together; bounded by `held_bytes`.
    pub held_bytes: usize,
    /// Bytes of requests that are read, wait or run.
    pub request_bytes: usize,
    /// Bytes of answers and notifications that were not taken yet.
    pub answer_bytes: usize,
    /// Bytes of what is known of clients.
    pub session_bytes: usize,
    /// Bytes of URIs that are subscribed to.
    pub subscription_bytes: usize,
    /// Bytes of events that are kept for clients that come back.
    pub event_bytes: usize,
}

impl Usage {
    fn of(ledger: &Ledger) -> Self {
        Self {
            requests: ledger.used(Account::Requests),
            listeners: ledger.used(Account::Listeners),
            sessions: ledger.used(Account::Sessions),
            held_bytes: ledger.used_bytes(),
            request_bytes: ledger.used(Account::RequestBytes),
            answer_bytes: ledger.used(Account::AnswerBytes),
            session_bytes: ledger.used(Account::SessionBytes),
            subscription_bytes: ledger.used(Account::SubscriptionBytes),
            event_bytes: ledger.used(Account::EventBytes),
        }
    }
}

impl Server {
    /// What the server holds for its callers now.
    pub fn usage(&self) -> Usage {
        Usage::of(self.ledger())
    }
}
