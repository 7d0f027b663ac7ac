//! The endpoint as a service: from an HTTP request to whoever answers it.

mod post;

use std::{
    convert::Infallible,
    fmt,
    future::{Future, ready},
    net::IpAddr,
    pin::{Pin, pin},
    sync::{Arc, Once, OnceLock},
    task::{Context, Poll},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use toolwire_protocol::RpcError;
use toolwire_server::{
    CallerKey, Extensions, PrincipalKey, Server,
    engine::{EndsAt, TaskPlace},
};
use toolwire_transport::ledger::{Account, Ledger, LimitReached};
use tower_service::Service;

use super::{
    Body, EventLog, Guard, HttpBuilder, PeerAddr, Principal,
    config::{Cors, HttpConfig, Legacy},
    cors,
    drain::{comes_back, is_late, leaving},
    edge::{Gate, Head},
    entry::{Entering, Entry, conclude},
    guard,
    legacy::LegacyEndpoint,
    pages::Pages,
    peer::FindPeer,
    read::BoxError,
    response,
};

/// A server as an HTTP service, for any router and any HTTP server that takes `tower` services.
///
/// Clones are the same endpoint. It serves every protocol revision that the server serves, and it is safe by
/// default: requests must name a host that is known to be this server's, and requests by web pages must come
/// from an origin that is allowed.
///
/// ```
/// use std::net::SocketAddr;
///
/// use axum::extract::ConnectInfo;
/// use toolwire_http::server::HttpService;
/// use toolwire_server::{Server, tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build()?;
/// let mcp = HttpService::builder(server)
///     .public_url("https://clock.example/mcp")
///     // Each client has its own share of what the server may hold.
///     .peer_addr(|request| request.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0))
///     .build()?;
/// let app = axum::Router::new().route_service("/mcp", mcp);
/// let app = app.into_make_service_with_connect_info::<SocketAddr>();
/// # let _ = app;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpService(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) server: Server,
    pub(crate) config: Arc<HttpConfig>,
    pub(crate) gate: Gate,
    pub(crate) legacy: LegacyEndpoint,
    guard: Option<Arc<dyn Guard>>,
    peer: Option<FindPeer>,
    /// Done once a request without a known address has been refused.
    nameless: Once,
    /// Set at the first request. While it is held, the end of another place where clients are served ends no task.
    tasks: OnceLock<TaskPlace>,
    pages: Pages,
    #[cfg(feature = "sse2024")]
    pub(crate) sse2024: super::legacy::Sse2024,
    #[cfg(feature = "ws")]
    websockets: super::upgrade::WebSockets,
}

impl HttpService {
    /// The endpoint of a server, with every setting at its default.
    ///
    /// It is ready to be [served](Self::serve). Another HTTP server has to give each request the address of its client as
    /// [`PeerAddr`]; [`HttpBuilder::peer_addr`] finds it for routers such as axum.
    pub fn new(server: Server) -> Self {
        Self::assemble(server, HttpConfig::default(), Gate::local(), None, None, None, Pages::default())
    }

    /// Starts to describe an endpoint.
    pub fn builder(server: Server) -> HttpBuilder {
        HttpBuilder::new(server)
    }

    pub(crate) fn assemble(
        server: Server,
        config: HttpConfig,
        gate: Gate,
        event_log: Option<Arc<dyn EventLog>>,
        guard: Option<Arc<dyn Guard>>,
        peer: Option<FindPeer>,
        pages: Pages,
    ) -> Self {
        let server = if config.legacy == Legacy::Off { server.modern_only() } else { server };
        // A router that this is mounted in says nothing when it begins to serve.
        server.start_tasks_soon();
        let config = Arc::new(config);
        Self(Arc::new(Shared {
            legacy: LegacyEndpoint::new(server.clone(), Arc::clone(&config), event_log),
            #[cfg(feature = "sse2024")]
            sse2024: super::legacy::Sse2024::new(server.clone(), config.limits.clone()),
            #[cfg(feature = "ws")]
            websockets: super::upgrade::WebSockets::new(&config.limits),
            gate,
            guard,
            peer,
            nameless: Once::new(),
            tasks: OnceLock::new(),
            pages,
            server,
            config,
        }))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService")
            .field("server", &self.0.server)
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for HttpService
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.call_at(None, request)
    }
}

