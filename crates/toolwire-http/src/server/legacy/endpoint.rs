//! The legacy era behind the HTTP methods.

use std::{ops::ControlFlow, sync::Arc};

use http::{HeaderName, HeaderValue, Response, StatusCode, request::Parts};
use toolwire_protocol::{
    Feature, Request, RpcError,
    classify::{Fault, LegacyView},
    headers::MCP_SESSION_ID,
    peek::{Peek, VersionField},
};
use toolwire_server::{
    Extensions, Principal, PrincipalKey, Server,
    engine::{Arrival, Call, EncodedResponse, EndsAt, RequestOrigin, Session},
};
use toolwire_transport::ledger::{Account, Charge, Ledger};

use super::{
    denial::Denial,
    event_log::{EventLog, EventLogLimits, MemoryEventLog},
    handle::LegacyStream,
    id::{EventId, SessionId},
    post_response::{PostResponse, ResponseFormat},
    reader::Reader,
    reconnects::PendingReconnects,
    running_call::{PendingResponse, RunningCall},
    session::HttpSession,
    sessions::Sessions,
    stream::STANDALONE,
};
use crate::server::{
    Body, Legacy,
    body::{KeepAlive, Until},
    config::HttpConfig,
    edge::{self, Head},
    read::Accepts,
    response,
};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static(MCP_SESSION_ID);

/// Serves clients of the revisions before 2026-07-28.
#[derive(Debug)]
pub(crate) struct LegacyEndpoint {
    pub(super) server: Server,
    pub(super) config: Arc<HttpConfig>,
    sessions: Arc<Sessions>,
    /// Clients that will come back for their answers.
    pub(in crate::server) reconnects: PendingReconnects,
}

/// What is behind the `Mcp-Session-Id` of a request.
#[derive(Clone, Debug)]
pub(crate) struct SessionLookup {
    view: LegacyView,
    session: Option<Arc<HttpSession>>,
}

impl SessionLookup {
    fn found(session: Arc<HttpSession>) -> Self {
        Self { view: session.session.view(), session: Some(session) }
    }

    const fn none(view: LegacyView) -> Self {
        Self { view, session: None }
    }

    /// The session that was found.
    pub(crate) fn session(&self) -> Option<Arc<HttpSession>> {
        self.session.clone()
    }

    /// What `classify` has to know.
    pub(crate) const fn view(&self) -> LegacyView {
        self.view
    }
}

impl LegacyEndpoint {
    /// An endpoint that keeps its events in `log`, or else in memory.
    pub(crate) fn new(server: Server, config: Arc<HttpConfig>, log: Option<Arc<dyn EventLog>>) -> Self {
        let log = log.unwrap_or_else(|| Arc::new(MemoryEventLog::new(EventLogLimits::of(&config.limits))));
        let sessions = Sessions::new(config.limits.clone(), log);
        Self { server, config, sessions, reconnects: PendingReconnects::default() }
    }

    /// How many sessions there are.
    #[cfg(test)]
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Finds the session of a request that names it by `id`.
    pub(crate) fn find(&self, id: Option<&[u8]>, principal: Option<PrincipalKey>) -> SessionLookup {
        match (self.config.legacy, self.server.without_session()) {
            (Legacy::Off, _) | (_, LegacyView::Off) => return SessionLookup::none(LegacyView::Off),
            (Legacy::Stateless, _) => return SessionLookup::none(LegacyView::Sessionless),
            (Legacy::Sessions, _) => {}
        }
        let Some(id) = id else { return SessionLookup::none(LegacyView::NoPeer) };
        let id = SessionId::parse(id);
        let found = id.and_then(|id| self.sessions.find(&id, principal));
        // One that is somebody else's is as unknown as one that never was.
        found.map_or(SessionLookup::none(LegacyView::UnknownSession), SessionLookup::found)
    }

