//! HTTP+SSE of 2024-11-05: one stream for everything the server says, and a second path for the client.
//!
//! A GET opens the stream. Its first event says where to post, with the name of the connection. What is posted
//! there is accepted, and answered on the stream. So the pair of them is a duplex transport, and is served as
//! one: this file only moves messages. The connection is the session, and ends when the stream is closed.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use http::{Method, Response, StatusCode, request::Parts};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore},
    task::AbortHandle,
    time::timeout,
};
use toolwire_protocol::{RpcError, classify::Fault, framing::sse::encode_event};
use toolwire_server::{Extensions, PrincipalKey, Server, engine::EndsAt};
use toolwire_transport::{
    Duplex, Ledger, Sink as _, Source as _,
    ledger::Account,
    memory::{self, MemorySink, MemorySource},
};

use super::{denial::Denial, id::SessionId};
use crate::server::{
    Body, HttpLimits, Principal,
    body::{KeepAlive, event},
    edge::Head,
    peer::{AddressShare, AddressShares},
    read::{self, BoxError},
    response,
    service::{attach, caller_key},
};

/// Where clients of 2024-11-05 are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sse2024Paths {
    pub(crate) stream: String,
    pub(crate) messages: String,
}

impl Sse2024Paths {
    pub(crate) fn has(&self, path: &str) -> bool {
        path == self.stream || path == self.messages
    }
}

/// Serves clients that know nothing newer than 2024-11-05.
pub(crate) struct Sse2024 {
    server: Server,
    limits: HttpLimits,
    connections: Arc<Connections>,
    room: Arc<Semaphore>,
    /// How much of the room one caller may have.
    shares: AddressShares,
}

#[derive(Default)]
struct Connections(Mutex<HashMap<SessionId, Connection>>);

#[derive(Clone)]
struct Connection {
    principal: Option<PrincipalKey>,
    /// When nothing more is taken.
    end: Option<EndsAt>,
    inbound: Arc<AsyncMutex<MemorySink>>,
}

impl Sse2024 {
    pub(crate) fn new(server: Server, limits: HttpLimits) -> Self {
        let room = Arc::new(Semaphore::new(limits.sessions.min(Semaphore::MAX_PERMITS)));
        let shares = AddressShares::new(server.limits().sessions_per_caller);
        Self { server, limits, connections: Arc::default(), room, shares }
    }

