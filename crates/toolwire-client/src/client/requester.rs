//! One request on its way: its id, its timeouts, and what happens when nobody waits for it any more.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;
use tokio::time::{Instant, sleep_until, timeout};
use toolwire_protocol::{
    MethodName, Notification, Params, RequestId,
    codec::{RequestEnvelope, RequestMeta},
    wire::ProgressNotificationParams,
};

use crate::{
    error::{Delivery, Error, ErrorKind},
    host::{CallNumber, HandlerClock, Host, call_number, quietly},
    link::{
        Exchange, ExchangeError, ExchangeEvent, Link, LinkError, LinkErrorKind, Outgoing, Reply, Subject,
    },
};

/// Called with the progress of one request.
pub(crate) type OnProgress = Box<dyn FnMut(ProgressNotificationParams) + Send>;

/// A connection and the ids that were used on it.
pub(crate) struct Requester {
    pub(crate) link: Arc<dyn Link>,
    pub(crate) host: Arc<Host>,
    ids: Arc<AtomicI64>,
}

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Without an answer or progress.
    pub(crate) idle: Duration,
    /// Altogether; what was used up is taken off.
    pub(crate) total: Duration,
}

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    Exchange(ExchangeError),
    /// Nothing came for so long.
    Timeout(Duration),
    /// The server did not even take the request.
    NotTaken(Duration),
    /// It cannot be written.
    Unwritable(serde_json::Error),
}

impl Requester {
    pub(crate) fn new(link: Arc<dyn Link>, host: Arc<Host>) -> Self {
        Self::with_ids(link, host, Arc::new(AtomicI64::new(1)))
    }

    /// With ids that somebody else uses, too.
    pub(crate) fn with_ids(link: Arc<dyn Link>, host: Arc<Host>, ids: Arc<AtomicI64>) -> Self {
        Self { link, host, ids }
    }