    /// Whether a request without a body can be about a session.
    pub(crate) fn has_sessions(&self, head: &Head<'_>) -> bool {
        let version = head.protocol_version.text().map(VersionField::of);
        self.config.legacy == Legacy::Sessions
            && self.server.without_session() != LegacyView::Off
            && !version.is_some_and(|version| version.has(Feature::StatelessRequests))
    }

    /// Starts a request.
    pub(crate) fn post(
        &self,
        asked: LegacyRequest<'_>,
        accepts: Accepts,
    ) -> ControlFlow<Response<Body>, PendingResponse> {
        let id = asked.request.id.clone();
        let format = ResponseFormat { batch: false, accepts };
        let post = PostResponse::new(asked.session.clone(), format, &self.config, 1, asked.ledger, None);
        match self.prepare(&post, asked) {
            Prepared::Call(running) => ControlFlow::Continue(PendingResponse::Call(running)),
            Prepared::Answered(answer) if accepts.json || answer.status != 200 => {
                ControlFlow::Break(response::encoded(answer))
            }
            Prepared::Answered(answer) => {
                ControlFlow::Continue(PendingResponse::Waiting(Box::pin(async move {
                    post.answer(answer.body).await;
                    post.response().await
                })))
            }
            Prepared::Refused(denial) => ControlFlow::Break(denial.response(Some(&id))),
        }
    }

    /// Ends a session of a caller that has its share of them, if one may go, so that it can have a new one. Returns `true` if
    /// it has done so; the place is free once the tasks of that session have ended.
    pub(crate) fn makes_room_for(&self, caller: &Ledger) -> bool {
        // Callers that cannot be told apart are counted on the topmost ledger, and none of them has a share.
        self.config.legacy == Legacy::Sessions
            && caller.parent().is_some()
            && self.has_share_of_sessions(caller)
            && self.sessions.make_room_for(caller)
    }

    /// Returns `true` if a caller has as many sessions as it may.
    pub(crate) fn has_share_of_sessions(&self, caller: &Ledger) -> bool {
        caller.used(Account::Sessions) >= self.server.limits().sessions_per_caller
    }

    /// Ends the session that a response opens, if it does so, because the response is not sent.
    #[cold]
    pub(crate) fn take_back(&self, response: &Response<Body>) {
        let id = response.headers().get(SESSION_ID).and_then(|id| SessionId::parse(id.as_bytes()));
        if let Some(id) = id {
            self.sessions.remove(&id);
        }
    }

    /// Answers `initialize`; what the session holds is charged below `caller`.
    pub(crate) fn initialize(
        &self,
        request: &Request,
        principal: Option<PrincipalKey>,
        caller: &Ledger,
        extensions: &Extensions,
    ) -> Response<Body> {
        let (session, answered) = match Session::initialize(&self.server, request, caller, extensions) {
            Ok(started) => started,
            Err(answered) => return response::encoded(answered),
        };
        let mut response = response::json(answered.status, answered.body);
        if self.config.legacy == Legacy::Sessions {
            match self.sessions.open(session, principal, self.server.limits()) {
                Ok(opened) => match HeaderValue::try_from(opened.id().text()) {
                    Ok(id) => response.headers_mut().insert(SESSION_ID, id),
                    Err(_) => return response::empty(StatusCode::INTERNAL_SERVER_ERROR),
                },
                Err(refused) => return Denial::from(refused).response(Some(&request.id)),
            };
        }
        response
    }

    /// Takes a request in, and enters it in its session.
    pub(super) fn prepare(&self, post: &Arc<PostResponse>, asked: LegacyRequest<'_>) -> Prepared {
        let LegacyRequest { request, peek, origin, session, mut extensions, ledger, charge } = asked;
        if session.as_ref().is_some_and(|session| session.version().has(Feature::PollingStreams)) {
            extensions.insert(LegacyStream::new(post, self.reconnects.clone()));
        }
        let ledger = session.as_ref().map_or(ledger, |session| session.session.ledger());
        let arrival = Arrival::charged(ledger, charge, extensions);
        let call = match Call::new(&self.server, request, peek, origin, arrival) {
            Ok(call) => call,
            Err(answered) => return Prepared::Answered(answered),
        };
        match session.map(|session| session.admit(call.context())).transpose() {
            Ok(slot) => Prepared::Call(RunningCall { call, post: Arc::clone(post), slot }),
            Err(refusal) => {
                drop(call.refuse(refusal.rpc_error()));
                Prepared::Refused(refusal.into())
            }
        }
    }

