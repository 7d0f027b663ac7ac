//! The legacy era behind the HTTP methods.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tokio::sync::Semaphore;
use toolwire_protocol::{
    Message, Method, Request, RpcError,
    classify::{Fault, LegacyView, Verdict},
    envelope::write_response,
    headers::MCP_SESSION_ID,
    peek::Peek,
    wire::EmptyResult,
};
use toolwire_server::{
    Extensions, Server,
    engine::{Call, Seat, Session},
};

use super::{
    away::AwayList,
    denial::Denial,
    event_log::{EventLog, EventLogLimits, MemoryEventLog},
    flight::{Flight, Posted},
    handle::LegacyStream,
    id::{EventId, SessionId},
    post::{POLLING_SINCE, Post, Shape},
    reader::Reader,
    session::{HttpSession, Refusal},
    sessions::Sessions,
    version_header::VersionHeader,
};
use crate::server::{Body, Legacy, body::KeepAlive, config::HttpConfig, read::Accepts, response};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static(MCP_SESSION_ID);

/// Serves clients of the revisions before 2026-07-28.
#[derive(Debug)]
pub(crate) struct LegacyEndpoint {
    pub(super) server: Server,
    pub(super) config: Arc<HttpConfig>,
    sessions: Arc<Sessions>,
    /// Room for requests, which go on when their connection is gone and are bounded here for that reason.
    running: Arc<Semaphore>,
    /// Clients that will come back for their answers.
    pub(in crate::server) away: AwayList,
}

/// What is behind the `Mcp-Session-Id` of a request.
#[derive(Clone, Debug)]
pub(crate) enum SessionLookup {
    /// This era is not served here.
    Off,
    /// There are no sessions here.
    Sessionless,
    /// The request names none.
    Unnamed,
    /// There is none of that name, or it is somebody else's, which is no different.
    Unknown,
    /// This one.
    Found(Arc<HttpSession>),
}

impl SessionLookup {
    /// What the ladder has to know.
    pub(crate) fn view(&self) -> LegacyView {
        match self {
            Self::Off => LegacyView::Off,
            Self::Sessionless => LegacyView::Sessionless,
            Self::Unnamed => LegacyView::NoPeer,
            Self::Unknown => LegacyView::UnknownSession,
            Self::Found(found) => found.session.view(),
        }
    }
}

impl LegacyEndpoint {
    /// An endpoint that keeps its events in `log`, or else in memory.
    pub(crate) fn new(server: Server, config: Arc<HttpConfig>, log: Option<Arc<dyn EventLog>>) -> Self {
        let log = log.unwrap_or_else(|| Arc::new(MemoryEventLog::new(EventLogLimits::of(&config.limits))));
        let room = config.limits.requests_in_flight.min(Semaphore::MAX_PERMITS);
        let sessions = Sessions::new(config.limits.clone(), log);
        Self { server, config, sessions, running: Arc::new(Semaphore::new(room)), away: AwayList::default() }
    }

    /// How many sessions there are.
    #[cfg(test)]
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Finds the session of a request that names it by `id`.
    pub(crate) fn find(&self, id: Option<&HeaderValue>, principal: Option<&str>) -> SessionLookup {
        match (self.config.legacy, self.server.without_session()) {
            (Legacy::Off, _) | (_, LegacyView::Off) => return SessionLookup::Off,
            (Legacy::Stateless, _) => return SessionLookup::Sessionless,
            (Legacy::Sessions, _) => {}
        }
        let Some(id) = id else { return SessionLookup::Unnamed };
        let id = SessionId::parse(id.as_bytes());
        let found = id.and_then(|id| self.sessions.find(&id, principal));
        found.map_or(SessionLookup::Unknown, SessionLookup::Found)
    }

    /// Takes a message that the ladder has found to be of this era, and starts it if it is a request.
    #[expect(clippy::too_many_arguments, reason = "everything that is known of one message")]
    pub(crate) fn post(
        &self,
        verdict: Verdict,
        found: SessionLookup,
        message: Message,
        peek: Box<Peek>,
        accepts: Accepts,
        principal: Option<Arc<str>>,
        extensions: Extensions,
    ) -> ControlFlow<Response<Body>, Posted> {
        let session = match found {
            SessionLookup::Found(session) => Some(session),
            _ => None,
        };
        let request = match (message, &session) {
            (Message::Request(request), _) => request,
            (message, Some(session)) => {
                session.absorb(message);
                return ControlFlow::Break(response::empty(StatusCode::ACCEPTED));
            }
            (_, None) => return ControlFlow::Break(response::empty(StatusCode::ACCEPTED)),
        };
        let seat = match (verdict, &session) {
            (Verdict::Initialize, _) => return ControlFlow::Break(self.initialize(&request, principal)),
            (_, Some(session)) => Seat::Legacy(session.session.clone()),
            (Verdict::Legacy(version), None) => Seat::Sessionless(version),
            (_, None) => {
                let denial = Denial::of(&Fault::SessionRequired);
                return ControlFlow::Break(denial.response(Some(&request.id)));
            }
        };
        let id = request.id.clone();
        let shape = Shape { batch: false, accepts };
        let post = Post::new(session.clone(), shape, &self.config, 1);
        match self.prepare(&post, session, request, peek, seat, extensions) {
            Prepared::Flight(flight) => ControlFlow::Continue(Posted::Flight(flight)),
            Prepared::Answered(answer) => ControlFlow::Continue(Posted::Answered(post, answer)),
            Prepared::Refused(denial) => ControlFlow::Break(denial.response(Some(&id))),
        }
    }