    pub(crate) fn ids(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.ids)
    }

    pub(crate) fn next_id(&self) -> RequestId {
        RequestId::Num(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes a request that is about nothing in particular.
    pub(crate) fn request<P: Serialize + ?Sized>(
        &self,
        envelope: &RequestEnvelope,
        method: &MethodName,
        params: &P,
        meta: RequestMeta<'_>,
        with_progress: bool,
    ) -> serde_json::Result<Outgoing> {
        self.request_about(envelope, method, params, meta, with_progress, |envelope, _| {
            Subject::nothing(envelope)
        })
    }

    /// Writes a request under an id of its own. What it is `about` is asked only if the link wants to know.
    pub(crate) fn request_about<P: Serialize + ?Sized>(
        &self,
        envelope: &RequestEnvelope,
        method: &MethodName,
        params: &P,
        meta: RequestMeta<'_>,
        with_progress: bool,
        about: impl FnOnce(RequestEnvelope, &Bytes) -> Subject,
    ) -> serde_json::Result<Outgoing> {
        let id = self.next_id();
        // The id is unique already, so it can be the token as well.
        let meta = RequestMeta { progress_token: with_progress.then_some(&id), ..meta };
        let message = envelope.write(&id, method, params, &meta)?;
        let subject = self.link.wants_subject().then(|| Box::new(about(envelope.clone(), &message)));
        Ok(Outgoing { id, method: method.clone(), message, subject })
    }

    /// Sends a request and waits for its result. With `tell`, the server hears of it when nobody waits any more.
    pub(crate) fn carry<'a>(
        &'a self,
        request: Outgoing,
        tell: bool,
        on_progress: Option<&'a mut OnProgress>,
        pace: &'a mut Pace,
    ) -> impl Future<Output = Result<Params, Failure>> + 'a {
        // Not asked for within, where the whole request would have a place of its own for it.
        let call = call_number(&request.id).unwrap_or_default();
        self.carry_call(call, request, tell, on_progress, pace)
    }

    async fn carry_call(
        &self,
        call: CallNumber,
        request: Outgoing,
        tell: bool,
        mut on_progress: Option<&mut OnProgress>,
        pace: &mut Pace,
    ) -> Result<Params, Failure> {
        let mut watch = Stopwatch::start(clock(&self.host), pace, call);
        let mut timer = pin!(sleep_until(watch.deadline(clock(&self.host))));
        if !self.link.has_room() {
            tokio::select! {
                biased;
                () = self.link.room() => {}
                () = &mut timer => return Err(Failure::NotTaken(pace.idle.min(pace.total))),
            }
        }
        let mut flight = self.launch(request, tell);
        let mut reached = f64::NEG_INFINITY;
        let reply = loop {
            let event = tokio::select! {
                biased;
                event = flight.next() => event,
                () = &mut timer => {
                    let deadline = watch.deadline(clock(&self.host));
                    if Instant::now() >= deadline {
                        break Err(Failure::Timeout(watch.limit()));
                    }
                    // A handler of this client was running in the meantime, and that time does not count.
                    timer.as_mut().reset(deadline);
                    continue;
                }
            };
            match event {
                ExchangeEvent::Finished(reply) => break reply.map_err(Failure::Exchange),
                ExchangeEvent::Progress(notification) => {
                    if let Some(progress) = advance(&notification, &mut reached) {
                        watch.again(clock(&self.host));
                        timer.as_mut().reset(watch.deadline(clock(&self.host)));
                        if let Some(call) = &mut on_progress {
                            quietly(|| call(progress));
                        }
                    }
                }
            }
        };
        pace.total = pace.total.saturating_sub(watch.elapsed(clock(&self.host)));
        reply
    }

    /// Sends a request, and leaves waiting to the caller.
    pub(crate) fn launch(&self, request: Outgoing, tell: bool) -> InFlight {
        let observer = self.host.observer();
        if let Some(observer) = observer {
            observer.sent(request.message.clone());
        }
        let flight = InFlight::new(Arc::clone(&self.link), request, tell);
        if let Some(observer) = observer {
            flight.exchange.observe(observer.clone(), flight.id.clone());
        }
        flight.exchange.account(Arc::clone(&self.host.waiting_bytes));
        flight
    }

    /// Sends a notification, when the server reads.
    pub(crate) async fn notify(&self, method: &MethodName, message: Bytes) -> Result<(), Error> {
        let patience = self.host.limits().request_timeout;
        if !self.link.has_room() && timeout(patience, self.link.room()).await.is_err() {
            return Err(self.explain(method, Failure::NotTaken(patience)).await);
        }
        if let Some(observer) = self.host.observer() {
            observer.sent(message.clone());
        }
        match self.link.notify(message).await {
            Ok(()) => Ok(()),
            Err(error) => {
                if let Some(observer) = self.host.observer() {
                    observer.not_sent(method, &error);
                }
                Err(self.explain(method, Failure::Exchange(error.into())).await)
            }
        }
    }

    /// Makes an error of a failure, with the reason why the connection ended if that was it.
    pub(crate) async fn explain(&self, method: &MethodName, failure: Failure) -> Error {
        let error = match failure {
            Failure::Timeout(after) => return Error::timeout(method, after),
            Failure::NotTaken(after) => {
                let text =
                    format!("the server did not read anything for {after:?}, so {method} was not sent");
                return Error::new(ErrorKind::Timeout, Delivery::NotSent, text);
            }
            Failure::Unwritable(error) => return Error::invalid_params(method, error),
            Failure::Exchange(ExchangeError::Rpc(error)) => return Error::from_rpc(method, error),
            Failure::Exchange(ExchangeError::Link(error)) => error,
        };
        let cause = error.cause;
        let explained = match error.kind {
            LinkErrorKind::Closed => {
                let why = self.link.why_closed().await;
                let why = why.unwrap_or_else(|| error.message.into_owned());
                let text = format!("{method} failed because the connection is gone: {why}");
                Error::new(ErrorKind::Closed, error.delivery, text)
            }
            LinkErrorKind::Status(status, Some(rpc)) => Error::from_rpc(method, rpc).with_status(status),
            LinkErrorKind::Status(status, None) => {
                let text = format!("{method} failed: {}", error.message);
                Error::new(ErrorKind::Connect, error.delivery, text).with_status(status)
            }
            LinkErrorKind::Refused => Error::invalid_params(method, error.message),
            LinkErrorKind::Limit(limit) => {
                let text = format!("{method} failed: {}", error.message);
                Error::new(ErrorKind::TooLarge, error.delivery, text).with_limit(limit)
            }
            kind => {
                Error::new(error_kind(&kind), error.delivery, format!("{method} failed: {}", error.message))
            }
        };
        explained.caused_by(cause)
    }
}

