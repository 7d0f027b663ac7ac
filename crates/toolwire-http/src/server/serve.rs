//! Listening: from a socket to the service, with limits, and to an orderly end.

use std::{
    fmt,
    future::{Future, IntoFuture, pending},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use http::Request;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};
use toolwire_server::Server;

use super::{
    HttpLimits, HttpService,
    closing::{Closing, Told},
    io::{ConnectionClock, Watched},
    service::Late,
};

/// How long to wait after a connection could not be accepted, which is mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long it may take to say goodbye at WebSockets, after requests that did not finish in time were stopped.
#[cfg(feature = "ws")]
const GOODBYE_TIME: Duration = Duration::from_secs(2);
/// What the HTTP implementation needs at least to read headers.
const MIN_HEADER_BYTES: usize = 8 * 1024;
/// What an HTTP/2 connection begins with, and no request of HTTP/1 does.
const HTTP2: &[u8; 4] = b"PRI ";
/// How long to wait for more of a first word that came in pieces.
const FIRST_WORD_PAUSE: Duration = Duration::from_millis(5);
/// How often an HTTP/2 connection is asked whether its peer is still there.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Serves `server` over HTTP at the path `/mcp` of an address, until [`Server::shutdown`].
///
/// For more choices see [`HttpService::builder`] and [`HttpService::serve`].
///
/// ```no_run
/// use toolwire_http::server::serve_http;
/// use toolwire_server::{Server, tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build()?;
/// serve_http(server, "127.0.0.1:3000").await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the address cannot be listened on.
pub async fn serve_http(server: Server, address: impl ToSocketAddrs) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let service = HttpService::builder(server).path("/mcp").build().map_err(io::Error::other)?;
    service.serve(listener).await
}

impl HttpService {
    /// Serves the connections of a listener, HTTP/1.1 and HTTP/2, until [`Server::shutdown`].
    pub fn serve(self, listener: TcpListener) -> Serve {
        Serve {
            service: self,
            listener,
            shutdown: Box::pin(pending()),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

/// A listener being served: await it.
#[must_use = "nothing is served until this is awaited"]
pub struct Serve {
    service: HttpService,
    listener: TcpListener,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Serve {
    /// Ends in an orderly way when `signal` resolves: [`Server::shutdown`] is called, so that listen streams get
    /// their last message, nothing new is taken, and running requests may finish within the limit `drain_time`.
    pub fn with_graceful_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Box::pin(signal);
        self
    }

    #[cfg(feature = "tls")]
    pub(crate) fn with_acceptor(mut self, acceptor: tokio_rustls::TlsAcceptor) -> Self {
        self.tls = Some(acceptor);
        self
    }

    async fn run(self) -> io::Result<()> {
        let server = self.service.shared().server.clone();
        let limits = &self.service.shared().config.limits;
        let mut door = Door {
            room: Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS))),
            http: Http::new(limits),
            connections: JoinSet::new(),
            service: self.service,
            listener: self.listener,
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        let (signal, ended) = (self.shutdown, server.until_shutdown());
        let end = async {
            tokio::select! {
                () = signal => {}
                () = ended => {}
            }
        };
        let closing = door.accept_until(end, false).await;
        server.shutdown();
        door.drain(closing).await;
        Ok(())
    }
}

/// Where connections come in.
struct Door {
    service: HttpService,
    listener: TcpListener,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
    http: Http,
    /// Room for connections.
    room: Arc<Semaphore>,
    connections: JoinSet<()>,
}

impl Door {
    /// Lets connections in until `end`, and gives what is needed to close them.
    async fn accept_until(&mut self, end: impl Future<Output = ()> + Send, late: bool) -> Closing {
        let closing = Closing::new();
        let mut end = pin!(end);
        loop {
            let (stream, permit) = tokio::select! {
                biased;
                () = &mut end => return closing,
                Some(_) = self.connections.join_next() => continue,
                accepted = accept(&self.listener, &self.room) => accepted,
            };
            let connection = Connection {
                service: self.service.clone(),
                http: self.http.clone(),
                told: closing.told(),
                late,
                _permit: permit,
            };
            #[cfg(feature = "tls")]
            if let Some(tls) = self.tls.clone() {
                self.connections.spawn(connection.run_tls(tls, stream));
                continue;
            }
            self.connections.spawn(connection.run_plain(stream));
        }
    }

