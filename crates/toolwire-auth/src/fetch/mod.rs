//! Fetching metadata and tokens, from addresses that may be asked.
//!
//! Much of what OAuth fetches is named by somebody else: a challenge names metadata, metadata name an issuer, the
//! issuer's metadata name endpoints. [`Guarded`] sees to it that nobody can use this client to reach what only the
//! client can reach. What it deliberately does not do: keep cookies, send referrers or credentials of its own, follow
//! redirects to other origins, or repeat anything.

mod address;
mod guarded;
mod limits;

use std::{fmt, net::IpAddr, pin::Pin};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use url::Url;

pub use address::{Reach, Zone};
pub use guarded::Guarded;
pub use limits::FetchLimits;

/// A future that can be sent to another task.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends one request. [`Guarded`] is what does it over the network; tests have others.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Sends a request, once, and reads its whole answer. A status that is no success is an answer, too.
    ///
    /// `reach` says how far inside the network it may lead.
    fn fetch<'a>(&'a self, request: Request, reach: &'a Reach)
    -> BoxFuture<'a, Result<Response, FetchError>>;
}

/// One request.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where it is sent to.
    pub url: Url,
    /// Headers, besides those that every request has.
    pub headers: HeaderMap,
    /// The body; empty for a `GET`.
    pub body: Bytes,
    /// Who has named the URL.
    pub named_by: NamedBy,
}

/// Who has named a URL, which decides where it may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NamedBy {
    /// The application, in its configuration: it may lead anywhere.
    Application,
    /// A server, in a challenge or in metadata: it may not lead further inside than that server itself is.
    Peer,
}

impl Request {
    /// Asks for a JSON document.
    pub fn get(url: Url, named_by: NamedBy) -> Self {
        Self::new(Method::GET, url, named_by)
    }

    /// Posts a form (`application/x-www-form-urlencoded`).
    pub fn form(url: Url, form: impl Into<Bytes>, named_by: NamedBy) -> Self {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        Self { body: form.into(), ..Self::new(Method::POST, url, named_by) }
            .header(header::CONTENT_TYPE, kind)
    }

    /// Posts a JSON document.
    pub fn json(url: Url, document: impl Into<Bytes>, named_by: NamedBy) -> Self {
        let kind = HeaderValue::from_static("application/json");
        Self { body: document.into(), ..Self::new(Method::POST, url, named_by) }
            .header(header::CONTENT_TYPE, kind)
    }

    /// Adds a header; a second one of the same name takes its place.
    #[must_use]
    pub fn header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    fn new(method: Method, url: Url, named_by: NamedBy) -> Self {
        let accept = (header::ACCEPT, HeaderValue::from_static("application/json"));
        Self { method, url, headers: HeaderMap::from_iter([accept]), body: Bytes::new(), named_by }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers, query and body are where secrets are.
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &shown(&self.url))
            .field("named_by", &self.named_by)
            .finish_non_exhaustive()
    }
}

/// An answer, whatever its status.
#[derive(Clone)]
#[non_exhaustive]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// The addresses that were connected to; none if that is not known.
    pub reached: Vec<IpAddr>,
}

impl Response {
    /// An answer with a body.
    pub fn new(status: StatusCode, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self { status, headers, body: body.into(), reached: Vec::new() }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body is where tokens come from.
        f.debug_struct("Response").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A request that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    kind: FetchErrorKind,
    message: String,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// Nothing was sent: the URL leads to where it may not.
    Forbidden,
    /// Nobody answered, or not in time, or not in the right way. It may be different the next time.
    Unreachable,
    /// The answer is larger than its limit, or redirects too often.
    Unreadable,
}

impl FetchError {
    /// An error with a sentence that says what happened. It must not have a secret in it.
    pub fn new(kind: FetchErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Why there is no answer.
    pub const fn kind(&self) -> FetchErrorKind {
        self.kind
    }

    /// Whether it may work the next time.
    pub const fn is_temporary(&self) -> bool {
        matches!(self.kind, FetchErrorKind::Unreachable)
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FetchError {}

/// A URL without what may be secret: credentials, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
