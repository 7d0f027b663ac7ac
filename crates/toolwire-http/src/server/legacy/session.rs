//! One client on HTTP: what runs for it, and the streams it can read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use toolwire_protocol::{Method, Notification, RequestId, Response, RpcError, Version, wire};
use toolwire_server::{
    Context, Limits, PrincipalKey,
    engine::{Delivery, Refusal, Requests, Session},
};
use toolwire_transport::{
    BoxFuture,
    internal::AbortOnDrop,
    ledger::{Account, Ledger},
};

use super::{
    event_log::EventLog,
    id::{EventId, SessionId, StreamKey},
    stream::{STANDALONE, Stream},
};
use crate::server::HttpLimits;

/// How many streams of a session are remembered; beyond that, those that ended first are forgotten.
const STREAMS: usize = 256;

/// One legacy client, from its `initialize` until it says goodbye or is not heard of any more.
///
/// While it does nothing, a session is little more than what the client said of itself.
pub(crate) struct HttpSession {
    id: SessionId,
    pub(crate) session: Session,
    principal: Option<PrincipalKey>,
    log: Arc<dyn EventLog>,
    requests: Requests,
    state: Mutex<State>,
}

struct State {
    created: Instant,
    used: Instant,
    closed: bool,
    streams: BTreeMap<u64, Arc<Stream>>,
    streams_so_far: u64,
    /// Carries changes to the standalone stream, once there has been one.
    forwarder: Option<AbortOnDrop<()>>,
}

/// The place of a running request in its session; dropping it takes the request out.
pub(super) struct SessionSlot {
    session: Arc<HttpSession>,
    id: RequestId,
}