    /// Answers a request to one of its paths.
    pub(crate) async fn handle<B>(
        &self,
        paths: &Sse2024Paths,
        caller: &Ledger,
        parts: Arc<Parts>,
        end: Option<EndsAt>,
        body: B,
    ) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        let principal = parts.extensions.get::<Principal>().map(Principal::key);
        let is_stream = parts.uri.path() == paths.stream;
        match parts.method {
            Method::GET if is_stream => {
                let share = match caller_key(&parts).map(|caller| self.shares.take_for(caller)) {
                    Some(None) => return Denial::full().response(None),
                    share => share.flatten(),
                };
                self.get(&paths.messages, principal, end, attach(parts), share)
            }
            Method::POST if !is_stream => {
                if let Err(unreadable) = read::media_types(&Head::of(&parts.headers), &parts.headers) {
                    return unreadable.response();
                }
                let mut charge = caller.empty_charge(Account::RequestBytes);
                match read::body(body, self.limits.body_bytes, self.limits.body_timeout, &mut charge).await {
                    Ok(bytes) => self.post(parts.uri.query(), bytes, principal).await,
                    Err(unreadable) => unreadable.response(),
                }
            }
            // Newer clients find out by this that they have to go on with a GET.
            _ => Denial::only(if is_stream { "GET" } else { "POST" }).response(None),
        }
    }

    /// Opens a connection. What the client has to say is to be posted to the path `messages`. What is known of the
    /// request that opened it is known to the handlers of all that is posted there.
    fn get(
        &self,
        messages: &str,
        principal: Option<PrincipalKey>,
        end: Option<EndsAt>,
        mut extensions: Extensions,
        share: Option<AddressShare>,
    ) -> Response<Body> {
        if let Some(end) = end {
            extensions.insert(end);
        }
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return Denial::full().response(None);
        };
        let Ok(id) = SessionId::random() else {
            let error = RpcError::internal("no session could be started");
            return Denial::new(StatusCode::INTERNAL_SERVER_ERROR, error).response(None);
        };
        let (ours, theirs) = memory::pair();
        let (outbound, inbound) = ours.split();
        let server = self.server.clone();
        let serving = tokio::spawn(async move {
            if let Err(error) = server.serve_connection(theirs, extensions).await {
                tracing::debug!(%error, "an HTTP+SSE connection broke");
            }
        });
        let connection = Connection { principal, end, inbound: Arc::new(AsyncMutex::new(inbound)) };
        self.connections.lock().insert(id, connection);
        let open = Open {
            connections: Arc::clone(&self.connections),
            id,
            serving: serving.abort_handle(),
            _room: (room, share),
        };
        let events = Events { endpoint: Some(endpoint(messages, &id)), next: receive(outbound), _open: open };
        response::events(KeepAlive::new(events, self.limits.keep_alive))
    }

    /// Takes a message for a connection.
    async fn post(
        &self,
        query: Option<&str>,
        bytes: Bytes,
        principal: Option<PrincipalKey>,
    ) -> Response<Body> {
        let Some(text) = query.and_then(session_parameter) else {
            let error = RpcError::invalid_request("the URL names no session; open a stream first to get one");
            return Denial::new(StatusCode::BAD_REQUEST, error).response(None);
        };
        let Some(connection) = self.find(text, principal) else {
            return Denial::of(&Fault::UnknownSession).response(None);
        };
        let send = async { connection.inbound.lock().await.send(bytes).await };
        match timeout(self.limits.body_timeout, send).await {
            Ok(Ok(())) => response::empty(StatusCode::ACCEPTED),
            Ok(Err(_)) => Denial::of(&Fault::UnknownSession).response(None),
            Err(_) => Denial::slow_reader().response(None),
        }
    }

    fn find(&self, text: &str, principal: Option<PrincipalKey>) -> Option<Connection> {
        let id = SessionId::parse(text.as_bytes())?;
        let connection = self.connections.lock().get(&id).cloned()?;
        let is_over = connection.end.is_some_and(EndsAt::is_over);
        (connection.principal == principal && !is_over).then_some(connection)
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is open. Dropping it ends everything that belongs to it.
struct Open {
    connections: Arc<Connections>,
    id: SessionId,
    serving: AbortHandle,
    _room: (OwnedSemaphorePermit, Option<AddressShare>),
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.id);
        self.serving.abort();
    }
}

/// What the server says, as events.
struct Events {
    endpoint: Option<Bytes>,
    next: Receiving,
    _open: Open,
}

type Receiving = Pin<Box<dyn Future<Output = Option<(Bytes, MemorySource)>> + Send>>;

fn receive(mut source: MemorySource) -> Receiving {
    Box::pin(async move {
        let message = source.receive().await.ok().flatten()?;
        Some((message, source))
    })
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(endpoint) = self.endpoint.take() {
            return Poll::Ready(Some(endpoint));
        }
        let received = ready!(self.next.as_mut().poll(task));
        let Some((message, source)) = received else {
            self.next = Box::pin(std::future::ready(None));
            return Poll::Ready(None);
        };
        self.next = receive(source);
        Poll::Ready(Some(typed_event(&message)))
    }
}

/// That revision names the type of its events.
fn typed_event(message: &[u8]) -> Bytes {
    let plain = event(None, message);
    [b"event: message\n", &plain[..]].concat().into()
}

fn endpoint(messages: &str, id: &SessionId) -> Bytes {
    let mut out = Vec::new();
    let separator = if messages.contains('?') { '&' } else { '?' };
    encode_event(
        None,
        Some("endpoint"),
        format!("{messages}{separator}session={}", id.text()).as_bytes(),
        &mut out,
    );
    out.into()
}

fn session_parameter(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("session="))
}

impl fmt::Debug for Sse2024 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sse2024").field("connections", &self.connections.lock().len()).finish_non_exhaustive()
    }
}
