//! Fetching over the network.

use http::Method;
use toolwire_http::client::fetch::{self, Fetcher};

use super::{
    BoxFuture, Fetch, FetchError, FetchErrorKind, FetchLimits, NamedBy, Reach, Request, Response,
    address::is_loopback,
};
use crate::Origins;

/// Fetches over the network, with TLS, from where it may.
///
/// `https`, or `http` to this machine. A host is looked up once: addresses that may not be reached are dropped, and
/// the connection is made to one that is left. Through a proxy only addresses that are written in the URL can be
/// checked. Redirects stay within their origin.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    fetcher: Fetcher,
    limits: FetchLimits,
    trusted: Origins,
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

    /// Fetches from these origins whoever names them, wherever they are, and without TLS if their URLs say so.
    #[must_use]
    pub fn trust(mut self, origins: Origins) -> Self {
        self.trusted = origins;
        self
    }

    /// What is to be sent, or why it may not be.
    fn prepare(&self, request: &Request, reach: &Reach) -> Result<fetch::Fetch, FetchError> {
        let url = request.url.url();
        let forbidden = |why: &str| {
            let text = format!("{} is not fetched: {why}", request.url);
            Err(FetchError::new(FetchErrorKind::Forbidden, text))
        };
        let mut prepared = fetch::Fetch::new(request.method.clone(), url.as_str())
            .body(request.body.clone())
            .headers(&request.headers)
            .max_bytes(self.limits.response_bytes)
            .timeout(self.limits.timeout);
        if request.method == Method::GET {
            prepared = prepared.redirects(self.limits.redirects);
        }
        if self.trusted.contains(url) {
            return Ok(prepared);
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(url) => {}
            "http" => return forbidden("it has no TLS, and is not on this machine"),
            _ => return forbidden("it begins with neither https:// nor http://"),
        }
        if request.named_by == NamedBy::Application || reach.is_server(url) {
            return Ok(prepared);
        }
        // Through a proxy nothing is looked up here, so what can be seen in the URL is checked in any case.
        if !reach.allows_url(url) {
            return forbidden("it lies further inside the network than the server that names it");
        }
        let reach = reach.clone();
        Ok(prepared.only_to(move |address| reach.allows(address)))
    }
}

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
                        FetchErrorKind::TooLarge
                    }
                    fetch::FetchErrorKind::Timeout => FetchErrorKind::Timeout,
                    _ => FetchErrorKind::Network,
                };
                FetchError::new(kind, error.to_string())
            })?;
            if reach.is_server(request.url.url()) {
                reach.learn(&fetched.reached);
            }
            Ok(Response { status: fetched.status, headers: fetched.headers, body: fetched.body })
        })
    }
}

#[cfg(test)]
mod tests;
