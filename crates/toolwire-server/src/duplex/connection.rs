//! One client: what comes in from it, and what runs for it.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context as Task, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::{task::JoinSet, time::timeout};
use toolwire_protocol::{
    Feature, Message, Method, Notification, Request, RpcError,
    envelope::{EnvelopeFault, FaultKind, Outline, OutlineKind, write_error, write_notification},
    framing::ndjson::LineTooLong,
    peek::Peek,
    wire::CancelledNotificationParams,
};
use toolwire_transport::{FairQueue, Ledger, fair, ledger::Account};

use super::batch::BatchAnswers;
use crate::{
    CallerId, CallerScope, Context, Extensions, Principal, Server,
    admission::{Admitted, LIGHT_BYTES, Refusal, Requests, Waiting, no_room},
    engine::{Arrival, Call, Delivery, EndsAt, Incoming, Outcome, Session},
    observe::Presence,
};

/// One client.
pub(super) struct Connection {
    pub(super) server: Server,
    pub(super) queue: FairQueue,
    /// What the transport knows of the client, for each request.
    extensions: Extensions,
    ledger: Ledger,
    id: CallerId,
    _presence: Presence,
    session: OnceLock<Session>,
    requests: Requests,
    /// Everything that runs for the connection besides reading and writing.
    tasks: Mutex<JoinSet<()>>,
}

/// Where the answer to a request goes.
#[derive(Clone, Debug)]
pub(crate) enum ReplyTo {
    /// Behind its messages.
    Lane,
    /// To the other answers of its batch.
    Batch(Arc<BatchAnswers>),
}

/// Ends everything that a connection has started.
pub(super) struct Abort(pub(super) Arc<Connection>);

impl Drop for Abort {
    fn drop(&mut self) {
        // Cancelled first, for what handlers have handed to tasks of their own.
        self.0.requests.close();
        self.0.tasks().abort_all();
        self.0.queue.abort();
    }
}

impl Connection {
    pub(super) fn new(server: Server, extensions: Extensions, ledger: Ledger) -> Self {
        let limits = server.limits();
        let id = CallerId::new(CallerScope::Connection);
        let queue_limits = fair::Limits { queue_bytes: limits.queued_bytes, ..fair::Limits::default() };
        Self {
            queue: FairQueue::charged_or(queue_limits, ledger.empty_charge(Account::AnswerBytes), no_room),
            extensions,
            ledger,
            id,
            _presence: server.observers().connection(id),
            session: OnceLock::new(),
            requests: Requests::queued(limits),
            tasks: Mutex::default(),
            server,
        }
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.session.get()
    }

