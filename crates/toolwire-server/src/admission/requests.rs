//! The requests of one connection or session that run or wait: by id, so that they can be cancelled.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use toolwire_protocol::{RequestId, RpcError};
use toolwire_transport::internal::QuickHash;

use crate::{Context, Limits, engine::Call};

/// Why a request cannot be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The connection or session is over.
    Closed,
    /// A request with the same id is still running.
    IdInUse,
    /// As many requests run, and wait, as may.
    TooManyRequests {
        /// The name of the limit.
        limit: &'static str,
    },
    /// As many subscriptions are open as may be.
    TooManyListeners,
    /// The client does not read its answers.
    SlowReader,
}

impl Refusal {
    /// What the client is told.
    pub fn rpc_error(self) -> RpcError {
        let (why, limit) = match self {
            Self::Closed => return RpcError::invalid_request("the session is over; start a new one"),
            Self::IdInUse => {
                return RpcError::invalid_request("a request with this id is still running; use a new id");
            }
            Self::TooManyRequests { limit } => ("too many requests are running and waiting", limit),
            Self::TooManyListeners => ("too many subscriptions are open on this connection", "subscriptions"),
            Self::SlowReader => ("the client does not read its answers", "queued_bytes"),
        };
        RpcError::internal(format!("the server is busy: {why} (limit {limit}); try again later"))
            .with_data(&serde_json::json!({ "limit": limit }))
    }
}

/// The requests of one connection or session that run or wait.
#[derive(Debug)]
pub struct Requests {
    state: Mutex<State>,
    finished: Notify,
    running_limit: usize,
    waiting_limit: usize,
    listener_limit: usize,
}

/// The number of places for requests that a connection or session keeps while it has none.
const KEPT_PLACES: usize = 32;

#[derive(Debug, Default)]
struct State {
    /// A running request. Mostly there is no other one, and then nothing is hashed.
    first: Option<Context>,
    /// The others, keyed by ids that the peer chooses, so that the hash has random keys.
    others: HashMap<RequestId, Entry, QuickHash>,
    /// The requests that wait, in the order of their tickets.
    waiting: BTreeMap<u64, Waiting>,
    /// The ticket of the next request that has to wait.
    next_ticket: u64,
    /// The number of running requests that are listeners.
    listeners: usize,
    closed: bool,
}

/// The state of one request.
#[derive(Debug)]
enum Entry {
    Running(Context),
    /// It waits, with this ticket.
    Waiting(u64),
}

/// A request that waits for its turn, and what is to be done with its answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) call: Call,
    pub(crate) reply_to: crate::duplex::ReplyTo,
}

/// What becomes of a request that wants to be let in.
pub(crate) enum Admitted {
    /// It may run.
    Now(Waiting),
    /// It waits its turn.
    Queued,
    /// It cannot be let in.
    Refused(Waiting, Refusal),
}

impl Requests {
    /// For a connection on which requests wait their turn when too many run.
    pub(crate) fn queued(limits: &Limits) -> Self {
        Self { waiting_limit: limits.queued_requests, ..Self::new(limits) }
    }

