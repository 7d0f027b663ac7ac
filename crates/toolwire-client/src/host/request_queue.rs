//! Requests of a legacy server: some are answered at once, some wait, and too many are turned away.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::oneshot;
use toolwire_protocol::{RawJson, RequestId, RpcError, wire::InputRequest};

use super::{Host, ServerRequest, call_number};
use crate::{
    lock::lock,
    waiting::{Charge, WAITING_BYTES},
};

/// Takes what one request came to.
pub(crate) type Reply = Box<dyn FnOnce(Result<RawJson, RpcError>) + Send>;

/// The requests that are being answered and those that wait for it.
#[derive(Default)]
pub(super) struct RequestQueue {
    /// Dropping a sender cancels the handler.
    running: HashMap<RequestId, oneshot::Sender<()>>,
    waiting: VecDeque<Waiting>,
    /// How many tasks answer requests, one after the other.
    workers: usize,
    closed: bool,
}

pub(super) struct Waiting {
    pub(super) id: RequestId,
    /// The request of this client that it came with, if that is known.
    pub(super) during: Option<RequestId>,
    pub(super) question: Question,
    pub(super) reply: Reply,
    /// What it weighs until it is answered; `None` when there is no room for it.
    pub(super) charge: Option<Charge>,
}

/// What is asked.
pub(super) enum Question {
    Typed(InputRequest),
    Raw(ServerRequest),
}

/// A request that is being answered, and what tells that it is cancelled.
type Begun = (Waiting, oneshot::Receiver<()>);

impl RequestQueue {
    /// Begins with a request, lets it wait, or refuses it.
    pub(super) fn accept(host: &Arc<Host>, request: Waiting) {
        let limits = host.limits();
        let mut queue = lock(&host.queue);
        let refusal = if queue.closed {
            return;
        } else if queue.has(&request.id) {
            RpcError::invalid_request("a request with this id is being answered already")
        } else if request.charge.is_none() {
            busy(WAITING_BYTES)
        } else if queue.workers < limits.concurrent_handlers {
            queue.workers += 1;
            let begun = queue.begin(request);
            drop(queue);
            tokio::spawn(worker(Arc::clone(host), begun));
            return;
        } else if queue.waiting.len() < limits.queued_server_requests {
            return queue.waiting.push_back(request);
        } else {
            busy("queued_server_requests")
        };
        drop(queue);
        (request.reply)(Err(refusal));
    }

    /// The server no longer wants an answer.
    pub(super) fn cancel(host: &Host, id: &RequestId) {
        let mut queue = lock(&host.queue);
        queue.waiting.retain(|waiting| waiting.id != *id);
        queue.running.remove(id);
    }

    /// Whoever asked is gone, but somebody else may ask.
    pub(super) fn interrupt(host: &Host) {
        let mut queue = lock(&host.queue);
        queue.running.clear();
        queue.waiting.clear();
    }

    /// Nobody is there any more to be answered.
    pub(super) fn close(host: &Host) {
        let mut queue = lock(&host.queue);
        queue.closed = true;
        queue.running.clear();
        queue.waiting.clear();
    }

    fn has(&self, id: &RequestId) -> bool {
        self.running.contains_key(id) || self.waiting.iter().any(|waiting| waiting.id == *id)
    }

    fn begin(&mut self, waiting: Waiting) -> Begun {
        let (sender, cancelled) = oneshot::channel();
        self.running.insert(waiting.id.clone(), sender);
        (waiting, cancelled)
    }

    /// The next request; without one the worker ends.
    fn next(&mut self, done: &RequestId) -> Option<Begun> {
        self.running.remove(done);
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.workers -= 1;
        }
        next.map(|waiting| self.begin(waiting))
    }
}

/// The refusal of a request for which there is no room, because of this limit.
fn busy(limit: &str) -> RpcError {
    RpcError::internal(format!("this client is busy (the limit {limit})"))
}

/// Answers one request, and then those that wait.
async fn worker(host: Arc<Host>, first: Begun) {
    let mut begun = Some(first);
    while let Some((Waiting { id, during, question, reply, charge }, cancelled)) = begun {
        let outcome = {
            let _running = host.handler_clock.begin(during.as_ref().and_then(call_number));
            tokio::select! {
                biased;
                outcome = host.answer(question) => Some(outcome),
                _ = cancelled => None,
            }
        };
        if let Some(outcome) = outcome {
            reply(outcome);
        } else {
            tracing::debug!(%id, "the server cancelled its request");
        }
        drop(charge);
        begun = lock(&host.queue).next(&id);
    }
}
