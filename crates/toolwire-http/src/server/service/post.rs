//! A message that was posted: from its bytes to whoever answers it.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use http::{Response, StatusCode, request::Parts};
use toolwire_protocol::{
    Feature, Message, Request as ProtocolRequest, RpcError,
    classify::{Fault, HeaderView, LegacyView},
    envelope::{EnvelopeFault, FaultKind},
    peek::{Peek, VersionField},
};
use toolwire_server::{
    Extensions,
    engine::{Arrival, Call, EncodedResponse, Incoming, RequestOrigin},
};
use toolwire_transport::ledger::{Account, Charge, Ledger};

use super::{
    super::{
        Body,
        drain::{is_late, leaving},
        edge::{self, Head},
        legacy::{LegacyRequest, PendingResponse},
        modern::Responding,
        read::{self, Accepts, BoxError},
        response,
    },
    Shared, attach, principal,
};

/// The number of turns of the runtime that a new session waits for the end of the one that makes room for it.
const ROOM_TURNS: usize = 1000;

impl Shared {
    /// What happens between the body and the handler happens in [`Self::message`], which is not a future: everything that
    /// is known of a message would have its place in it until the end, and be moved around with it.
    pub(super) async fn post<B>(&self, parts: &Arc<Parts>, head: &Head<'_>, body: B) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        let accepts = match read::media_types(head, &parts.headers) {
            Ok(accepts) => accepts,
            Err(unreadable) => return unreadable.response(),
        };
        let limits = &self.config.limits;
        let Some(caller) = self.caller(parts) else {
            return self.refuse_nameless();
        };
        let mut charge = caller.empty_charge(Account::RequestBytes);
        let bytes = match read::body(body, limits.body_bytes, limits.body_timeout, &mut charge).await {
            Ok(bytes) => bytes,
            Err(unreadable) => return unreadable.response(),
        };
        let asked = match Message::parse_and_peek(&bytes) {
            Ok((message, peek)) => {
                self.message(Posted { parts, head, accepts, caller: &caller, charge }, message, peek)
            }
            Err(fault) if fault.kind == FaultKind::Batch => {
                return Box::pin(self.batch(parts, head, bytes, &fault, charge)).await;
            }
            Err(fault) => return refuse_envelope(&fault),
        };
        drop(bytes);
        match asked {
            ControlFlow::Break(response) => response,
            ControlFlow::Continue(Asked::Modern(running)) => running.await,
            ControlFlow::Continue(Asked::Legacy(posted)) => posted.await,
            ControlFlow::Continue(Asked::Session(opening)) => {
                self.wait_for_room(&caller).await;
                let (request, extensions) = &*opening;
                self.legacy.initialize(request, principal(parts), &caller, extensions)
            }
        }
    }

    /// Waits until a session that made room is gone, which takes other tasks a turn, perhaps on other threads.
    async fn wait_for_room(&self, caller: &Ledger) {
        for _ in 0..ROOM_TURNS {
            tokio::task::yield_now().await;
            if !self.legacy.has_share_of_sessions(caller) {
                return;
            }
        }
    }

    /// Decides what a message is, and prepares what it asks for.
    fn message(
        &self,
        posted: Posted<'_>,
        message: Message,
        peek: Box<Peek>,
    ) -> ControlFlow<Response<Body>, Asked> {
        let (parts, head) = (posted.parts, posted.head);
        if let Message::Request(request) = &message
            && is_late(parts)
        {
            return ControlFlow::Break(leaving(Some(&request.id)));
        }
        let principal = principal(parts);
        let found = self.legacy.find(head.session_id.bytes(), principal);
        let view = HeaderView {
            protocol_version: head.protocol_version.text(),
            method: head.method.text(),
            name: head.name.text(),
        };
        if view.protocol_version == Some(edge::UNREADABLE) {
            return ControlFlow::Break(refuse_version(Some(&message)));
        }
        let (legacy, session) = (found.view(), found.session());
        let inner = session.as_ref().map(|session| &session.session);
        match self.server.receive(message, &peek, Some(&view), legacy, inner) {
            Incoming::Request(request, origin @ RequestOrigin::Modern(_)) => {
                self.modern(posted, request, peek, origin)
            }
            Incoming::Request(request, origin) => {
                let open = request.method.known().is_some_and(|method| method.info().open_ended);
                let parts = Arc::clone(parts);
                let asked = LegacyRequest {
                    request,
                    peek,
                    origin,
                    session,
                    extensions: if open { self.attach_open(parts) } else { attach(parts) },
                    ledger: posted.caller,
                    charge: posted.charge,
                };
                self.legacy.post(asked, posted.accepts).map_continue(Asked::Legacy)
            }
            Incoming::Initialize(request) => {
                let extensions = attach(Arc::clone(parts));
                if self.legacy.makes_room_for(posted.caller) {
                    return ControlFlow::Continue(Asked::Session(Box::new((request, extensions))));
                }
                ControlFlow::Break(self.legacy.initialize(&request, principal, posted.caller, &extensions))
            }
            Incoming::Answered(answer) | Incoming::Unwanted(answer) => {
                ControlFlow::Break(response::encoded(answer))
            }
            Incoming::Notification(note) => {
                if let Some(session) = session {
                    session.notify(&note);
                }
                ControlFlow::Break(response::empty(StatusCode::ACCEPTED))
            }
            Incoming::Response(answer) => match session.and_then(|session| session.deliver(answer)) {
                None => ControlFlow::Break(response::empty(StatusCode::ACCEPTED)),
                Some(storing) => ControlFlow::Continue(Asked::Legacy(PendingResponse::stored(storing))),
            },
            // Cancelling is done by closing the stream, and nothing else that a modern client could say by a
            // notification is of interest.
            Incoming::Ignored => ControlFlow::Break(response::empty(StatusCode::ACCEPTED)),
        }
    }

    /// Starts a modern request, or says why not.
    fn modern(
        &self,
        posted: Posted<'_>,
        request: ProtocolRequest,
        peek: Box<Peek>,
        origin: RequestOrigin,
    ) -> ControlFlow<Response<Body>, Asked> {
        use toolwire_protocol::Method;
        let Posted { parts, accepts, caller, charge, .. } = posted;
        if request.method.known() == Some(Method::CallTool)
            && let Err(fault) = self
                .server
                .check_param_headers(&peek, parts.extensions.get(), |name| edge::text(&parts.headers, name))
        {
            return ControlFlow::Break(response::encoded(EncodedResponse::refusal(&fault, &request)));
        }
        if request.method.known() == Some(Method::Listen) && !accepts.events {
            let error = RpcError::invalid_request("Accept must allow text/event-stream to listen");
            return ControlFlow::Break(response::error(
                StatusCode::NOT_ACCEPTABLE,
                Some(&request.id),
                &error,
            ));
        }
        let extensions = if request.method.known() == Some(Method::Listen) {
            self.attach_open(Arc::clone(parts))
        } else {
            attach(Arc::clone(parts))
        };
        let arrival = Arrival::charged(caller, charge, extensions);
        match Call::new(&self.server, request, peek, origin, arrival) {
            Ok(call) => {
                let responding = Responding::new(call, accepts, self.config.limits.keep_alive);
                ControlFlow::Continue(Asked::Modern(responding))
            }
            Err(answered) => ControlFlow::Break(response::encoded(answered)),
        }
    }

    /// An array of messages, which one legacy revision has.
    async fn batch(
        &self,
        parts: &Arc<Parts>,
        head: &Head<'_>,
        bytes: Bytes,
        fault: &EnvelopeFault,
        charge: Charge,
    ) -> Response<Body> {
        if is_late(parts) {
            return leaving(None);
        }
        let principal = principal(parts);
        let found = self.legacy.find(head.session_id.bytes(), principal);
        let header = head.protocol_version.text();
        if header == Some(edge::UNREADABLE) {
            return refuse_version(None);
        }
        let named = header.map(VersionField::of);
        let takes_batches = match found.view() {
            _ if named.as_ref().is_some_and(|version| version.has(Feature::StatelessRequests)) => false,
            LegacyView::UnknownSession => {
                let fault = Fault::UnknownSession;
                let status = StatusCode::from_u16(fault.http_status()).unwrap_or(StatusCode::NOT_FOUND);
                return response::error(status, None, &fault.rpc_error());
            }
            LegacyView::Peer { version, .. } => version.has(Feature::Batches),
            LegacyView::Sessionless => named.is_none_or(|version| version.has(Feature::Batches)),
            _ => false,
        };
        if !takes_batches {
            return refuse_envelope(fault);
        }
        let extensions = attach(Arc::clone(parts));
        self.legacy.batch(bytes, found, head, parts, extensions, charge).await
    }
}