    fn initialize(&self, request: &Request, principal: Option<Arc<str>>) -> Response<Body> {
        let (session, answered) = match Session::initialize(&self.server, request) {
            Ok(started) => started,
            Err(answered) => return response::json(answered.status, answered.body),
        };
        let mut response = response::json(answered.status, answered.body);
        if self.config.legacy == Legacy::Sessions {
            match self.sessions.open(session, principal) {
                Ok(opened) => match HeaderValue::try_from(opened.id().text()) {
                    Ok(id) => response.headers_mut().insert(SESSION_ID, id),
                    Err(_) => return response::empty(StatusCode::INTERNAL_SERVER_ERROR),
                },
                Err(refused) => return Denial::from(refused).response(Some(&request.id)),
            };
        }
        response
    }

    /// Finds room for a request, and starts its call.
    pub(super) fn prepare(
        &self,
        post: &Arc<Post>,
        session: Option<Arc<HttpSession>>,
        request: Request,
        peek: Box<Peek>,
        seat: Seat,
        mut extensions: Extensions,
    ) -> Prepared {
        if session.is_none()
            && let Some(answer) = answer_for_nobody(&request)
        {
            return Prepared::Answered(answer);
        }
        let limit = self.config.limits.session_requests;
        let polls = session.as_ref().is_some_and(|session| session.version() >= POLLING_SINCE);
        let berth = match session.map(|session| session.admit(&request.id, limit)).transpose() {
            Ok(berth) => berth,
            Err(refusal) => return Prepared::Refused(refusal.into()),
        };
        let Ok(room) = Arc::clone(&self.running).try_acquire_owned() else {
            return Prepared::Refused(Refusal::TooMany.into());
        };
        if polls {
            extensions.insert(LegacyStream::new(post, self.away.clone()));
        }
        match Call::new(&self.server, request, peek, seat, extensions) {
            Ok(call) => {
                let time = self.server.limits().handler_time;
                Prepared::Flight(Flight { call, post: Arc::clone(post), berth, _room: room, time })
            }
            Err(answered) => Prepared::Answered(answered.body),
        }
    }

    /// Opens the stream for messages that belong to no request, or resumes any stream.
    pub(crate) async fn get(&self, headers: &HeaderMap, principal: Option<Arc<str>>) -> Response<Body> {
        let session = match self.session_of(headers, principal.as_deref()) {
            Ok(session) => session,
            Err(denial) => return denial.response(None),
        };
        if !Accepts::of(headers).events {
            let error = RpcError::invalid_request("Accept must allow text/event-stream to open a stream");
            return Denial::new(StatusCode::NOT_ACCEPTABLE, error).response(None);
        }
        let (stream, cursor) = match headers.get("last-event-id") {
            None => {
                let stream = session.standalone();
                let cursor = stream.given();
                (stream, cursor)
            }
            Some(value) => {
                let event = value.to_str().ok().and_then(|text| text.trim().parse::<EventId>().ok());
                let stream = event.and_then(|event| session.stream_of(event, self.config.limits.event_time));
                let (Some(event), Some(stream)) = (event, stream) else {
                    return Denial::cannot_resume().response(None);
                };
                if stream.is_over_after(event.sequence) {
                    // This is how an event source is told not to come back. A stream that ends at once would have
                    // it ask for an answer that never comes, of a request that was cancelled, again and again.
                    return response::empty(StatusCode::NO_CONTENT);
                }
                (stream, event.sequence)
            }
        };
        let limits = &self.config.limits;
        let retry = (session.version() >= POLLING_SINCE).then_some(limits.retry);
        match Reader::resume(stream, cursor).await {
            Ok(reader) => response::events(KeepAlive::new(reader.primed(retry), limits.keep_alive)),
            Err(_) => Denial::cannot_resume().response(None),
        }
    }

    /// Ends a session.
    pub(crate) fn delete(&self, headers: &HeaderMap, principal: Option<&str>) -> Response<Body> {
        match self.session_of(headers, principal) {
            Ok(session) => {
                self.sessions.remove(session.id());
                response::empty(StatusCode::NO_CONTENT)
            }
            Err(denial) => denial.response(None),
        }
    }

    /// The session of a request without a body.
    fn session_of(&self, headers: &HeaderMap, principal: Option<&str>) -> Result<Arc<HttpSession>, Denial> {
        let version = VersionHeader::of(headers);
        match self.find(headers.get(SESSION_ID), principal) {
            SessionLookup::Off | SessionLookup::Sessionless => Err(Denial::only("POST")),
            _ if version.is_modern() => Err(Denial::only("POST")),
            _ if version == VersionHeader::Unknown => {
                let error = RpcError::invalid_request("MCP-Protocol-Version names an unknown version");
                Err(Denial::new(StatusCode::BAD_REQUEST, error))
            }
            SessionLookup::Unnamed => Err(Denial::of(&Fault::SessionRequired)),
            SessionLookup::Unknown => Err(Denial::of(&Fault::UnknownSession)),
            SessionLookup::Found(session) => Ok(session),
        }
    }
}

/// What is about the session itself and makes sense without one: nothing is remembered, and nobody is told off
/// for a level that no message will have.
fn answer_for_nobody(request: &Request) -> Option<Bytes> {
    match request.method.known() {
        Some(Method::Ping | Method::SetLevel) => {
            write_response(&request.id, |out| serde_json::to_writer(out, &EmptyResult::new())).ok()
        }
        _ => None,
    }
}

/// A request on its way to a handler, or past it.
pub(super) enum Prepared {
    Flight(Flight),
    Answered(Bytes),
    Refused(Denial),
}