impl HttpSession {
    pub(super) fn new(
        id: SessionId,
        session: Session,
        principal: Option<PrincipalKey>,
        log: Arc<dyn EventLog>,
        limits: &Limits,
    ) -> Self {
        let now = Instant::now();
        let state = State {
            created: now,
            used: now,
            closed: false,
            streams: BTreeMap::new(),
            streams_so_far: STANDALONE,
            forwarder: None,
        };
        Self { id, session, principal, log, requests: Requests::new(limits), state: Mutex::new(state) }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn version(&self) -> Version {
        self.session.version()
    }

    pub(super) fn belongs_to(&self, principal: Option<PrincipalKey>) -> bool {
        self.principal == principal
    }

    /// Returns whether it is counted against `caller`.
    pub(super) fn is_of(&self, caller: &Ledger) -> bool {
        self.session.ledger().parent() == Some(caller)
    }

    /// Keeps the session for the one it belongs to. Says whether it is still there to be kept.
    pub(super) fn touch(&self, now: Instant, limits: &HttpLimits) -> bool {
        let alive = !self.has_expired(now, limits);
        if alive {
            self.lock().used = now;
        }
        alive
    }

    /// Since when the session does nothing; `None` while a request runs or a stream is open.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        if !self.requests.is_idle() || state.streams.values().any(|stream| stream.is_connected()) {
            return None;
        }
        let left = state.streams.values().filter_map(|stream| stream.left()).max();
        Some(left.map_or(state.used, |left| left.max(state.used)))
    }

    pub(super) fn is_initialized(&self) -> bool {
        use toolwire_protocol::classify::LegacyView;
        matches!(self.session.view(), LegacyView::Peer { initialized: true, .. })
    }

    pub(super) fn has_expired(&self, now: Instant, limits: &HttpLimits) -> bool {
        if !self.is_initialized() {
            return now.duration_since(self.lock().created) >= limits.session_handshake;
        }
        let is_over = |idle| now.duration_since(idle) >= limits.session_idle;
        // What runs and what can be read matters only to those that were not used for long.
        is_over(self.lock().used) && self.idle_since().is_some_and(is_over)
    }

    /// Ends everything the session has going.
    pub(super) fn close(&self) {
        self.requests.close();
        let (streams, forwarder) = {
            let mut state = self.lock();
            state.closed = true;
            (std::mem::take(&mut state.streams), state.forwarder.take())
        };
        drop(forwarder);
        for stream in streams.values() {
            stream.forget();
        }
        self.log.forget(&self.id);
    }

    /// Lets a request in.
    pub(super) fn admit(self: Arc<Self>, cx: &Context) -> Result<SessionSlot, Refusal> {
        self.requests.admit_and_enter(cx)?;
        Ok(SessionSlot { session: self, id: cx.request_id().clone() })
    }

    /// Takes a notification.
    pub(crate) fn notify(&self, note: &Notification) {
        match note.method.known() {
            Some(Method::Initialized) => {
                self.session.set_initialized();
            }
            Some(Method::Cancelled) => {
                let params = note.params.decode::<wire::CancelledNotificationParams>();
                if let Some(id) = params.ok().and_then(|params| params.request_id) {
                    self.requests.cancel(&id);
                } else {
                    tracing::debug!("a cancellation without a usable requestId was dropped");
                }
            }
            _ => tracing::debug!(method = %note.method, "a notification was ignored"),
        }
    }

    /// Takes a response: the one place where an answer to a question of ours comes in. What it gives has to be waited for
    /// before the answer is acknowledged.
    pub(crate) fn deliver(&self, response: Response) -> Option<BoxFuture<'static, Result<(), RpcError>>> {
        match self.session.deliver(response) {
            Delivery::Storing(stored) => return Some(stored),
            Delivery::Taken => {}
            _ => tracing::debug!("a response that nobody waits for was dropped"),
        }
        None
    }

    /// Opens the stream of a request.
    pub(super) fn open_stream(&self, keep: Duration) -> Arc<Stream> {
        let mut state = self.lock();
        state.forget_ended(keep);
        state.streams_so_far += 1;
        let number = state.streams_so_far;
        let stream = self.stream(number);
        if state.closed {
            stream.forget();
        } else {
            state.streams.insert(number, Arc::clone(&stream));
        }
        stream
    }

    /// The stream for messages that belong to no request; it begins with the first connection.
    pub(super) fn standalone(&self) -> Arc<Stream> {
        let mut state = self.lock();
        if let Some(stream) = state.streams.get(&STANDALONE) {
            return Arc::clone(stream);
        }
        let stream = self.stream(STANDALONE);
        if state.closed {
            stream.forget();
        } else {
            let forward = tokio::spawn(forward_changes(self.session.clone(), Arc::clone(&stream)));
            state.forwarder = Some(forward.into());
            state.streams.insert(STANDALONE, Arc::clone(&stream));
        }
        stream
    }

    /// The stream of an event; `None` if there is no such event (any more).
    pub(super) fn stream_of(&self, event: EventId, keep: Duration) -> Option<Arc<Stream>> {
        let mut state = self.lock();
        state.forget_ended(keep);
        let stream = state.streams.get(&event.stream)?;
        (event.sequence <= stream.last()).then(|| Arc::clone(stream))
    }

    /// Forgets streams that ended so long ago that nobody will resume them.
    pub(super) fn forget_ended(&self, keep: Duration) {
        self.lock().forget_ended(keep);
    }

    #[cfg(test)]
    pub(super) fn streams(&self) -> usize {
        self.lock().streams.len()
    }

    fn stream(&self, number: u64) -> Arc<Stream> {
        let charge = self.session.ledger().empty_charge(Account::AnswerBytes);
        Stream::logged(Arc::clone(&self.log), StreamKey { session: self.id, stream: number }, charge)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_ended(&mut self, keep: Duration) {
        let now = Instant::now();
        self.streams.retain(|_, stream| {
            stream.is_connected() || stream.ended().is_none_or(|ended| now.duration_since(ended) < keep)
        });
        while self.streams.len() >= STREAMS {
            let ended = |stream: &Arc<Stream>| !stream.is_connected() && stream.ended().is_some();
            let Some(oldest) =
                self.streams.iter().find(|(_, stream)| ended(stream)).map(|(number, _)| *number)
            else {
                break;
            };
            self.streams.remove(&oldest);
        }
    }
}

/// Sends changes on the standalone stream while somebody reads it. While nobody does, they wait where they
/// are, each kind once.
async fn forward_changes(session: Session, stream: Arc<Stream>) {
    loop {
        stream.connected().await;
        let change = tokio::select! {
            biased;
            change = session.next_change() => change,
            () = stream.disconnected() => continue,
        };
        match change {
            Some(message) => stream.send(message).await,
            None => return stream.end(),
        }
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.session.requests.finish(&self.id);
        self.session.lock().used = Instant::now();
    }
}

impl fmt::Debug for HttpSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSession")
            .field("id", &self.id)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
