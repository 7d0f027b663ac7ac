//! The seam for whatever gives requests their credentials.
//!
//! Nothing here knows OAuth: an [`Authorization`] is bound to one server, gives each request its headers, and is asked
//! what is to be done when the server refuses one. While it thinks about that, which may mean that a person is asked,
//! the timeouts of requests stand still.

use std::{error::Error, fmt, net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use toolwire_transport::BoxFuture;

use super::fetch::Fetcher;

/// Credentials for servers, as they are given to [`HttpBuilder::auth`](super::HttpBuilder::auth).
pub trait Authorization: fmt::Debug + Send + Sync + 'static {
    /// What gives the requests to this server their credentials. Nothing is sent yet.
    ///
    /// `fetcher` has the proxy and the certificates that were set for the server.
    fn bind(
        &self,
        server: &str,
        fetcher: Fetcher,
    ) -> Result<Arc<dyn Authorize>, Box<dyn Error + Send + Sync>>;
}

/// Gives requests to one server their credentials.
pub trait Authorize: fmt::Debug + Send + Sync + 'static {
    /// A request is about to be sent, once or, if it is refused or redirected, several times.
    fn attempt(&self, purpose: Purpose) -> Box<dyn Attempt>;

    /// A number that is another one whenever the server takes the client for somebody else, or allows it something
    /// else, than before.
    fn identity(&self) -> u64 {
        0
    }
}

/// One request on its way to a server.
pub trait Attempt: Send {
    /// The headers that say who sends it. They are asked for each time it is sent, because a proof may be good for one
    /// time and one address.
    fn headers<'a>(&'a mut self, hop: Hop<'a>) -> BoxFuture<'a, Result<HeaderMap, Unauthorized>>;

    /// The server has answered 401 or 403.
    fn refused<'a>(
        &'a mut self,
        hop: Hop<'a>,
        refusal: Refusal,
    ) -> BoxFuture<'a, Result<Verdict, Unauthorized>>;

    /// The server has answered something else.
    fn answered(&mut self, hop: Hop<'_>, headers: &HeaderMap);
}

/// What a request is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "whoever decides about asking a person must know all cases")]
pub enum Purpose {
    /// Somebody waits for what the server has to say: a person may be asked.
    Request,
    /// A stream, a notification, the end of a session: nobody would know why they are asked.
    Background,
}

/// One sending of a request.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Hop<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it is sent to, after redirects: the whole URL.
    pub url: &'a str,
    /// Its body: a message of the protocol, or nothing.
    pub body: &'a Bytes,
}

impl<'a> Hop<'a> {
    /// A request with this method, to this URL, with this body.
    pub const fn new(method: &'a Method, url: &'a str, body: &'a Bytes) -> Self {
        Self { method, url, body }
    }
}

/// An answer that refuses a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// 401 or 403.
    pub status: StatusCode,
    /// The headers of the answer.
    pub headers: HeaderMap,
    /// The addresses at which the server was met, if they are known of all connections to it.
    pub reached: Vec<IpAddr>,
}

impl Refusal {
    /// An answer with this status and these headers, by a server that was met at these addresses.
    pub const fn new(status: StatusCode, headers: HeaderMap, reached: Vec<IpAddr>) -> Self {
        Self { status, headers, reached }
    }
}

/// What is to be done with a request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing else to be done")]
pub enum Verdict {
    /// Send it again: something has changed.
    Again,
    /// Let the refusal stand.
    Stand,
}

/// Why a request has no credentials with which it could be sent.
#[derive(Clone, Debug)]
pub struct Unauthorized {
    status: Option<StatusCode>,
    cause: Arc<dyn Error + Send + Sync>,
}

impl Unauthorized {
    /// For this reason, which becomes the source of the client's error.
    pub fn new(cause: impl Error + Send + Sync + 'static) -> Self {
        Self { status: None, cause: Arc::new(cause) }
    }

    /// The status that the failure of the request is to have, where the server was not asked.
    #[must_use]
    pub const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// What was behind it.
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.cause
    }

    pub(super) const fn status(&self) -> Option<StatusCode> {
        self.status
    }

    pub(super) fn into_cause(self) -> Arc<dyn Error + Send + Sync> {
        self.cause
    }
}

impl fmt::Debug for Hop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query and the body may be secret.
        let url = self.url.split('?').next();
        f.debug_struct("Hop").field("method", self.method).field("url", &url).finish_non_exhaustive()
    }
}