    pub(super) fn principal(&self) -> Option<&Principal> {
        self.extensions.get()
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// When nothing more is read.
    pub(super) fn ends_at(&self) -> Option<EndsAt> {
        self.extensions.get::<EndsAt>().copied()
    }

    /// Lets running requests finish, within their time.
    pub(super) async fn drain(&self, patience: Duration) {
        // When the server shuts down, subscriptions end with a result of their own, and questions may be answered.
        if !self.server.shutting_down().is_cancelled() {
            // Those that end by themselves give their result.
            if !self.ends_at().is_some_and(EndsAt::is_over) {
                self.requests.cancel_listeners();
            }
            if let Some(session) = self.session.get() {
                session.close_questions();
            }
        }
        let _ = timeout(patience, self.requests.all_finished()).await;
        self.requests.close();
    }

    /// Takes a message in. Never waits: what is not done at its first poll, which is made here, gets a task.
    pub(super) fn handle(self: &Arc<Self>, bytes: &Bytes, task: &mut Task<'_>) {
        let limit = self.server.limits().message_bytes;
        if bytes.len() > limit {
            let why = RpcError::invalid_request(LineTooLong { limit }.to_string());
            return self.refuse_dropped(&why, &Outline::of(bytes));
        }
        match Message::parse_and_peek(bytes) {
            Ok((message, peek)) => {
                let session = self.session.get();
                let view = session.map_or_else(|| self.server.without_session(), Session::view);
                let incoming = self.server.receive(message, &peek, None, view, session);
                self.take_in(incoming, peek, bytes.len(), ReplyTo::Lane, task);
            }
            Err(fault) if fault.kind == FaultKind::Batch && self.takes_batches() => self.batch(bytes, task),
            Err(fault) => self.refuse_envelope(&fault),
        }
    }

    fn takes_batches(&self) -> bool {
        self.session.get().is_some_and(|session| session.version().has(Feature::Batches))
    }

    /// Answers a message that was dropped, unless it is one that is not to be answered. If it was an answer itself, the
    /// handler that waits for it is given the error.
    pub(super) fn refuse_dropped(&self, why: &RpcError, outline: &Outline) {
        if outline.may_be_answered() {
            return self.post(write_error(outline.request_id(), why));
        }
        tracing::warn!(why = %why.message, kind = ?outline.kind, "a message was dropped");
        if outline.kind == OutlineKind::Response
            && let (Some(id), Some(session)) = (&outline.id, self.session.get())
        {
            self.settle(session.deliver_error(id, why));
        }
    }

    pub(super) fn refuse_envelope(&self, fault: &EnvelopeFault) {
        tracing::debug!(%fault, "a message was refused");
        self.post(write_error(fault.id.as_ref(), &fault.rpc_error()));
    }

    /// Does what is to be done with a message of so many bytes.
    pub(super) fn take_in(
        self: &Arc<Self>,
        incoming: Incoming,
        peek: Box<Peek>,
        weight: usize,
        reply_to: ReplyTo,
        task: &mut Task<'_>,
    ) {
        let answered = match incoming {
            Incoming::Request(request, origin) => {
                let arrival = Arrival::new(&self.ledger, weight, self.extensions.clone()).by(self.id);
                let arrival = match &reply_to {
                    ReplyTo::Lane => arrival.over(self.queue.clone()),
                    ReplyTo::Batch(all) => arrival.in_lane(all.lane()),
                };
                match Call::new(&self.server, request, peek, origin, arrival) {
                    Ok(call) => return self.start(Waiting { call, reply_to }, task),
                    Err(answered) => answered,
                }
            }
            // Never in a batch: those are read in a session only, where a second handshake is refused.
            Incoming::Initialize(request) => return self.initialize(&request),
            Incoming::Answered(answered) => answered,
            Incoming::Notification(note) => return self.notification(&note),
            Incoming::Response(response) => {
                let session = self.session.get();
                return self
                    .settle(session.map_or(Delivery::Unknown, |session| session.deliver_once(response)));
            }
            Incoming::Unwanted(_) | Incoming::Ignored => return,
        };
        self.answer(&reply_to, Some(answered.body));
    }

    /// Sees to it that an answer to a question is stored, where that is still to be done.
    fn settle(&self, delivery: Delivery) {
        match delivery {
            Delivery::Taken => {}
            // What is stored is bounded by the session.
            Delivery::Storing(stored) => self.spawn(async move {
                if let Err(error) = stored.await {
                    tracing::warn!(%error, "an answer to a question of a task was lost");
                }
            }),
            Delivery::Unknown => tracing::debug!("a response that nobody waits for was dropped"),
        }
    }

    fn initialize(&self, request: &Request) {
        let (session, answer) =
            match Session::initialize(&self.server, request, &self.ledger, &self.extensions) {
                Ok((session, answered)) => (session, answered.body),
                Err(answered) => return self.post(answered.body),
            };
        let charge = if answer.len() > LIGHT_BYTES {
            self.ledger.charge(Account::AnswerBytes, answer.len())
        } else {
            Ok(self.ledger.empty_charge(Account::AnswerBytes))
        };
        match charge {
            Ok(charge) => {
                // It was made sure that there is none yet, and only the reader sets it.
                let _ = self.session.set(session);
                // The room is kept until the answer is queued, since its client has a session now.
                // A closed queue means that the client is gone, which the writer reports.
                let _ = self.queue.lane().finish_charged(answer, charge);
            }
            // A client that gets an error in place of the answer has no session.
            Err(reached) => self.post(no_room(&answer, &reached)),
        }
    }

    /// Runs a request if there is room, or lets it wait its turn, or refuses it.
    fn start(self: &Arc<Self>, waiting: Waiting, task: &mut Task<'_>) {
        let admitted = if self.queue.queued_bytes() > self.server.limits().queued_bytes {
            Admitted::Refused(waiting, Refusal::SlowReader)
        } else {
            self.requests.admit(waiting)
        };
        match admitted {
            Admitted::Now(waiting) => self.first_poll(waiting, task),
            Admitted::Queued => {}
            Admitted::Refused(Waiting { call, reply_to }, refusal) => {
                let answered = call.refuse(refusal.rpc_error());
                self.answer(&reply_to, Some(answered.body));
            }
        }
    }

    /// Most handlers are done at their first poll, and need no task.
    fn first_poll(self: &Arc<Self>, mut waiting: Waiting, task: &mut Task<'_>) {
        let slow_routes = self.server.slow_routes();
        let slow = slow_routes.has(waiting.call.context());
        if !slow && let Poll::Ready(outcome) = slow_routes.poll_first(&mut waiting.call, task, false) {
            return self.reply(&waiting, outcome, None);
        }
        self.requests.enter(waiting.call.context());
        self.spawn(Arc::clone(self).run(waiting, slow));
    }

    /// Sees a request through to its answer, and starts those that waited for its place. `slow` says that its route is
    /// known to be, so that its first poll is still to be made, and timed.
    #[expect(clippy::manual_async_fn, reason = "it starts others like itself, so its type has to be said")]
    fn run(
        self: Arc<Self>,
        mut waiting: Waiting,
        mut slow: bool,
    ) -> impl Future<Output = ()> + Send + 'static {
        async move {
            let outcome = poll_fn(|task| {
                if std::mem::take(&mut slow) {
                    return self.server.slow_routes().poll_first(&mut waiting.call, task, true);
                }
                Pin::new(&mut waiting.call).poll(task)
            });
            let outcome = outcome.await;
            let last = goodbye(waiting.call.context());
            self.reply(&waiting, outcome, last);
            self.requests.finish(waiting.call.context().request_id());
            self.start_waiting();
        }
    }

