//! One connection: which version of HTTP it speaks, how long it may be silent, and how it comes to its end.

mod exchange;

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use http::Request;
use hyper::{
    body::Incoming,
    server::conn::{
        http1::{self, UpgradeableConnection},
        http2,
    },
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Notify,
    time::timeout,
};
use toolwire_server::engine::ConnectionPermit;

use self::exchange::{Exchanges, StreamTasks};
use super::{
    HttpLimits, HttpService, PeerAddr,
    body::PIECE_BYTES,
    graceful::ShutdownSignal,
    io::{Activity, HttpVersion, Patience, Replay, TimedIo},
    peer::AddressShare,
    poll_on_wake::PollOnWake,
};

/// What the HTTP implementation needs at least to read headers.
const MIN_HEADER_BYTES: usize = 8 * 1024;
/// How often an HTTP/2 connection is asked whether its peer is still there.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// How connections are served.
///
/// hyper-util tells the versions apart as well, but with that a GET stream took 5 KiB more.
pub(crate) struct Http {
    one: http1::Builder,
    header_bytes: u32,
    streams: u32,
}

impl Http {
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        let mut one = http1::Builder::new();
        // Activity does what its clock would do.
        one.header_read_timeout(None)
            .max_headers(limits.headers)
            .max_buf_size(limits.header_bytes.max(MIN_HEADER_BYTES));
        let header_bytes = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
        Self { one, header_bytes, streams: limits.requests_per_connection }
    }

    /// HTTP/2 for one connection, which owns the tasks of its streams.
    fn two(&self, tasks: StreamTasks) -> http2::Builder<StreamTasks> {
        let mut two = http2::Builder::new(tasks);
        two.timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .max_header_list_size(self.header_bytes)
            .max_concurrent_streams(self.streams)
            .max_send_buf_size(PIECE_BYTES);
        two
    }
}

/// One connection, before it is known what it speaks.
pub(crate) struct Connection {
    pub(crate) service: HttpService,
    pub(crate) http: Arc<Http>,
    pub(crate) shutdown: ShutdownSignal,
    /// Whether it came after the end had begun.
    pub(crate) late: bool,
    pub(crate) peer: Peer,
    pub(crate) _permit: Option<ConnectionPermit>,
}

/// Who is at the other side.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Where requests are said to come from, if that says anything.
    pub(crate) address: Option<PeerAddr>,
    pub(crate) _share: Option<AddressShare>,
}

impl Connection {
    pub(crate) async fn run_plain(self, stream: TcpStream) {
        // Answers are small and complete; waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr().ok();
        self.open(stream, local, None).await;
    }

    #[cfg(feature = "tls")]
    pub(crate) async fn run_tls(mut self, tls: tokio_rustls::TlsAcceptor, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr().ok();
        let Some(stream) = self.begin(tls.accept(stream)).await else { return };
        let agreed = stream.get_ref().1.alpn_protocol().map(|name| match name {
            b"h2" => HttpVersion::Http2,
            _ => HttpVersion::Http1,
        });
        self.open(stream, local, agreed).await;
    }

    /// Finds out which version of HTTP the client speaks. If TLS has `agreed` on one, it has to be that.
    pub(crate) async fn open<S>(mut self, stream: S, local: Option<SocketAddr>, agreed: Option<HttpVersion>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut stream = Replay::new(stream);
        let Some(version) = self.begin(stream.version()).await else { return };
        if agreed.is_some_and(|agreed| agreed != version) {
            tracing::debug!(?version, "a client does not speak what TLS has agreed on");
            return;
        }
        self.run(stream, local, version).await;
    }

    /// Waits for what comes before the first request: in time, and not beyond the end of the server.
    async fn begin<T>(&mut self, beginning: impl Future<Output = io::Result<T>>) -> Option<T> {
        let limit = self.service.shared().config.limits.header_timeout;
        tokio::select! {
            biased;
            begun = timeout(limit, beginning) => match begun {
                Ok(Ok(begun)) => return Some(begun),
                Ok(Err(error)) => tracing::debug!(%error, "a connection ended before its first request"),
                Err(_) => tracing::debug!("a client connected and did not send a request in time"),
            },
            () = self.shutdown.received() => {}
        }
        None
    }

    async fn run<S>(self, stream: S, local: Option<SocketAddr>, version: HttpVersion)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { service, http, mut shutdown, late, peer, _permit } = self;
        let limits = &service.shared().config.limits;
        let (patience, activity) =
            (Patience { idle: limits.header_timeout, write: limits.write_timeout }, Activity::new());
        let stream = TokioIo::new(TimedIo::new(stream, activity.clone(), limits.write_timeout));
        let exchanges = Exchanges {
            service,
            local: local.map(|address| address.ip()),
            peer: peer.address,
            late,
            activity: activity.clone(),
        };
        let closing = shutdown.received();
        let ended = match version {
            HttpVersion::Http1 => {
                let service = service_fn(move |request: Request<Incoming>| exchanges.one(request));
                let connection = pin!(http.one.serve_connection(stream, service).with_upgrades());
                let idle = pin!(activity.idle(patience));
                tokio::select! {
                    biased;
                    ended = until_closed(connection, UpgradeableConnection::graceful_shutdown, closing) => ended,
                    () = PollOnWake::new(idle) => {
                        tracing::debug!("a connection had no request for too long");
                        return;
                    }
                }
            }
            // Boxed, because it is large, and every connection would have room for it.
            HttpVersion::Http2 => Box::pin(serve_http2(&http, stream, exchanges, patience, closing)).await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
    }
}

/// Serves an HTTP/2 connection to its end.
///
/// One that is idle is told so, since a request may be on its way, and may then finish what it still has to send.
async fn serve_http2<S>(
    http: &Http,
    stream: TokioIo<TimedIo<S>>,
    exchanges: Exchanges,
    patience: Patience,
    closing: impl Future<Output = ()>,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = exchanges.activity.clone();
    let tasks = StreamTasks::new(activity.clone());
    let _owner = tasks.owner();
    let service = service_fn(move |request: Request<Incoming>| exchanges.two(request));
    let connection = pin!(http.two(tasks).serve_connection(stream, service));
    let is_idle = Notify::new();
    let closing = async {
        tokio::select! {
            () = closing => {}
            () = is_idle.notified() => tracing::debug!("an HTTP/2 connection had no request for too long"),
        }
    };
    let idle = pin!(async {
        activity.idle(patience).await;
        is_idle.notify_one();
        activity.idle(Patience { idle: patience.idle.saturating_add(patience.write), ..patience }).await;
    });
    tokio::select! {
        biased;
        ended = until_closed(connection, http2::Connection::graceful_shutdown, closing) => ended,
        () = PollOnWake::new(idle) => Ok(()),
    }
}

/// Serves a connection to its end, which `shut` begins in an orderly way when `closing` resolves.
async fn until_closed<C>(
    mut connection: Pin<&mut C>,
    shut: fn(Pin<&mut C>),
    closing: impl Future<Output = ()>,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    let closing = pin!(closing);
    let mut closing = PollOnWake::new(closing);
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => return ended,
            () = &mut closing, if !is_closing => {
                is_closing = true;
                shut(connection.as_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests;