    /// For a session, which refuses requests when too many run: its client can send them again.
    pub fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            finished: Notify::new(),
            running_limit: limits.requests_in_flight,
            waiting_limit: 0,
            listener_limit: limits.subscriptions,
        }
    }

    /// Lets a request in, or says that it has to wait or why it cannot.
    ///
    /// One that is let in is not entered yet: on a pipe most are done at their first poll, and nobody can ask for
    /// them meanwhile. Those that are not have to be [entered](Self::enter).
    pub(crate) fn admit(&self, waiting: Waiting) -> Admitted {
        let mut state = self.lock();
        let cx = waiting.call.context();
        if state.closed {
            return Admitted::Refused(waiting, Refusal::Closed);
        }
        if state.has(cx.request_id()) {
            return Admitted::Refused(waiting, Refusal::IdInUse);
        }
        if cx.is_listener() {
            if state.listeners >= self.listener_limit {
                return Admitted::Refused(waiting, Refusal::TooManyListeners);
            }
        } else if state.running() - state.listeners >= self.running_limit {
            if state.waiting.len() >= self.waiting_limit {
                return Admitted::Refused(waiting, self.too_many());
            }
            state.queue(waiting);
            return Admitted::Queued;
        }
        Admitted::Now(waiting)
    }

    /// Enters a request that was let in and goes on. If everything was closed since then, it is cancelled.
    pub(crate) fn enter(&self, cx: &Context) {
        let mut state = self.lock();
        state.run(cx);
        if state.closed {
            cx.cancel_request();
        }
    }

    /// Lets a request in and enters it in one step, where several may come in at the same moment.
    ///
    /// # Errors
    /// Why it cannot be let in.
    pub fn admit_and_enter(&self, cx: &Context) -> Result<(), Refusal> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refusal::Closed);
        }
        if state.has(cx.request_id()) {
            return Err(Refusal::IdInUse);
        }
        if state.running() >= self.running_limit {
            return Err(self.too_many());
        }
        state.run(cx);
        Ok(())
    }

    fn too_many(&self) -> Refusal {
        let limit = if self.waiting_limit > 0 { "queued_requests" } else { "requests_in_flight" };
        Refusal::TooManyRequests { limit }
    }

    /// Takes a request out that was entered.
    pub fn finish(&self, id: &RequestId) {
        let mut state = self.lock();
        let finished = state.remove_running(id);
        state.listeners -= usize::from(finished.as_ref().is_some_and(Context::is_listener));
        let idle = state.is_idle();
        drop(state);
        if idle {
            self.finished.notify_waiters();
        }
    }

    /// The next request that waits, if there is room for it. It is entered.
    pub(crate) fn next_waiting(&self) -> Option<Waiting> {
        let mut state = self.lock();
        if state.running() - state.listeners >= self.running_limit {
            return None;
        }
        let (_, waiting) = state.waiting.pop_first()?;
        state.run(waiting.call.context());
        Some(waiting)
    }

    /// Cancels a request, wherever it is, and gives it if it was waiting. An unknown id may simply have been too late.
    pub(crate) fn cancel_waiting(&self, id: &RequestId) -> Option<Waiting> {
        let mut state = self.lock();
        if let Some(Entry::Waiting(ticket)) = state.others.get(id) {
            let ticket = *ticket;
            state.others.remove(id);
            return state.waiting.remove(&ticket);
        }
        state.find_running(id).inspect(|cx| cx.cancel_request());
        None
    }

    /// Cancels a request that runs. An unknown id may simply have been too late.
    pub fn cancel(&self, id: &RequestId) {
        drop(self.cancel_waiting(id));
    }

    pub(crate) fn cancel_listeners(&self) {
        self.lock().all_running().filter(|cx| cx.is_listener()).for_each(Context::cancel_request);
    }

    /// Cancels everything, and lets nothing in any more.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        state.others.retain(|_, request| matches!(request, Entry::Running(_)));
        state.all_running().for_each(Context::cancel_request);
        drop(state);
        drop(waiting);
    }

    /// Whether nothing runs or waits.
    pub fn is_idle(&self) -> bool {
        self.lock().is_idle()
    }

    /// Resolves when nothing runs or waits any more.
    pub(crate) async fn all_finished(&self) {
        loop {
            let finished = self.finished.notified();
            tokio::pin!(finished);
            finished.as_mut().enable();
            if self.is_idle() {
                return;
            }
            finished.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }

    /// Returns how many requests run.
    fn running(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len() - self.waiting.len()
    }

    fn all_running(&self) -> impl Iterator<Item = &Context> {
        self.first.iter().chain(self.others.values().filter_map(Entry::running))
    }

    /// Returns whether a request with this id runs or waits.
    fn has(&self, id: &RequestId) -> bool {
        self.is_first(id) || self.others.contains_key(id)
    }

    fn is_first(&self, id: &RequestId) -> bool {
        self.first.as_ref().is_some_and(|cx| cx.request_id() == id)
    }

    fn find_running(&self, id: &RequestId) -> Option<&Context> {
        if self.is_first(id) { self.first.as_ref() } else { self.others.get(id).and_then(Entry::running) }
    }

    fn remove_running(&mut self, id: &RequestId) -> Option<Context> {
        if self.is_first(id) {
            return self.first.take();
        }
        let Some(Entry::Running(cx)) = self.others.get(id) else { return None };
        let cx = cx.clone();
        self.others.remove(id);
        if self.others.is_empty() && self.others.capacity() > KEPT_PLACES {
            self.others.shrink_to_fit();
        }
        Some(cx)
    }

    fn run(&mut self, cx: &Context) {
        self.listeners += usize::from(cx.is_listener());
        if self.first.is_none() {
            // It may have waited.
            self.others.remove(cx.request_id());
            self.first = Some(cx.clone());
        } else {
            self.others.insert(cx.request_id().clone(), Entry::Running(cx.clone()));
        }
    }

    fn queue(&mut self, waiting: Waiting) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.others.insert(waiting.call.context().request_id().clone(), Entry::Waiting(ticket));
        self.waiting.insert(ticket, waiting);
    }
}

