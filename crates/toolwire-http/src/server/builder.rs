//! Describing an HTTP endpoint.

use std::{error::Error, fmt, future::Future, net::SocketAddr, sync::Arc};

use http::{Response, request::Parts};
use toolwire_server::Server;

use super::{
    Body, EventLog, Guard, HttpService,
    config::{Cors, HttpConfig, HttpLimits, Legacy},
    edge::Gate,
    pages::Pages,
    peer::FindPeer,
};

/// An HTTP endpoint being described; made by [`HttpService::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct HttpBuilder {
    server: Server,
    config: HttpConfig,
    event_log: Option<Arc<dyn EventLog>>,
    guard: Option<Arc<dyn Guard>>,
    peer: Option<FindPeer>,
    pages: Pages,
    /// A path that two pages were given.
    taken: Option<String>,
}

impl HttpBuilder {
    pub(crate) fn new(server: Server) -> Self {
        Self {
            server,
            config: HttpConfig::default(),
            event_log: None,
            guard: None,
            peer: None,
            pages: Pages::default(),
            taken: None,
        }
    }

    /// How clients of older protocol revisions are served. Default: with sessions.
    ///
    /// With [`Legacy::Off`] their requests are refused here, and their revisions are not named, whatever the server
    /// does elsewhere.
    pub fn legacy(mut self, legacy: Legacy) -> Self {
        self.config.legacy = legacy;
        self
    }

