//! Listening: from an address to the service, and to an orderly end.

mod accept;
mod handle;

#[cfg(feature = "ws")]
use std::time::Duration;
use std::{
    fmt,
    future::{Future, IntoFuture, pending},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
};

use tokio::{
    net::{TcpListener, ToSocketAddrs, lookup_host},
    sync::oneshot,
};
use toolwire_server::Server;

use self::accept::Accepting;
pub use self::handle::Serving;
use super::HttpService;

/// The path of an endpoint that nobody has given another.
const PATH: &str = "/mcp";
/// How long it may take to say goodbye at WebSockets, after requests that did not finish in time were stopped.
#[cfg(feature = "ws")]
const GOODBYE_TIME: Duration = Duration::from_secs(2);

/// Serves `server` over HTTP at the path `/mcp` of an address, until [`Server::shutdown`].
///
/// [`HttpService::bind`] does the same and tells the address before it serves; for more choices see
/// [`HttpService::builder`] and [`HttpService::serve`].
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
    HttpService::bind(server, address).await?.await
}

impl HttpService {
    /// Listens on an address, and is ready to serve `server` there at the path `/mcp`: clients can connect from now on, and
    /// are served when the result is awaited or [spawned](Serve::spawn).
    ///
    /// ```
    /// use toolwire_http::server::HttpService;
    /// use toolwire_server::{Server, tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build()?;
    /// // With the port 0 the system finds one that is free.
    /// let serving = HttpService::bind(server, "127.0.0.1:0").await?.spawn();
    /// println!("listening at {}", serving.url());
    /// serving.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(server: Server, address: impl ToSocketAddrs) -> io::Result<Serve> {
        let addresses: Vec<SocketAddr> = lookup_host(address).await?.collect();
        let listener = TcpListener::bind(&*addresses).await.map_err(|error| explain(&addresses, &error))?;
        let service = Self::builder(server).path(PATH).build().map_err(io::Error::other)?;
        Ok(service.serve(listener))
    }

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

/// Returns the error with the addresses that were tried.
fn explain(addresses: &[SocketAddr], error: &io::Error) -> io::Error {
    let tried: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "; end the program that uses it, or choose another port",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot listen on {}: {error}{remedy}", tried.join(", ")))
}

/// An endpoint that listens and is ready to be served: await it, or [`spawn`](Self::spawn) it.
#[must_use = "nothing is served until this is awaited or spawned"]
pub struct Serve {
    service: HttpService,
    listener: TcpListener,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Serve {
    /// Ends in an orderly way when `signal` resolves: [`Server::shutdown`] is called, so that listen streams get
    /// their last message, nothing new is taken, and running requests may finish within the limit `drain_timeout`. So may
    /// tasks; those that still run then are given back to their store, as by [`Server::end_tasks`].
    pub fn with_graceful_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Box::pin(signal);
        self
    }

    /// The address that is listened on, with the port that the system has chosen if none was given.
    pub fn local_addr(&self) -> SocketAddr {
        // A socket that listens has an address; nobody could connect to what is given otherwise.
        self.listener.local_addr().unwrap_or_else(|_| (Ipv4Addr::UNSPECIFIED, 0).into())
    }

    /// The URL by which clients reach the endpoint: the [public one](super::HttpBuilder::public_url), or else the one on this
    /// machine.
    pub fn url(&self) -> String {
        let config = &self.service.shared().config;
        if let Some(url) = &config.public_url {
            return url.clone();
        }
        #[cfg(feature = "tls")]
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        #[cfg(not(feature = "tls"))]
        let scheme = "http";
        let address = reachable(self.local_addr());
        format!("{scheme}://{address}{}", config.path.as_deref().unwrap_or("/"))
    }

    /// Serves in a task of its own.
    ///
    /// # Panics
    /// When there is no tokio runtime.
    pub fn spawn(mut self) -> Serving {
        let (address, url) = (self.local_addr(), self.url());
        let (stop, stopped) = oneshot::channel::<()>();
        let signal = std::mem::replace(&mut self.shutdown, Box::pin(pending()));
        let serve = self.with_graceful_shutdown(async {
            tokio::select! {
                () = signal => {}
                // Whether it is told or dropped.
                _ = stopped => {}
            }
        });
        Serving { address, url, stop: Some(stop), task: Some(tokio::spawn(serve.run())) }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn with_acceptor(mut self, acceptor: tokio_rustls::TlsAcceptor) -> Self {
        self.tls = Some(acceptor);
        self
    }

    async fn run(mut self) -> io::Result<()> {
        let server = self.service.shared().server.clone();
        let tasks = server.begin_tasks();
        let signal = std::mem::replace(&mut self.shutdown, Box::pin(pending()));
        let mut accepting = Accepting::new(self);
        let ended = server.until_shutdown();
        let end = async {
            tokio::select! {
                () = signal => {}
                () = ended => {}
            }
        };
        let shutdown = accepting.accept_until(end, false).await;
        server.shutdown();
        accepting.drain(shutdown).await;
        // Only now, since calls that were under way may have made some.
        tasks.ended(false).await;
        Ok(())
    }
}

/// An address that can be connected to, where the one that is listened on stands for all of this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
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
