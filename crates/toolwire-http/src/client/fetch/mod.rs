//! Single requests over HTTP, for what belongs to MCP without being MCP: metadata, tokens, a look at an address.
//!
//! It shares connections, proxies, TLS and errors with the client. Every request says how large its answer may be,
//! how long it may take, and which redirects are followed. What it deliberately does not do: keep cookies, send
//! referrers, decompress, or follow redirects to other origins.
//!
//! ```no_run
//! use toolwire_http::client::fetch::{Fetch, Fetcher};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let fetcher = Fetcher::new();
//! let request = Fetch::get("https://mcp.example/.well-known/oauth-protected-resource").redirects(3);
//! let response = fetcher.fetch(request).await?;
//! println!("{}: {} bytes", response.status, response.body.len());
//! # Ok(())
//! # }
//! ```

mod request;

#[cfg(feature = "client-tls")]
use std::sync::{Arc, OnceLock};
use std::{fmt, net::IpAddr};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::time::{Instant, timeout_at};
use url::Url;

#[cfg(feature = "client-tls")]
use super::net::{Roots, TlsClient};
use super::{
    builder::{AGENT, HttpError},
    endpoint::{redirect, shown},
    net::{Body, Bounds, Dialer, Kind, NetError, Origin, Pool, Proxy, Response, Shown, Target, Versions},
    settings::CONNECT_TIMEOUT,
};

pub use super::net::{CertificateFault, FetchErrorKind};
pub use request::Fetch;

/// The largest head of an answer, in bytes.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Makes single requests. Clones share their settings; each request has a connection of its own.
#[derive(Clone, Debug)]
pub struct Fetcher {
    proxy: Proxy,
    #[cfg(feature = "client-tls")]
    roots: Roots,
    /// Made when it is needed for the first time: reading what the system trusts takes a while.
    #[cfg(feature = "client-tls")]
    tls: Arc<OnceLock<TlsClient>>,
}

/// What came back.
#[derive(Clone)]
#[non_exhaustive]
pub struct Fetched {
    /// The status, whatever it is.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The body, or as much of it as was asked for.
    pub body: Bytes,
    /// Where the answer came from, after redirects. Credentials and query are left out.
    pub url: String,
    /// The addresses that were connected to; none if a proxy did that.
    pub reached: Vec<IpAddr>,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and body are where secrets are given out.
        f.debug_struct("Fetched")
            .field("status", &self.status)
            .field("url", &self.url)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// A request that has no answer.
#[derive(Debug)]
pub struct FetchError {
    kind: FetchErrorKind,
    message: String,
}

impl Fetcher {
    /// Goes through the proxies of the environment, and trusts what the system trusts.
    pub fn new() -> Self {
        Self {
            proxy: Proxy::Environment,
            #[cfg(feature = "client-tls")]
            roots: Roots::default(),
            #[cfg(feature = "client-tls")]
            tls: Arc::default(),
        }
    }

    /// Has the proxy and the certificates of a client.
    pub(super) fn like(proxy: Proxy, #[cfg(feature = "client-tls")] roots: Roots) -> Self {
        Self {
            proxy,
            #[cfg(feature = "client-tls")]
            roots,
            #[cfg(feature = "client-tls")]
            tls: Arc::default(),
        }
    }

    /// Goes through this proxy instead of those of the environment.
    ///
    /// # Errors
    /// When that is not the address of a proxy.
    pub fn proxy(mut self, url: &str) -> Result<Self, HttpError> {
        self.proxy = Proxy::at(url).ok_or_else(HttpError::not_a_proxy)?;
        Ok(self)
    }

    /// Uses no proxy, whatever the environment says.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Proxy::None;
        self
    }

    /// Trusts these certificates, in PEM, besides those that the system trusts.
    ///
    /// # Errors
    /// When they are not in PEM.
    #[cfg(feature = "client-tls")]
    pub fn root_certificates(mut self, pem: &[u8]) -> Result<Self, HttpError> {
        if !self.roots.add(pem) {
            return Err(HttpError::new("the root certificates are not in PEM"));
        }
        // What was made before does not know them.
        self.tls = Arc::default();
        Ok(self)
    }

    /// Sends a request, and reads as much of its answer as it asks for. A status that is not a success is an answer, too.
    pub async fn fetch(&self, request: Fetch) -> Result<Fetched, FetchError> {
        let address = request.url().map(shown);
        let limit = request.timeout;
        // A clock can be asked for this, whatever was configured.
        let deadline = Instant::now() + limit.min(LONGEST);
        let sent = timeout_at(deadline, self.send(&request)).await;
        let fetched = match sent {
            Err(_) => {
                Err(NetError::sent(Kind::Timeout, format!("there was no answer within {}", Shown(limit))))
            }
            Ok(Err(error)) => Err(error),
            Ok(Ok(sent)) => finish(sent, &request, deadline).await,
        };
        fetched.map_err(|error| FetchError {
            kind: error.kind(),
            message: match address {
                Ok(address) => format!("{address}: {error}"),
                Err(_) => error.to_string(),
            },
        })
    }

