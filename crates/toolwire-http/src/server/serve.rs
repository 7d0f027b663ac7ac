//! Listening: from a socket to the service, with limits, and to an orderly end.

use std::{
    fmt,
    future::{Future, IntoFuture, pending},
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};
use toolwire_server::Server;

use super::{
    HttpService,
    connection::{Connection, Http},
    graceful::Shutdown,
};

/// How long to wait after a connection could not be accepted, which is mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long it may take to say goodbye at WebSockets, after requests that did not finish in time were stopped.
#[cfg(feature = "ws")]
const GOODBYE_TIME: Duration = Duration::from_secs(2);

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
    /// their last message, nothing new is taken, and running requests may finish within the limit `drain_timeout`.
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
        let mut acceptor = Acceptor {
            room: Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS))),
            http: Arc::new(Http::new(limits)),
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
        let closing = acceptor.accept_until(end, false).await;
        server.shutdown();
        acceptor.drain(closing).await;
        Ok(())
    }
}

/// Where connections come in.
struct Acceptor {
    service: HttpService,
    listener: TcpListener,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
    http: Arc<Http>,
    /// Room for connections.
    room: Arc<Semaphore>,
    connections: JoinSet<()>,
}

impl Acceptor {
    /// Lets connections in until `end`, and gives what is needed to close them.
    async fn accept_until(&mut self, end: impl Future<Output = ()> + Send, late: bool) -> Shutdown {
        let shutdown = Shutdown::new();
        let mut end = pin!(end);
        loop {
            let (stream, permit) = tokio::select! {
                biased;
                () = &mut end => return shutdown,
                Some(_) = self.connections.join_next() => continue,
                accepted = accept(&self.listener, &self.room) => accepted,
            };
            let connection = Connection {
                service: self.service.clone(),
                http: Arc::clone(&self.http),
                shutdown: shutdown.signal(),
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
    async fn drain(mut self, closing: Shutdown) {
        let service = self.service.clone();
        let limit = service.shared().server.limits().drain_timeout;
        let returning = async {
            let late = self.accept_until(service.shared().legacy.reconnects.all_back(), true).await;
            let Self { listener, connections, .. } = self;
            drop(listener);
            late.shut_down().await;
            connections
        };
        let closed = timeout(limit, async { tokio::join!(closing.shut_down(), returning) });
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