impl HttpService {
    /// Serves a request that came in at the address `local`, where that is known.
    pub(crate) fn call_at<B>(
        &self,
        local: Option<IpAddr>,
        request: Request<B>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.0.tasks.get_or_init(|| self.0.server.begin_tasks());
        // Shared from the start: they are large, and would be copied from one future to the next.
        let (mut parts, body) = request.into_parts();
        if let Some(peer) = &self.0.peer
            && !peer.note(&mut parts)
        {
            return Box::pin(ready(Ok(unknown_peer())));
        }
        let (parts, shared) = (Arc::new(parts), Arc::clone(&self.0));
        Box::pin(async move { Ok(shared.handle(local, parts, body).await) })
    }
}

impl Shared {
    /// Waits until every WebSocket is closed, which outlive the connections that they were.
    #[cfg(feature = "ws")]
    pub(crate) async fn websockets_closed(&self) {
        self.websockets.all_closed().await;
    }

    async fn handle<B>(&self, local: Option<IpAddr>, mut parts: Arc<Parts>, body: B) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        if !self.pages.is_empty()
            && let Some(answering) = self.pages.answer(&parts)
        {
            return answering.await;
        }
        let mut body = pin!(body);
        if let Some(guard) = self.guard.as_deref() {
            let entry = match self.enter(guard, &mut parts, local) {
                Entering::Known(entry) => entry,
                Entering::Pending(admitting) => self.admitted(guard, &mut parts, admitting.await),
            };
            match entry {
                Entry::Open => {}
                Entry::Answered(response) => return *response,
                Entry::Denied(denied) => {
                    let response = Box::pin(self.turn_away(guard, &parts, body.as_mut(), *denied)).await;
                    return self.sent(&mut parts, response);
                }
            }
        }
        let head = Head::of(&parts.headers);
        if self.guard.is_none()
            && let Err(stopped) = self.gate.check(&parts, &head, local)
        {
            return stopped.response();
        }
        let mut response = if self.is_message(&parts) {
            self.post(&parts, &head, body.as_mut()).await
        } else {
            Box::pin(self.route(&parts, &head, body.as_mut())).await
        };
        // Asked for again instead of kept: a future of more than a kilobyte costs the allocator several hundred instructions.
        if let Some(guard) = self.guard.as_deref() {
            conclude(guard, &parts, &mut response);
        }
        self.sent(&mut parts, response)
    }

    /// What is done with every response to a request that the gate has let pass.
    #[inline]
    fn sent(&self, parts: &mut Arc<Parts>, mut response: Response<Body>) -> Response<Body> {
        self.charge(parts, &mut response);
        if self.config.cors == Cors::AllowedOrigins {
            cors::allow(parts.headers.get(header::ORIGIN).cloned(), &mut response);
        }
        response::complete(Arc::get_mut(parts).map(|parts| &mut parts.headers), &mut response);
        response
    }

    /// Charges an answer to the caller that has to take it. If there is no room for it, an error takes its place: what one
    /// caller does not take must not be what another is refused for.
    #[inline]
    fn charge(&self, parts: &Parts, response: &mut Response<Body>) {
        let weight = response.body().weight();
        if weight > response::LIGHT_BYTES {
            let caller = self.caller(parts).unwrap_or_else(|| self.server.ledger().clone());
            match caller.charge(Account::AnswerBytes, weight) {
                Ok(charge) => response.body_mut().keep_charge(charge),
                Err(reached) => {
                    self.legacy.take_back(response);
                    *response = no_room(response.body(), &reached);
                }
            }
        }
    }

    /// When the streams that a request opens end.
    fn ends_at(&self, parts: &Parts) -> Option<EndsAt> {
        guard::ends_at(parts.extensions.get::<Principal>(), self.guard.as_deref())
    }

    /// What handlers find out about a request that stays open.
    fn attach_open(&self, parts: Arc<Parts>) -> Extensions {
        let end = self.ends_at(&parts);
        let mut extensions = attach(parts);
        if let Some(end) = end {
            extensions.insert(end);
        }
        extensions
    }

    /// Whether this is a message to the endpoint, as most requests are.
    fn is_message(&self, parts: &Parts) -> bool {
        #[cfg(feature = "sse2024")]
        if self.config.sse2024.as_ref().is_some_and(|paths| paths.has(parts.uri.path())) {
            return false;
        }
        parts.method == Method::POST && self.is_here(parts)
    }

    fn is_here(&self, parts: &Parts) -> bool {
        self.config.path.as_ref().is_none_or(|path| parts.uri.path() == path)
    }

    /// Answers everything else.
    async fn route<B>(&self, parts: &Arc<Parts>, head: &Head<'_>, body: B) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        if is_late(parts) && !comes_back(parts) {
            return leaving(None);
        }
        if self.config.cors == Cors::AllowedOrigins && cors::is_preflight(&parts.method, &parts.headers) {
            return cors::preflight(&parts.headers);
        }
        #[cfg(feature = "sse2024")]
        if let Some(paths) = &self.config.sse2024
            && paths.has(parts.uri.path())
        {
            let Some(caller) = self.caller(parts) else {
                return self.refuse_nameless();
            };
            let end = self.ends_at(parts);
            return self.sse2024.handle(paths, &caller, Arc::clone(parts), end, body).await;
        }
        #[cfg(not(feature = "sse2024"))]
        drop(body);
        if !self.is_here(parts) {
            return response::empty(StatusCode::NOT_FOUND);
        }
        if self.caller(parts).is_none() {
            return self.refuse_nameless();
        }
        #[cfg(feature = "ws")]
        if self.config.websocket && super::upgrade::is_wanted(parts) {
            return self.websockets.accept(&self.server, Parts::clone(parts), self.ends_at(parts));
        }
        let principal = principal(parts);
        match parts.method {
            Method::GET if self.has_sessions(head) => self.legacy.get(head, parts, self.ends_at(parts)).await,
            Method::DELETE if self.has_sessions(head) => self.legacy.delete(head, principal),
            _ => self.not_allowed(parts, head),
        }
    }

    /// Whether a request without a body can be about a session.
    fn has_sessions(&self, head: &Head<'_>) -> bool {
        self.legacy.has_sessions(head)
    }

    fn not_allowed(&self, parts: &Parts, head: &Head<'_>) -> Response<Body> {
        let allowed = if self.has_sessions(head) { "GET, POST, DELETE" } else { "POST" };
        let error = RpcError::invalid_request(format!("{} is not used here", parts.method));
        let mut response = response::error(StatusCode::METHOD_NOT_ALLOWED, None, &error);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        response
    }

    /// Returns the ledger of the caller that a request is counted against: its principal, or else the address of its client.
    /// Without either it is the ledger of the server, if the endpoint was told to do without, and `None` otherwise.
    fn caller(&self, parts: &Parts) -> Option<Ledger> {
        match caller_key(parts) {
            Some(caller) => Some(self.server.caller_ledger(caller)),
            None if self.config.behind_proxy || self.config.without_peer_addresses => {
                Some(self.server.ledger().clone())
            }
            None => None,
        }
    }

    /// Refuses a request whose client is unknown: served, it could take the room of all others.
    #[cold]
    fn refuse_nameless(&self) -> Response<Body> {
        self.nameless.call_once(|| tracing::error!("{NAMELESS}"));
        response::error(StatusCode::INTERNAL_SERVER_ERROR, None, &RpcError::internal(NAMELESS))
    }
}