    /// Sends a request until it is not redirected any more.
    async fn send(&self, request: &Fetch) -> Result<Sent, NetError> {
        let mut url = request.url()?.clone();
        let pool = self.pool(&url, request)?;
        let mut headers = request.all_headers()?.clone();
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        for _ in 0..=request.redirects {
            let target = Target::of(&url).ok_or_else(|| {
                NetError::unsent(Kind::Invalid, "the address cannot be asked for in a request of HTTP")
            })?;
            headers.insert(header::HOST, target.host.clone());
            let body = request.body.clone();
            let response = pool.send(request.method.clone(), &target, headers.clone(), body).await?;
            match redirect(&response, &url) {
                Some(next) if request.redirects > 0 => url = next,
                _ => return Ok(Sent { response, url, reached: pool.reached() }),
            }
        }
        let text = format!("there are more than {} redirects", request.redirects);
        Err(NetError::sent(Kind::Redirect, text))
    }

    fn pool(&self, url: &Url, request: &Fetch) -> Result<Pool, NetError> {
        let origin = Origin::of(url).ok_or_else(|| {
            NetError::unsent(Kind::Invalid, "the address does not begin with http:// or https://")
        })?;
        let patience = request.timeout.min(CONNECT_TIMEOUT);
        let dialer = Dialer::new(origin, &self.proxy, patience, Versions::All)?;
        let dialer = dialer.with_filter(request.filter.clone());
        #[cfg(feature = "client-tls")]
        let dialer = self.secured(dialer)?;
        Ok(Pool::new(dialer, Bounds { header_bytes: MAX_HEADER_BYTES, connections: 1 }))
    }

    #[cfg(feature = "client-tls")]
    fn secured(&self, dialer: Dialer) -> Result<Dialer, NetError> {
        if !dialer.needs_tls() {
            return Ok(dialer);
        }
        if let Some(tls) = self.tls.get() {
            return Ok(dialer.with_tls(tls.clone()));
        }
        let made = TlsClient::new(&self.roots)
            .map_err(|error| NetError::unsent(Kind::Invalid, format!("TLS cannot be set up: {error}")))?;
        Ok(dialer.with_tls(self.tls.get_or_init(|| made).clone()))
    }
}

impl Default for Fetcher {
    fn default() -> Self {
        Self::new()
    }
}

/// A clock can be asked for this, whatever was configured.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// A response that has begun, and where it comes from.
struct Sent {
    response: Response,
    url: Url,
    reached: Vec<IpAddr>,
}

async fn finish(sent: Sent, request: &Fetch, deadline: Instant) -> Result<Fetched, NetError> {
    let (head, mut body) = sent.response.into_parts();
    let mut read = BytesMut::new();
    let filled = timeout_at(deadline, fill(&mut read, &mut body, request, &head.headers)).await;
    let whole = filled.unwrap_or_else(|_| {
        let text = format!("the answer was not complete within {}", Shown(request.timeout));
        Err(NetError::sent(Kind::Timeout, text))
    });
    match whole {
        // The beginning is all that was asked for.
        Err(_) if request.beginning => {}
        whole => whole?,
    }
    Ok(Fetched {
        status: head.status,
        headers: head.headers,
        body: read.freeze(),
        url: shown(&sent.url),
        reached: sent.reached,
    })
}

async fn fill(
    read: &mut BytesMut,
    body: &mut Body,
    request: &Fetch,
    headers: &HeaderMap,
) -> Result<(), NetError> {
    let limit = request.max_bytes;
    let too_large =
        || NetError::sent(Kind::TooLarge, format!("the answer is larger than the limit of {limit} bytes"));
    if !request.beginning && body.length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    // A stream need not end, and its first piece says what it is.
    let enough = |read: &BytesMut| {
        request.beginning && (read.len() >= limit || (is_stream(headers) && !read.is_empty()))
    };
    while !enough(read) {
        let Some(chunk) = body.chunk().await? else { break };
        let room = limit - read.len();
        if chunk.len() > room && !request.beginning {
            return Err(too_large());
        }
        read.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
    }
    Ok(())
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.get(..STREAM.len()).is_some_and(|start| start.eq_ignore_ascii_case(STREAM))
}

const STREAM: &[u8] = b"text/event-stream";

impl FetchError {
    /// What went wrong.
    pub const fn kind(&self) -> FetchErrorKind {
        self.kind
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FetchError {}