impl Entry {
    fn running(&self) -> Option<&Context> {
        match self {
            Self::Running(cx) => Some(cx),
            Self::Waiting(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwire_protocol::{Message, Version, peek::Peek};

    use super::*;
    use crate::{
        Extensions, Server,
        duplex::ReplyTo,
        engine::{Arrival, RequestOrigin},
    };

    fn server() -> Server {
        Server::builder("t", "1").build().unwrap()
    }

    fn call(server: &Server, id: i64, method: &str) -> Waiting {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }).to_string();
        let Ok(Message::Request(request)) = Message::parse(&message.into()) else { panic!("not a request") };
        let peek = Peek::of(&request.params).into();
        let arrival = Arrival::new(server.ledger(), 0, Extensions::default());
        let origin = RequestOrigin::Modern(Version::LATEST);
        let call = Call::new(server, request, peek, origin, arrival).unwrap();
        Waiting { call, reply_to: ReplyTo::Lane }
    }

    fn limits() -> Limits {
        Limits { requests_in_flight: 2, queued_requests: 1, subscriptions: 1, ..Limits::default() }
    }

    const TOOL: &str = "tools/call";
    const LISTEN: &str = "subscriptions/listen";

    /// Lets a request in and enters it, and says in a word what became of it.
    fn admit(requests: &Requests, waiting: Waiting) -> Result<&'static str, Refusal> {
        match requests.admit(waiting) {
            Admitted::Now(waiting) => {
                requests.enter(waiting.call.context());
                Ok("now")
            }
            Admitted::Queued => Ok("queued"),
            Admitted::Refused(_, refusal) => Err(refusal),
        }
    }

    #[tokio::test]
    async fn requests_run_then_wait_then_are_refused_and_listeners_take_nobodys_turn() {
        let (server, requests) = (server(), Requests::queued(&limits()));
        let admit = |id, method| admit(&requests, call(&server, id, method));
        assert_eq!(admit(1, LISTEN), Ok("now"));
        assert_eq!(admit(2, LISTEN), Err(Refusal::TooManyListeners));
        assert_eq!([admit(3, TOOL), admit(4, TOOL), admit(5, TOOL)], [Ok("now"), Ok("now"), Ok("queued")]);
        assert_eq!(admit(6, TOOL), Err(Refusal::TooManyRequests { limit: "queued_requests" }));
        assert_eq!(admit(3, TOOL), Err(Refusal::IdInUse), "it runs");
        assert_eq!(admit(5, TOOL), Err(Refusal::IdInUse), "it waits");
        assert!(requests.next_waiting().is_none(), "there is no room for it yet");
        requests.finish(&4.into());
        let next = requests.next_waiting().unwrap();
        assert_eq!(next.call.context().request_id(), &5.into());
        assert!(requests.next_waiting().is_none(), "nobody waits");
        requests.finish(&1.into());
        assert_eq!(admit(7, LISTEN), Ok("now"), "the other listener is gone");
        for id in [3, 5, 7] {
            assert!(!requests.is_idle());
            requests.finish(&id.into());
        }
        assert!(requests.is_idle());
    }