/// The error for requests that carry neither an address nor a principal.
const NAMELESS: &str = "the address of the client is unknown: the HTTP server that mounts this service has to tell it, as \
     HttpBuilder::peer_addr shows; HttpBuilder::without_peer_addresses does without";

/// Refuses a request that could be counted against nobody.
fn unknown_peer() -> Response<Body> {
    tracing::error!(
        "the function that was given to HttpBuilder::peer_addr does not find the address of a client"
    );
    let error = RpcError::internal("the server does not know where this request comes from");
    response::error(StatusCode::INTERNAL_SERVER_ERROR, None, &error)
}

fn no_room(body: &Body, reached: &LimitReached) -> Response<Body> {
    let error = response::no_room(body.ready(), reached);
    response::json(StatusCode::INTERNAL_SERVER_ERROR.as_u16(), error)
}

/// How much is attached to a request at most: itself, who sent it, and the stream of its answer.
const ATTACHED: usize = 3;

/// Makes the HTTP request available to handlers, as [`HttpRequest`](super::HttpRequest), and tells them who sent it.
pub(crate) fn attach(parts: Arc<Parts>) -> Extensions {
    let mut extensions = Extensions::with_capacity(ATTACHED);
    if let Some(principal) = parts.extensions.get::<Principal>() {
        extensions.insert(principal.clone());
    } else if let Some(peer) = parts.extensions.get::<PeerAddr>() {
        extensions.insert(peer.caller());
    }
    extensions.insert(parts);
    extensions
}

/// Whom a request is counted against, if that is known.
pub(crate) fn caller_key(parts: &Parts) -> Option<CallerKey> {
    let known = principal(parts).map(CallerKey::principal);
    known.or_else(|| parts.extensions.get::<PeerAddr>().map(|peer| peer.caller()))
}

fn principal(parts: &Parts) -> Option<PrincipalKey> {
    parts.extensions.get::<Principal>().map(Principal::key)
}
