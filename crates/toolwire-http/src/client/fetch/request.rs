//! One request, with everything that bounds its answer.

use std::{fmt, net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use url::Url;

use crate::client::{
    endpoint::shown,
    net::{AddressFilter, Kind, NetError},
};

/// A request to be made by a [`Fetcher`](super::Fetcher).
///
/// Its limits, unless others are set: an answer of 256 KiB, 10 seconds for everything, no redirects.
#[must_use = "it is sent by `Fetcher::fetch`"]
pub struct Fetch {
    pub(super) method: Method,
    url: Result<Url, String>,
    headers: HeaderMap,
    fault: Option<String>,
    pub(super) body: Bytes,
    pub(super) max_bytes: usize,
    pub(super) beginning: bool,
    pub(super) timeout: Duration,
    pub(super) redirects: usize,
    pub(super) filter: AddressFilter,
}

impl Fetch {
    /// A request with this method.
    pub fn new(method: Method, url: &str) -> Self {
        Self {
            method,
            // The text is not repeated, because it may have a password in it.
            url: Url::parse(url).map_err(|error| format!("the address is not a URL: {error}")),
            headers: HeaderMap::new(),
            fault: None,
            body: Bytes::new(),
            max_bytes: 256 * 1024,
            beginning: false,
            timeout: Duration::from_secs(10),
            redirects: 0,
            filter: AddressFilter::default(),
        }
    }

    /// Asks for what is at an address.
    pub fn get(url: &str) -> Self {
        Self::new(Method::GET, url)
    }

    /// Asks to delete what is at an address.
    pub fn delete(url: &str) -> Self {
        Self::new(Method::DELETE, url)
    }

    /// Posts a body of this media type.
    pub fn post(url: &str, media_type: &str, body: impl Into<Bytes>) -> Self {
        let request = Self::new(Method::POST, url).header(header::CONTENT_TYPE.as_str(), media_type);
        Self { body: body.into(), ..request }
    }

    /// Sends a header; a second one of the same name takes its place. Values are treated as secrets.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            _ => {
                self.fault.get_or_insert_with(|| {
                    format!("the header {name:?} has characters that no header may have")
                });
            }
        }
        self
    }

    /// Sends these headers, each in place of one that has the same name. Values are treated as secrets.
    pub fn headers(mut self, headers: &HeaderMap) -> Self {
        for (name, value) in headers {
            let mut value = value.clone();
            value.set_sensitive(true);
            self.headers.insert(name, value);
        }
        self
    }

    /// Sends this body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Takes an answer of at most so many bytes; a larger one is an error.
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self.beginning = false;
        self
    }

    /// Reads the first bytes of the answer and leaves the rest: of an event stream its first piece, and of an answer
    /// that breaks off or takes too long what has come of it.
    pub const fn first_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self.beginning = true;
        self
    }

    /// How long everything may take, from the look-up of the host to the last byte.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Follows so many redirects, all of them within the same origin. What leads elsewhere is given back as it is.
    pub const fn redirects(mut self, redirects: usize) -> Self {
        self.redirects = redirects;
        self
    }

    /// Connects only to addresses for which this is true. They are asked about after the host was looked up, and what
    /// was looked up is what is connected to. A proxy is not asked about; it makes connections of its own.
    pub fn only_to(mut self, allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        self.filter = AddressFilter::new(allowed);
        self
    }

    pub(super) fn url(&self) -> Result<&Url, NetError> {
        self.url.as_ref().map_err(|why| NetError::unsent(Kind::Invalid, why.clone()))
    }

    pub(super) fn all_headers(&self) -> Result<&HeaderMap, NetError> {
        match &self.fault {
            None => Ok(&self.headers),
            Some(fault) => Err(NetError::unsent(Kind::Invalid, fault.clone())),
        }
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers, query and body are where secrets are sent.
        let url = self.url.as_ref().map(shown);
        f.debug_struct("Fetch").field("method", &self.method).field("url", &url).finish_non_exhaustive()
    }
}
