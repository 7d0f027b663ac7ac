//! The answers of one POST, and the form in which they leave.
//!
//! Nobody knows at first how long a request takes and whether it has something to say on the way. If the answers
//! come first, they leave as JSON. If a message comes first, or it takes long, or a handler wants it so, the
//! response becomes a stream. The requests run on their own; if the client goes away before any of this, their
//! answers are of no use to anybody and are dropped, but they are not cancelled.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::sync::Notify;
use toolwire_protocol::Feature;
use toolwire_server::{
    Lack,
    engine::{EncodedResponse, join_answers},
};
use toolwire_transport::{
    internal::AbortOnDrop,
    ledger::{Account, Charge, Ledger},
};

use super::{reader::Reader, reconnects::PendingReconnect, session::HttpSession, stream::Stream};
use crate::server::{Body, body::KeepAlive, config::HttpConfig, read::Accepts, response};

pub(crate) struct PostResponse {
    session: Option<Arc<HttpSession>>,
    format: ResponseFormat,
    config: Arc<HttpConfig>,
    state: Mutex<State>,
    settled: Notify,
    /// Whom the stream of its answers is charged to, if there is no session.
    ledger: Ledger,
    /// The bytes of a batch, which its requests hold on to until the last of them is over.
    _batch: Option<Charge>,
}

/// What kind of response is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseFormat {
    /// Whether the request was an array, so that the answers are one too.
    pub(super) batch: bool,
    /// Which forms of an answer the client takes.
    pub(super) accepts: Accepts,
}

struct State {
    phase: Phase,
    /// Answers that came before it was clear how they leave.
    answers: Vec<Bytes>,
    /// The bytes of those that wait for the others of a batch.
    charge: Option<Charge>,
    /// What the caller lacks, where that is the only answer.
    lack: Option<Box<Lack>>,
    /// How many are still to come.
    open: usize,
    /// Calls that nobody can come back for; they end with the response.
    owned: Vec<AbortOnDrop<()>>,
}

enum Phase {
    /// Anything is possible.
    Waiting,
    /// The answers are all there.
    Json,
    /// The response is a stream, which starts to be read when the response leaves.
    Streaming(Arc<Stream>, Option<Reader>),
    /// The client went away without having got anything.
    Abandoned,
}

impl PostResponse {
    /// A POST that waits for `open` answers.
    pub(super) fn new(
        session: Option<Arc<HttpSession>>,
        format: ResponseFormat,
        config: &Arc<HttpConfig>,
        open: usize,
        ledger: &Ledger,
        batch: Option<Charge>,
    ) -> Arc<Self> {
        let state = State {
            phase: Phase::Waiting,
            answers: Vec::new(),
            charge: None,
            lack: None,
            open,
            owned: Vec::new(),
        };
        let post = Self {
            session,
            format,
            config: Arc::clone(config),
            state: Mutex::new(state),
            settled: Notify::new(),
            ledger: ledger.clone(),
            _batch: batch,
        };
        if !format.accepts.json {
            post.stream();
        }
        Arc::new(post)
    }

    /// Lets a call end with the response.
    pub(super) fn own(&self, call: AbortOnDrop<()>) {
        let mut state = self.lock();
        // One that nobody waits for any more ends here.
        if !matches!(state.phase, Phase::Abandoned) {
            state.owned.push(call);
        }
    }

    /// Sends a message that comes before the answers. It makes the response a stream.
    pub(super) async fn send(&self, message: Bytes) {
        let Some(stream) = self.stream() else {
            tracing::debug!("a message was dropped; the client takes no stream or has gone");
            return;
        };
        stream.send(message).await;
    }

    /// Gives the response to a request that was answered before anything else has happened. The answer comes back if
    /// that is not so.
    pub(super) fn answer_alone(&self, answer: EncodedResponse) -> Result<Response<Body>, EncodedResponse> {
        let mut state = self.lock();
        if self.format.batch || !matches!(state.phase, Phase::Waiting) {
            return Err(answer);
        }
        state.phase = Phase::Json;
        drop(state);
        Ok(response::one(answer.body, answer.lack))
    }

    /// Takes the answer of a call. That its caller lacks something is told by the status, as long as there is one to
    /// give.
    pub(super) async fn answer_call(&self, answer: EncodedResponse) {
        let EncodedResponse { body, lack, .. } = answer;
        if lack.is_some() && !self.format.batch {
            self.lock().lack = lack;
        }
        self.answer(body).await;
    }

    /// Takes one answer.
    pub(super) async fn answer(&self, answer: Bytes) {
        let (stream, early) = {
            let mut state = self.lock();
            match &state.phase {
                Phase::Waiting => {
                    state.keep(answer, self.format.batch.then_some(&self.ledger));
                    return self.close_one(state);
                }
                Phase::Streaming(stream, _) => (Arc::clone(stream), state.take_answers()),
                Phase::Json | Phase::Abandoned => return self.close_one(state),
            }
        };
        for answer in early {
            stream.send_answer(answer).await;
        }
        stream.send_answer(answer).await;
        self.close_one(self.lock());
    }