    /// Lets everything that goes on come to its end, within its time. Whoever was sent away may come back for it, and
    /// nobody else is let in.
    async fn drain(mut self, closing: Closing) {
        let service = self.service.clone();
        let limit = service.shared().server.limits().drain_time;
        let returning = async {
            let late = self.accept_until(service.shared().legacy.away.all_back(), true).await;
            let Self { listener, connections, .. } = self;
            drop(listener);
            late.close().await;
            connections
        };
        let closed = timeout(limit, async { tokio::join!(closing.close(), returning) });
        #[cfg(feature = "ws")]
        let (closed, websockets) =
            tokio::join!(closed, timeout(limit + GOODBYE_TIME, service.shared().websockets_closed()));
        #[cfg(not(feature = "ws"))]
        let (closed, websockets) = (closed.await, Ok::<(), ()>(()));
        if closed.is_err() || websockets.is_err() {
            tracing::warn!("some connections did not end in time and were closed");
        }
    }
}

impl IntoFuture for Serve {
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Serve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("service", &self.service)
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// Waits for room, then for a connection.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so there always is a permit in the end.
    let permit = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// How connections are served, in both versions of HTTP.
///
/// hyper-util tells the versions apart as well, but it takes the first bytes out of the connection to do so. With that
/// a GET stream took 21.5 KiB, and takes 16.5 now.
#[derive(Clone)]
struct Http {
    one: http1::Builder,
    two: http2::Builder<TokioExecutor>,
}

impl Http {
    fn new(limits: &HttpLimits) -> Self {
        let mut one = http1::Builder::new();
        one.header_read_timeout(limits.header_time)
            .max_headers(limits.headers)
            .max_buf_size(limits.header_bytes.max(MIN_HEADER_BYTES));
        let mut two = http2::Builder::new(TokioExecutor::new());
        two.timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(limits.requests_per_connection);
        Self { one, two }
    }
}

/// Which of them a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Http1,
    Http2,
}

impl Spoken {
    /// What the first bytes say, if they say it already.
    fn by(first: &[u8]) -> Option<Self> {
        match first {
            first if first.starts_with(HTTP2) => Some(Self::Http2),
            first if HTTP2.starts_with(first) && !first.is_empty() => None,
            _ => Some(Self::Http1),
        }
    }

    /// Looks at what a client sends first, and leaves it there.
    async fn on(stream: &TcpStream) -> io::Result<Self> {
        let mut first = [0; HTTP2.len()];
        loop {
            let seen = stream.peek(&mut first).await?;
            match Self::by(first.get(..seen).unwrap_or_default()) {
                Some(spoken) => return Ok(spoken),
                None => sleep(FIRST_WORD_PAUSE).await,
            }
        }
    }
}

/// One connection, before it is known what it speaks.
struct Connection {
    service: HttpService,
    http: Http,
    told: Told,
    /// Whether it came after the end had begun.
    late: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    async fn run_plain(self, stream: TcpStream) {
        // Answers are small and complete; waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr().ok();
        let limit = self.service.shared().config.limits.header_time;
        match timeout(limit, Spoken::on(&stream)).await {
            Ok(Ok(spoken)) => self.run(stream, local, spoken).await,
            Ok(Err(error)) => tracing::debug!(%error, "a connection ended before it began"),
            Err(_) => tracing::debug!("a client connected and said nothing"),
        }
    }

    #[cfg(feature = "tls")]
    async fn run_tls(self, tls: tokio_rustls::TlsAcceptor, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr().ok();
        let limit = self.service.shared().config.limits.header_time;
        match timeout(limit, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                self.run(stream, local, if is_http2 { Spoken::Http2 } else { Spoken::Http1 }).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn run<S>(self, stream: S, local: Option<SocketAddr>, spoken: Spoken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { service, mut http, mut told, late, _permit } = self;
        let limits = &service.shared().config.limits;
        let stream = TokioIo::new(Watched::new(stream, limits.header_time, limits.write_time));
        let local = local.map(|address| address.ip());
        let service = service_fn(move |mut request: Request<Incoming>| {
            if late {
                request.extensions_mut().insert(Late);
            }
            service.call_at(local, request)
        });
        let ended = match spoken {
            Spoken::Http1 => {
                http.one.timer(ConnectionClock::default());
                let mut connection = pin!(http.one.serve_connection(stream, service).with_upgrades());
                tokio::select! {
                    biased;
                    ended = &mut connection => ended,
                    () = told.closing() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
            Spoken::Http2 => {
                let mut connection = pin!(http.two.serve_connection(stream, service));
                tokio::select! {
                    biased;
                    ended = &mut connection => ended,
                    () = told.closing() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_version() {
        let cases: [(&[u8], Option<Spoken>); 8] = [
            (b"PRI ", Some(Spoken::Http2)),
            (b"PRI * HTTP/2.0", Some(Spoken::Http2)),
            (b"P", None),
            (b"PRI", None),
            (b"POST", Some(Spoken::Http1)),
            (b"GET ", Some(Spoken::Http1)),
            (b"\x16\x03\x01", Some(Spoken::Http1)),
            (b"", Some(Spoken::Http1)),
        ];
        for (first, expected) in cases {
            assert_eq!(Spoken::by(first), expected, "{first:?}");
        }
    }
}