const fn error_kind(kind: &LinkErrorKind) -> ErrorKind {
    match kind {
        LinkErrorKind::Cancelled => ErrorKind::Cancelled,
        LinkErrorKind::Busy => ErrorKind::Busy,
        LinkErrorKind::Limit(_) => ErrorKind::TooLarge,
        LinkErrorKind::Refused => ErrorKind::InvalidParams,
        LinkErrorKind::Malformed => ErrorKind::InvalidResponse,
        LinkErrorKind::Unreachable | LinkErrorKind::Status(..) => ErrorKind::Connect,
        LinkErrorKind::Closed => ErrorKind::Closed,
    }
}

/// The progress of a notification, if it is further than what was `reached` before.
fn advance(notification: &Notification, reached: &mut f64) -> Option<ProgressNotificationParams> {
    let progress: ProgressNotificationParams = notification.params.decode().ok()?;
    let now = progress.progress.as_f64();
    (now > *reached).then(|| {
        *reached = now;
        progress
    })
}

/// A request that was sent. Dropping it before the answer cancels it.
pub(crate) struct InFlight {
    link: Arc<dyn Link>,
    id: RequestId,
    exchange: Exchange,
    open: bool,
    tell: bool,
}

impl InFlight {
    fn new(link: Arc<dyn Link>, request: Outgoing, tell: bool) -> Self {
        let id = request.id.clone();
        let exchange = link.start(request);
        Self { link, id, exchange, open: true, tell }
    }

    async fn next(&mut self) -> ExchangeEvent {
        let event = self.exchange.next().await;
        self.open = self.open && !matches!(event, ExchangeEvent::Finished(_));
        event
    }

    /// Waits for the answer. It must not be called again afterwards.
    pub(crate) async fn finished(&mut self) -> Reply {
        loop {
            if let ExchangeEvent::Finished(reply) = self.next().await {
                return reply;
            }
        }
    }

    /// Waits for nothing any more, and tells nobody.
    pub(crate) fn forget(&mut self) {
        if std::mem::replace(&mut self.open, false) {
            self.exchange.unobserve();
            self.link.abandon(&self.id, false);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.open {
            // That nobody waits any more is not a failure of the link.
            self.exchange.unobserve();
            self.link.abandon(&self.id, self.tell);
        }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        Self::Exchange(error.into())
    }
}

/// What measures how long handlers have been running.
fn clock(host: &Host) -> &HandlerClock {
    &host.handler_clock
}

/// The two clocks of a request. Both stand still while a handler of this client runs for it, or may do so.
///
/// The clock of handlers is lent to each method, because what is kept here is kept in the future of every call.
struct Stopwatch<'a> {
    pace: &'a Pace,
    call: CallNumber,
    idle: Mark,
    total: Mark,
}

/// A moment, and how long handlers had been running by then.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    in_handlers: Duration,
}

impl<'a> Stopwatch<'a> {
    fn start(clock: &HandlerClock, pace: &'a Pace, call: CallNumber) -> Self {
        let mark = Mark { at: Instant::now(), in_handlers: clock.time(call) };
        Self { pace, call, idle: mark, total: mark }
    }

    /// There was progress: the idle time begins again.
    fn again(&mut self, clock: &HandlerClock) {
        self.idle = Mark { at: Instant::now(), in_handlers: clock.time(self.call) };
    }

    fn deadline(&self, clock: &HandlerClock) -> Instant {
        let in_handlers = clock.time(self.call);
        self.idle.after(self.pace.idle, in_handlers).min(self.total.after(self.pace.total, in_handlers))
    }

    /// The limit that is reached first.
    fn limit(&self) -> Duration {
        let idle_first =
            self.idle.at + self.pace.idle.min(FOR_EVER) <= self.total.at + self.pace.total.min(FOR_EVER);
        if idle_first { self.pace.idle } else { self.pace.total }
    }

    fn elapsed(&self, clock: &HandlerClock) -> Duration {
        let in_handlers = clock.time(self.call).saturating_sub(self.total.in_handlers);
        self.total.at.elapsed().saturating_sub(in_handlers)
    }
}

impl Mark {
    fn after(self, time: Duration, in_handlers: Duration) -> Instant {
        self.at + time.min(FOR_EVER) + in_handlers.saturating_sub(self.in_handlers)
    }
}

/// Longer than anyone waits, and short enough for a clock: thirty years.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

impl fmt::Debug for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requester").field("link", &self.link).finish_non_exhaustive()
    }
}