    /// There will be no answer to one of the requests, because it was cancelled.
    pub(super) async fn withdraw(&self) {
        let early = {
            let mut state = self.lock();
            let stream = match &state.phase {
                Phase::Streaming(stream, _) => Some(Arc::clone(stream)),
                _ => None,
            };
            stream.map(|stream| (stream, state.take_answers()))
        };
        if let Some((stream, early)) = early {
            for answer in early {
                stream.send_answer(answer).await;
            }
        }
        self.close_one(self.lock());
    }

    /// One answer less to wait for. With the last one, the response is complete.
    fn close_one(&self, mut state: MutexGuard<'_, State>) {
        state.open = state.open.saturating_sub(1);
        if state.open > 0 {
            return;
        }
        match &state.phase {
            Phase::Waiting => {
                state.phase = Phase::Json;
                drop(state);
                self.settled.notify_one();
            }
            Phase::Streaming(stream, _) => stream.end(),
            Phase::Json | Phase::Abandoned => {}
        }
    }

    /// The stream of the response, which becomes one if it can.
    fn stream(&self) -> Option<Arc<Stream>> {
        let mut state = self.lock();
        match &state.phase {
            Phase::Streaming(stream, _) => return Some(Arc::clone(stream)),
            Phase::Waiting if self.format.accepts.events => {}
            Phase::Waiting | Phase::Json | Phase::Abandoned => return None,
        }
        let stream = match &self.session {
            Some(session) => session.open_stream(self.config.limits.event_timeout),
            None => Stream::fleeting(self.ledger.empty_charge(Account::AnswerBytes)),
        };
        let reader = Reader::first(Arc::clone(&stream)).primed(self.priming());
        state.phase = Phase::Streaming(Arc::clone(&stream), Some(reader));
        drop(state);
        self.settled.notify_one();
        Some(stream)
    }

    /// Ends the connection but not the stream: the client comes back for the rest.
    pub(super) fn cut(&self, away: PendingReconnect) {
        if let Some(stream) = self.stream() {
            stream.cut(away);
        }
    }

    fn priming(&self) -> Option<Duration> {
        let version = self.session.as_ref()?.version();
        version.has(Feature::PollingStreams).then_some(self.config.limits.retry)
    }

    /// Waits until it is clear what the response is, and gives it.
    pub(super) async fn response(self: Arc<Self>) -> Response<Body> {
        if matches!(self.lock().phase, Phase::Json) {
            // It was answered at once, as most requests are.
            return self.take_response();
        }
        let waiting = AbandonOnDrop(&self);
        tokio::select! {
            biased;
            () = self.settled.notified() => {}
            () = tokio::time::sleep(self.config.limits.keep_alive), if self.format.accepts.events => {
                self.stream();
            }
        }
        let response = self.take_response();
        drop(waiting);
        response
    }

    fn take_response(&self) -> Response<Body> {
        let mut state = self.lock();
        let answers = match &mut state.phase {
            Phase::Streaming(_, reader) => {
                let reader = reader.take();
                let owned = std::mem::take(&mut state.owned);
                drop(state);
                return match reader.map(|reader| reader.owning(owned)) {
                    Some(reader) => response::events(KeepAlive::new(reader, self.config.limits.keep_alive)),
                    None => response::empty(StatusCode::INTERNAL_SERVER_ERROR),
                };
            }
            Phase::Waiting | Phase::Json | Phase::Abandoned => state.take_answers(),
        };
        let lack = state.lack.take();
        drop(state);
        match <[Bytes; 1]>::try_from(answers) {
            Ok([answer]) if !self.format.batch => response::one(answer, lack),
            Ok(answers) => response::json(200, join_answers(&answers)),
            // Everything was cancelled, and a cancelled request has no answer.
            Err(answers) if answers.is_empty() => response::empty(StatusCode::ACCEPTED),
            Err(answers) => response::json(200, join_answers(&answers)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps an answer until it is clear how it leaves. That of a batch is charged to `ledger`, because it may wait for the
    /// slowest of its requests.
    fn keep(&mut self, mut answer: Bytes, ledger: Option<&Ledger>) {
        if let Some(ledger) = ledger.filter(|_| answer.len() > response::LIGHT_BYTES) {
            let charge = self.charge.get_or_insert_with(|| ledger.empty_charge(Account::AnswerBytes));
            if let Err(reached) = charge.grow(answer.len()) {
                answer = response::no_room(&answer, &reached);
            }
        }
        self.answers.push(answer);
    }

    fn take_answers(&mut self) -> Vec<Bytes> {
        self.charge = None;
        std::mem::take(&mut self.answers)
    }
}

impl Drop for PostResponse {
    fn drop(&mut self) {
        // Whatever has become of the requests, nobody is left who could send anything.
        if let Phase::Streaming(stream, _) = &self.lock().phase {
            stream.end();
        }
    }
}

/// Notices that the client went away before it was clear what the response is.
struct AbandonOnDrop<'a>(&'a PostResponse);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let owned = std::mem::take(&mut state.owned);
        let reader = match &mut state.phase {
            Phase::Waiting => {
                state.phase = Phase::Abandoned;
                None
            }
            // A stream that was not taken is one that the client has never heard of.
            Phase::Streaming(_, reader) => reader.take(),
            Phase::Json | Phase::Abandoned => None,
        };
        drop(state);
        drop((owned, reader));
    }
}

impl fmt::Debug for PostResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostResponse").field("format", &self.format).finish_non_exhaustive()
    }
}