/// What is known of a message before it is looked at.
struct Posted<'a> {
    parts: &'a Arc<Parts>,
    head: &'a Head<'a>,
    accepts: Accepts,
    /// Whom it is counted against.
    caller: &'a Ledger,
    /// What is charged for its bytes.
    charge: Charge,
}

/// A request on its way to its handler.
enum Asked {
    Modern(Responding),
    Legacy(PendingResponse),
    /// A session, for which another one makes room. Boxed, because that is rare.
    Session(Box<(ProtocolRequest, Extensions)>),
}

/// Refuses a message whose header MCP-Protocol-Version could be understood in two ways, or in none.
fn refuse_version(message: Option<&Message>) -> Response<Body> {
    let id = match message {
        Some(Message::Request(request)) => Some(&request.id),
        _ => None,
    };
    let fault = Fault::HeaderMismatch(
        "MCP-Protocol-Version is repeated or has other than visible characters; send it once".into(),
    );
    let status = StatusCode::from_u16(fault.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
    response::error(status, id, &fault.rpc_error())
}

fn refuse_envelope(fault: &EnvelopeFault) -> Response<Body> {
    tracing::debug!(%fault, "a body was refused");
    response::error(StatusCode::BAD_REQUEST, fault.id.as_ref(), &fault.rpc_error())
}