    fn start_waiting(self: &Arc<Self>) {
        while let Some(next) = self.requests.next_waiting() {
            self.spawn(Arc::clone(self).run(next, false));
        }
    }

    /// Sends the answer where it belongs and, right behind it, what is said last.
    fn reply(&self, waiting: &Waiting, outcome: Outcome, last: Option<Bytes>) {
        let Waiting { call, reply_to } = waiting;
        let outbox = &call.context().0.outbox;
        match (reply_to, outcome, last) {
            (ReplyTo::Batch(_), outcome, _) => {
                outbox.abandon();
                self.answer(reply_to, outcome.into_body());
            }
            (ReplyTo::Lane, Outcome::Answered(answer), Some(last)) => {
                // That the queue is closed means that the client is gone, which the writer reports.
                let _ = outbox.finish_with(answer.body, last);
            }
            (ReplyTo::Lane, outcome, _) => call.reply(outcome),
        }
    }

    /// Sends an answer that has no messages before it; `None` when there is none.
    fn answer(&self, reply_to: &ReplyTo, answer: Option<Bytes>) {
        match (reply_to, answer) {
            (ReplyTo::Batch(all), answer) => all.take(answer),
            (ReplyTo::Lane, Some(answer)) => self.post(answer),
            (ReplyTo::Lane, None) => {}
        }
    }

    /// Handles a notification at once, so that nothing of it is held, and there is nothing to charge. It has no answer that
    /// could refuse it, and a client whose `notifications/initialized` were dropped could do nothing any more.
    fn notification(self: &Arc<Self>, note: &Notification) {
        match note.method.known() {
            Some(Method::Cancelled) => {
                let params = note.params.decode::<CancelledNotificationParams>();
                let Some(id) = params.ok().and_then(|params| params.request_id) else {
                    tracing::debug!("a cancellation without a usable requestId was dropped");
                    return;
                };
                // One that was waiting has no task that could see to this.
                if let Some(waiting) = self.requests.cancel_waiting(&id) {
                    self.reply(&waiting, Outcome::Cancelled, None);
                }
            }
            Some(Method::Initialized) => {
                if let Some(session) = self.session.get()
                    && session.set_initialized()
                {
                    let (forwarding, end) = (session.forward_changes(&self.queue), self.ends_at());
                    self.spawn(async move {
                        // Calls that are under way may take longer, but news is for those who may still ask for it.
                        tokio::select! {
                            biased;
                            () = EndsAt::reached(end) => {}
                            () = forwarding => {}
                        }
                    });
                }
            }
            _ => tracing::debug!(method = %note.method, "a notification was ignored"),
        }
    }

    fn post(&self, message: Bytes) {
        // A closed queue means that the client is gone, which the writer reports.
        let _ = self.queue.post(message);
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // Those that have ended are let go of here, or they would be kept until the end of the connection.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// On a pipe, the end of a subscription is said twice: by its result and by a notification after it, since the
/// specification asks for either in different places.
fn goodbye(cx: &Context) -> Option<Bytes> {
    if cx.method().known() != Some(Method::Listen) {
        return None;
    }
    let params = CancelledNotificationParams::new().request_id(cx.request_id().clone());
    write_notification(&Method::Cancelled.into(), &params).ok()
}