    /// Answers on this path alone. Without it every path is answered, and which ones arrive is up to the router.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.config.path = Some(path.into());
        self
    }

    /// The URL that clients use, when the endpoint is behind a proxy or has a name: requests may then name its
    /// host, and pages of its origin may send requests, but pages of the local machine no longer.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.config.public_url = Some(url.into());
        self
    }

    /// More hosts that requests may name, each as `host`, with any port, or as `host:port`.
    ///
    /// Always allowed are `localhost`, `127.0.0.1` and `[::1]`, and the very address a request came in on.
    pub fn allow_hosts<T: Into<String>>(mut self, hosts: impl IntoIterator<Item = T>) -> Self {
        self.config.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Lets requests name any host. Only for endpoints that something else protects from DNS rebinding.
    pub fn allow_any_host(mut self) -> Self {
        self.config.any_host = true;
        self
    }

    /// More origins of web pages that may send requests, each as `scheme://host` or `scheme://host:port`.
    pub fn allow_origins<T: Into<String>>(mut self, origins: impl IntoIterator<Item = T>) -> Self {
        self.config.origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Lets pages of any origin send requests. Only for endpoints that need no protection from them.
    pub fn allow_any_origin(mut self) -> Self {
        self.config.any_origin = true;
        self
    }

    /// Whether browsers may let pages of allowed origins read the responses. Default: off.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.config.cors = cors;
        self
    }

    /// Says that every connection comes from a proxy that is trusted, so that the address of a connection says nothing about
    /// the client: there is no limit on [connections per address](HttpLimits::connections_per_address), and requests have
    /// no [`PeerAddr`](super::PeerAddr) unless a layer puts one there. Default: connections come from clients.
    pub fn behind_proxy(mut self) -> Self {
        self.config.behind_proxy = true;
        self
    }

    /// Finds the address of a client in the head of a request, for an endpoint that another HTTP server serves, or behind a
    /// proxy that names the client in a header. Each address has its own share of what the server may hold. A request
    /// whose address is not found is refused with 500. The function finds the address of the connection, where that is known,
    /// as [`PeerAddr`](super::PeerAddr) among the extensions, and what it returns takes its place. Default:
    /// [`HttpService::serve`] knows the address, and another HTTP server is expected to add a
    /// [`PeerAddr`](super::PeerAddr). Requests without one are refused, except those that have a
    /// [`Principal`](super::Principal), those [behind a proxy](Self::behind_proxy), and all if the endpoint is
    /// [without addresses](Self::without_peer_addresses).
    ///
    /// ```
    /// use std::net::SocketAddr;
    ///
    /// use axum::extract::ConnectInfo;
    /// use toolwire_http::server::HttpService;
    /// use toolwire_server::Server;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("clock", "1.0").build()?;
    /// let mcp = HttpService::builder(server)
    ///     .peer_addr(|request| request.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0))
    ///     .build()?;
    /// let app = axum::Router::new()
    ///     .route_service("/mcp", mcp)
    ///     .into_make_service_with_connect_info::<SocketAddr>();
    /// # let _ = app;
    /// # Ok(())
    /// # }
    /// ```
    pub fn peer_addr(mut self, find: impl Fn(&Parts) -> Option<SocketAddr> + Send + Sync + 'static) -> Self {
        self.peer = Some(FindPeer::new(find));
        self
    }

    /// Serves requests although the address of their client is unknown, for an endpoint that another HTTP server serves and
    /// that no stranger can reach, or for tests that call the service. Requests without an address or a
    /// [`Principal`](super::Principal) then share the limits of the whole server, so that one client can use up the room of
    /// all others. Default: such requests are refused with 500, and an error that names the remedies is logged.
    pub fn without_peer_addresses(mut self) -> Self {
        self.config.without_peer_addresses = true;
        self
    }

    /// Lets in only those whom the guard knows. Unless they are set otherwise, [path](Self::path) and
    /// [public URL](Self::public_url) are those of the [resource](Guard::resource) that it guards.
    pub fn guard(mut self, guard: impl Guard) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Answers GET and HEAD at another path, on the same listener: a health check, numbers for a monitor. The page is
    /// given the head of the request.
    ///
    /// A page is for everybody who reaches the port: neither the [guard](Self::guard) nor the check of hosts and origins
    /// is asked, because a monitor has no token and calls the machine by its address. One that takes longer than ten
    /// seconds is answered with 503, and so are all while the server shuts down.
    ///
    /// ```
    /// use http::Response;
    /// use toolwire_http::server::{Body, HttpService};
    /// use toolwire_server::Server;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("clock", "1.0").build()?;
    /// let usage = server.clone();
    /// let service = HttpService::builder(server)
    ///     .path("/mcp")
    ///     .page("/healthz", |_| async { Response::new(Body::full("ok")) })
    ///     .page("/metrics", move |_| {
    ///         let requests = usage.usage().requests;
    ///         async move { Response::new(Body::full(format!("mcp_requests {requests}\n"))) }
    ///     })
    ///     .build()?;
    /// # let _ = service;
    /// # Ok(())
    /// # }
    /// ```
    pub fn page<F, Fut>(mut self, path: impl Into<String>, page: F) -> Self
    where
        F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        let path = path.into();
        if self.pages.add(path.clone(), page) {
            self.taken = Some(path);
        }
        self
    }

    /// Where the events of legacy streams are kept for clients that resume them. Default: in memory.
    pub fn event_log(mut self, log: impl EventLog) -> Self {
        self.event_log = Some(Arc::new(log));
        self
    }

    /// Serves clients that know nothing newer than 2024-11-05 as well, by HTTP+SSE: they open a stream at the
    /// path `stream`, usually `/sse`, and post to the path `messages`, which they are told as it stands here.
    #[cfg(feature = "sse2024")]
    pub fn sse2024(mut self, stream: impl Into<String>, messages: impl Into<String>) -> Self {
        self.config.sse2024 =
            Some(super::legacy::Sse2024Paths { stream: stream.into(), messages: messages.into() });
        self
    }

    /// Whether clients can open the path as a WebSocket as well, with one message per text frame and the
    /// subprotocol `mcp`. Both eras are spoken over it. Default: no.
    ///
    /// What serves the HTTP connections has to allow upgrades, as [`HttpService::serve`] and axum do.
    #[cfg(feature = "ws")]
    pub fn websocket(mut self, websocket: bool) -> Self {
        self.config.websocket = websocket;
        self
    }

    /// The limits.
    pub fn limits(mut self, limits: HttpLimits) -> Self {
        self.config.limits = limits;
        self
    }

    /// The endpoint.
    ///
    /// # Errors
    /// When a host, an origin or the public URL cannot be read, a path does not begin with a slash, or two things have
    /// the same path.
    pub fn build(mut self) -> Result<HttpService, HttpConfigError> {
        if let Some(guard) = &self.guard {
            let resource = guard.resource();
            let path = path_of(resource);
            self.config.path.get_or_insert_with(|| path.to_owned());
            self.config.public_url.get_or_insert_with(|| resource.to_owned());
        }
        if let Some(path) = self.config.path.as_ref().filter(|path| !path.starts_with('/')) {
            return Err(HttpConfigError(format!("the path {path:?} does not begin with a slash")));
        }
        self.check_pages()?;
        let gate = Gate::new(&self.config)
            .map_err(|entry| HttpConfigError(format!("{entry:?} is not a host, an origin or a URL")))?;
        let Self { server, config, event_log, guard, peer, pages, .. } = self;
        Ok(HttpService::assemble(server, config, gate, event_log, guard, peer, pages))
    }

    fn check_pages(&self) -> Result<(), HttpConfigError> {
        if let Some(path) = self.pages.paths().find(|path| !path.starts_with('/')) {
            return Err(HttpConfigError(format!("the path {path:?} does not begin with a slash")));
        }
        let is_endpoint = |path: &&str| {
            #[cfg(feature = "sse2024")]
            if self.config.sse2024.as_ref().is_some_and(|paths| paths.has(path)) {
                return true;
            }
            self.config.path.as_deref() == Some(*path)
        };
        match self.taken.as_deref().or_else(|| self.pages.paths().find(is_endpoint)) {
            Some(path) => Err(HttpConfigError(format!("the path {path:?} is used twice"))),
            None => Ok(()),
        }
    }
}

/// The path of a URL.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
}

/// A setting of an HTTP endpoint that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfigError(String);

impl fmt::Display for HttpConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for HttpConfigError {}