    #[tokio::test]
    async fn a_session_refuses_what_a_connection_lets_wait() {
        let (server, requests) = (server(), Requests::new(&limits()));
        let calls = [1, 2, 3].map(|id| call(&server, id, TOOL));
        let enter = |place: usize| requests.admit_and_enter(calls[place].call.context());
        assert_eq!([enter(0), enter(1)], [Ok(()), Ok(())]);
        assert_eq!(enter(2), Err(Refusal::TooManyRequests { limit: "requests_in_flight" }));
        assert_eq!(enter(0), Err(Refusal::IdInUse));
        requests.finish(&1.into());
        assert_eq!(enter(2), Ok(()));
        requests.close();
        assert_eq!(enter(0), Err(Refusal::Closed));
        let refused = admit(&requests, call(&server, 9, TOOL));
        assert_eq!(refused, Err(Refusal::Closed));
    }

    #[tokio::test]
    async fn those_that_wait_keep_their_order_when_one_of_them_is_cancelled() {
        let limits = Limits { requests_in_flight: 1, queued_requests: 4, ..Limits::default() };
        let (server, requests) = (server(), Requests::queued(&limits));
        for id in 0..5 {
            let became = admit(&requests, call(&server, id, TOOL));
            assert_eq!(became, Ok(if id == 0 { "now" } else { "queued" }));
        }
        assert!(requests.cancel_waiting(&2.into()).is_some());
        assert_eq!(admit(&requests, call(&server, 2, TOOL)), Ok("queued"), "its id and its place are free");
        for (done, next) in [(0, 1), (1, 3), (3, 4), (4, 2)] {
            requests.finish(&done.into());
            assert_eq!(requests.next_waiting().unwrap().call.context().request_id(), &next.into());
        }
        requests.finish(&2.into());
        assert!(requests.is_idle() && requests.next_waiting().is_none());
    }

    #[tokio::test]
    async fn the_places_of_many_requests_are_given_back() {
        let (server, requests) = (server(), Requests::new(&Limits::default()));
        let calls: Vec<_> = (0..100).map(|id| call(&server, id, TOOL)).collect();
        for running in &calls {
            assert_eq!(requests.admit_and_enter(running.call.context()), Ok(()));
        }
        assert_eq!(requests.admit_and_enter(calls[99].call.context()), Err(Refusal::IdInUse));
        assert!(requests.lock().others.capacity() > KEPT_PLACES);
        for running in &calls {
            requests.finish(running.call.context().request_id());
        }
        assert!(requests.is_idle() && requests.lock().others.capacity() <= KEPT_PLACES);
    }

    #[tokio::test]
    async fn cancelling_finds_what_runs_and_what_waits() {
        let (server, requests) = (server(), Requests::queued(&limits()));
        let running = [(1, TOOL), (2, TOOL), (3, LISTEN)].map(|(id, method)| call(&server, id, method));
        for waiting in &running {
            requests.enter(waiting.call.context());
        }
        let cancelled = || running.each_ref().map(|waiting| waiting.call.context().is_cancelled());
        assert!(matches!(requests.admit(call(&server, 4, TOOL)), Admitted::Queued));
        assert!(requests.cancel_waiting(&5.into()).is_none(), "nobody has this id");
        assert_eq!(requests.cancel_waiting(&4.into()).unwrap().call.context().request_id(), &4.into());
        assert!(requests.cancel_waiting(&4.into()).is_none(), "it waits no more");
        assert_eq!(cancelled(), [false; 3]);
        requests.cancel(&1.into());
        assert_eq!(cancelled(), [true, false, false]);
        requests.cancel_listeners();
        assert_eq!(cancelled(), [true, false, true]);
        assert!(matches!(requests.admit(call(&server, 6, TOOL)), Admitted::Queued));
        requests.close();
        assert_eq!(cancelled(), [true; 3]);
        let late = call(&server, 7, TOOL);
        requests.enter(late.call.context());
        assert!(late.call.context().is_cancelled(), "it was let in before the end, and entered after it");
        for id in [1, 2, 3, 7] {
            requests.finish(&id.into());
        }
        assert!(requests.is_idle(), "what waited is gone, too");
    }
}