    /// Opens the stream for messages that belong to no request, or resumes any stream.
    pub(crate) async fn get(&self, head: &Head<'_>, parts: &Parts, end: Option<EndsAt>) -> Response<Body> {
        let (headers, principal) = (&parts.headers, parts.extensions.get::<Principal>());
        let session = match self.session_of(head, principal.map(Principal::key)) {
            Ok(session) => session,
            Err(denial) => return denial.response(None),
        };
        if !Accepts::of(headers).events {
            let error = RpcError::invalid_request("Accept must allow text/event-stream to open a stream");
            return Denial::new(StatusCode::NOT_ACCEPTABLE, error).response(None);
        }
        let (stream, cursor) = match edge::text(headers, "last-event-id") {
            None => {
                let stream = session.standalone();
                let cursor = stream.given();
                (stream, cursor)
            }
            Some(text) => {
                let event = text.trim().parse::<EventId>().ok();
                let stream =
                    event.and_then(|event| session.stream_of(event, self.config.limits.event_timeout));
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
        if stream.number() == Some(STANDALONE) {
            // The token that has subscribed may have allowed more than the one that reads.
            session.session.read_by(&self.server, principal);
        }
        let limits = &self.config.limits;
        let retry = session.version().has(Feature::PollingStreams).then_some(limits.retry);
        match Reader::resume(stream, cursor).await {
            Ok(reader) => {
                let events = KeepAlive::new(reader.primed(retry), limits.keep_alive);
                response::events(Until::new(events, end))
            }
            Err(_) => Denial::cannot_resume().response(None),
        }
    }

    /// Ends a session.
    pub(crate) fn delete(&self, head: &Head<'_>, principal: Option<PrincipalKey>) -> Response<Body> {
        match self.session_of(head, principal) {
            Ok(session) => {
                self.sessions.remove(session.id());
                response::empty(StatusCode::NO_CONTENT)
            }
            Err(denial) => denial.response(None),
        }
    }

    /// The session of a request without a body.
    fn session_of(
        &self,
        head: &Head<'_>,
        principal: Option<PrincipalKey>,
    ) -> Result<Arc<HttpSession>, Denial> {
        let version = head.protocol_version.text().map(VersionField::of);
        if matches!(version, Some(VersionField::Unknown(_))) {
            let error = RpcError::invalid_request("MCP-Protocol-Version names an unknown version");
            return Err(Denial::new(StatusCode::BAD_REQUEST, error));
        }
        let found = self.find(head.session_id.bytes(), principal);
        match (found.session, found.view) {
            (Some(session), _) => Ok(session),
            (None, LegacyView::UnknownSession) => Err(Denial::of(&Fault::UnknownSession)),
            (None, _) => Err(Denial::of(&Fault::SessionRequired)),
        }
    }
}

/// A request as it has come in, and everything that is known of it.
pub(crate) struct LegacyRequest<'a> {
    pub(crate) request: Request,
    pub(crate) peek: Box<Peek>,
    pub(crate) origin: RequestOrigin,
    pub(crate) session: Option<Arc<HttpSession>>,
    pub(crate) extensions: Extensions,
    /// Whom it is counted against, if there is no session.
    pub(crate) ledger: &'a Ledger,
    /// What is charged for its bytes.
    pub(crate) charge: Charge,
}

/// A request on its way to a handler, or past it.
pub(super) enum Prepared {
    Call(RunningCall),
    Answered(EncodedResponse),
    Refused(Denial),
}
