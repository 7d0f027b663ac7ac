//! Fetching over the network.

use std::collections::BTreeSet;

use http::Method;
use toolwire_http::client::fetch::{self, Fetcher};
use url::Url;

use super::{
    BoxFuture, Fetch, FetchError, FetchErrorKind, FetchLimits, NamedBy, Reach, Request, Response, Zone,
    address::is_loopback, shown,
};

/// Fetches over the network, with TLS, from where it may.
///
/// `https`, or `http` to this machine. A host is looked up once: addresses that may not be reached are dropped, and
/// the connection is made to one that is left. Through a proxy only addresses that are written in the URL can be
/// checked. Redirects stay within their origin.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    fetcher: Fetcher,
    limits: FetchLimits,
    trusted: BTreeSet<String>,
}

impl Guarded {
    /// Fetches with the proxies of the environment and the certificates of the system.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fetches with the proxy and the certificates of this fetcher.
    #[must_use]
    pub fn with(mut self, fetcher: Fetcher) -> Self {
        self.fetcher = fetcher;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: FetchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Fetches from this origin whoever names it, wherever it is, and without TLS if its URL says so.
    ///
    /// # Errors
    /// When that is not the origin of an `http` or `https` URL.
    pub fn trust_origin(mut self, origin: &str) -> Result<Self, FetchError> {
        let invalid = || {
            let text = format!("{origin:?} is not an origin; one looks like https://login.example:8443");
            FetchError::new(FetchErrorKind::Forbidden, text)
        };
        let url = Url::parse(origin).map_err(|_| invalid())?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let plain = url.username().is_empty() && url.password().is_none();
        if !matches!(url.scheme(), "http" | "https") || !bare || !plain {
            return Err(invalid());
        }
        self.trusted.insert(url.origin().ascii_serialization());
        Ok(self)
    }

    /// What is to be sent, or why it may not be.
    fn prepare(&self, request: &Request, reach: &Reach) -> Result<fetch::Fetch, FetchError> {
        let url = &request.url;
        let forbidden = |why: &str| {
            let text = format!("{} is not fetched: {why}", shown(url));
            Err(FetchError::new(FetchErrorKind::Forbidden, text))
        };
        if !url.username().is_empty() || url.password().is_some() {
            return forbidden("it has credentials in it");
        }
        let mut prepared = fetch::Fetch::new(request.method.clone(), url.as_str())
            .body(request.body.clone())
            .headers(&request.headers)
            .max_bytes(self.limits.response_bytes)
            .timeout(self.limits.timeout);
        if request.method == Method::GET {
            prepared = prepared.redirects(self.limits.redirects);
        }
        if self.trusted.contains(&url.origin().ascii_serialization()) {
            return Ok(prepared);
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(url) => {}
            "http" => return forbidden("it has no TLS, and is not on this machine"),
            _ => return forbidden("it begins with neither https:// nor http://"),
        }
        if request.named_by == NamedBy::Peer {
            let reach = reach.clone();
            match url.host() {
                Some(url::Host::Ipv4(address)) if !reach.allows(address.into()) => {
                    return forbidden(FURTHER_INSIDE);
                }
                Some(url::Host::Ipv6(address)) if !reach.allows(address.into()) => {
                    return forbidden(FURTHER_INSIDE);
                }
                Some(url::Host::Domain(_)) if is_loopback(url) && reach.zone() < Zone::Loopback => {
                    return forbidden(FURTHER_INSIDE);
                }
                _ => {}
            }
            prepared = prepared.only_to(move |address| reach.allows(address));
        }
        Ok(prepared)
    }
}

const FURTHER_INSIDE: &str = "it lies further inside the network than the server that names it";

impl Fetch for Guarded {
    fn fetch<'a>(
        &'a self,
        request: Request,
        reach: &'a Reach,
    ) -> BoxFuture<'a, Result<Response, FetchError>> {
        Box::pin(async move {
            let prepared = self.prepare(&request, reach)?;
            let fetched = self.fetcher.fetch(prepared).await.map_err(|error| {
                let kind = match error.kind() {
                    fetch::FetchErrorKind::Forbidden | fetch::FetchErrorKind::Invalid => {
                        FetchErrorKind::Forbidden
                    }
                    fetch::FetchErrorKind::TooLarge | fetch::FetchErrorKind::Redirect => {
                        FetchErrorKind::Unreadable
                    }
                    _ => FetchErrorKind::Unreachable,
                };
                FetchError::new(kind, error.to_string())
            })?;
            Ok(Response {
                status: fetched.status,
                headers: fetched.headers,
                body: fetched.body,
                reached: fetched.reached,
            })
        })
    }
}

#[cfg(test)]
mod tests;
