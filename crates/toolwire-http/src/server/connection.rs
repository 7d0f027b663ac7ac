//! One connection: which version of HTTP it speaks, how long it may be silent, and how it comes to its end.

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
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::{sleep, timeout},
};

use super::{
    HttpLimits, HttpService,
    closing::Told,
    io::{Idle, Watched},
    late::Late,
    seldom::Seldom,
};

/// What the HTTP implementation needs at least to read headers.
const MIN_HEADER_BYTES: usize = 8 * 1024;
/// What an HTTP/2 connection begins with, and no request of HTTP/1 does.
const HTTP2: &[u8; 4] = b"PRI ";
/// How long to wait for more of a first word that came in pieces.
const FIRST_WORD_PAUSE: Duration = Duration::from_millis(5);
/// How often an HTTP/2 connection is asked whether its peer is still there.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// How connections are served, in both versions of HTTP.
///
/// hyper-util tells the versions apart as well, but it takes the first bytes out of the connection to do so. With that
/// a GET stream took 5 KiB more.
pub(crate) struct Http {
    one: http1::Builder,
    two: http2::Builder<TokioExecutor>,
}

impl Http {
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        let header_bytes = limits.header_bytes.max(MIN_HEADER_BYTES);
        let mut one = http1::Builder::new();
        // Idle does what its clock would do.
        one.header_read_timeout(None).max_headers(limits.headers).max_buf_size(header_bytes);
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
pub(crate) enum Spoken {
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
pub(crate) struct Connection {
    pub(crate) service: HttpService,
    pub(crate) http: Arc<Http>,
    pub(crate) told: Told,
    /// Whether it came after the end had begun.
    pub(crate) late: bool,
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    pub(crate) async fn run_plain(self, stream: TcpStream) {
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
    pub(crate) async fn run_tls(self, tls: tokio_rustls::TlsAcceptor, stream: TcpStream) {
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

    pub(crate) async fn run<S>(self, stream: S, local: Option<SocketAddr>, spoken: Spoken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { service, http, mut told, late, _permit } = self;
        let limits = &service.shared().config.limits;
        let (header_time, idle) = (limits.header_time, Idle::new());
        let stream = TokioIo::new(Watched::new(stream, idle.clone(), header_time, limits.write_time));
        let local = local.map(|address| address.ip());
        let watch = idle.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            if late {
                request.extensions_mut().insert(Late);
            }
            service.call_at(local, Some(watch.serving()), request)
        });
        let closing = told.closing();
        let ended = match spoken {
            Spoken::Http1 => {
                let connection = pin!(http.one.serve_connection(stream, service).with_upgrades());
                let idle = pin!(idle.for_long(header_time));
                tokio::select! {
                    biased;
                    ended = until_closed(connection, UpgradeableConnection::graceful_shutdown, closing) => ended,
                    () = Seldom::new(idle) => {
                        tracing::debug!("a connection had no request for too long");
                        return;
                    }
                }
            }
            Spoken::Http2 => {
                // Boxed, because it is large, and every connection would have room for it.
                let mut connection = Box::pin(http.two.serve_connection(stream, service));
                until_closed(connection.as_mut(), http2::Connection::graceful_shutdown, closing).await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
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
    let mut closing = Seldom::new(closing);
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
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::Instant,
    };
    use toolwire_server::{Server, tool};

    use super::*;
    use crate::server::closing::Closing;

    const BODY: &str = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{},"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    );

    fn call() -> String {
        format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: slow\r\n\
             Content-Length: {}\r\n\r\n{BODY}",
            BODY.len(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn it_waits_for_answers_and_not_for_requests() {
        let slow = tool("slow", || async {
            sleep(Duration::from_secs(40)).await;
            "done"
        });
        let service = HttpService::new(Server::builder("slow", "1.0").tool(slow).build().unwrap());
        let http = Arc::new(Http::new(&HttpLimits::default()));
        let closing = Closing::new();
        let connection = Connection { service, http, told: closing.told(), late: false, _permit: None };
        let (mut peer, ours) = duplex(4096);
        let serving = tokio::spawn(connection.run(ours, None, Spoken::Http1));
        let start = Instant::now();
        let mut said = Vec::new();
        for (round, seconds) in [(1, 40), (2, 100)] {
            // The answer takes longer than the next request may.
            peer.write_all(call().as_bytes()).await.unwrap();
            while said.windows(4).filter(|word| word == b"done").count() < round {
                peer.read_buf(&mut said).await.unwrap();
            }
            assert_eq!(start.elapsed().as_secs(), seconds);
            sleep(Duration::from_secs(20)).await;
        }
        // A beginning is no request.
        peer.write_all(b"POST / HTTP/1.1\r\nHost: loc").await.unwrap();
        let all = said.len();
        peer.read_to_end(&mut said).await.unwrap();
        assert_eq!((start.elapsed().as_secs(), said.len()), (130, all));
        serving.await.unwrap();
    }

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
