//! Proxies: which one is used for a server, and the tunnel through it.

use std::fmt;

use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper::{client::conn::http1, upgrade};
use hyper_util::{
    client::proxy::matcher::{Intercept, Matcher},
    rt::TokioIo,
};
use url::Url;

use super::{
    error::{Kind, NetError},
    origin::Origin,
    stream::Stream,
};

/// Where the proxy settings come from.
#[derive(Clone)]
pub(crate) enum Proxy {
    /// `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or not, unless the server is on this machine.
    Environment,
    None,
    Given(Through),
}

/// A proxy that requests go through.
#[derive(Clone)]
pub(crate) struct Through {
    pub(super) origin: Origin,
    pub(super) credentials: Option<HeaderValue>,
}

impl Proxy {
    /// This proxy for everything; `None` if that is not the address of one.
    pub(crate) fn at(address: &str) -> Option<Self> {
        let anywhere = Uri::from_static("http://anywhere.invalid/");
        let intercept = Matcher::builder().all(address).build().intercept(&anywhere)?;
        Through::of(&intercept).ok().map(Self::Given)
    }

    /// The proxy for one origin.
    pub(super) fn for_origin(&self, origin: &Origin) -> Result<Option<Through>, NetError> {
        match self {
            Self::None => Ok(None),
            Self::Given(through) => Ok(Some(through.clone())),
            Self::Environment if origin.is_local() => Ok(None),
            Self::Environment => from_matcher(&Matcher::from_env(), origin),
        }
    }
}

fn from_matcher(matcher: &Matcher, origin: &Origin) -> Result<Option<Through>, NetError> {
    let invalid = || NetError::unsent(Kind::Invalid, format!("{origin:?} is not an address"));
    let uri: Uri = format!("{origin:?}/").parse().map_err(|_| invalid())?;
    matcher.intercept(&uri).map(|intercept| Through::of(&intercept)).transpose()
}

impl Through {
    fn of(intercept: &Intercept) -> Result<Self, NetError> {
        let uri = intercept.uri();
        let scheme = uri.scheme_str().unwrap_or_default();
        let origin = Url::parse(&uri.to_string()).ok().and_then(|url| Origin::of(&url)).ok_or_else(|| {
            let text = format!("the proxy begins with {scheme}://, and only http:// and https:// are spoken");
            NetError::unsent(Kind::Proxy, text)
        })?;
        if origin.is_https() && cfg!(not(feature = "client-tls")) {
            let text = "the proxy begins with https://, which needs TLS: enable the feature `http-tls` of toolwire \
                        (`client-tls` of toolwire-http)";
            return Err(NetError::unsent(Kind::Proxy, text));
        }
        Ok(Self { origin, credentials: intercept.basic_auth().cloned() })
    }

    /// Asks the proxy to connect to `origin`, and gives back the stream that then leads there.
    pub(super) async fn tunnel(&self, stream: Stream, origin: &Origin) -> Result<Stream, NetError> {
        let broken = |error: &dyn fmt::Display| self.fault(&format!("broke off: {error}"));
        let request = self.connect_request(origin)?;
        let (mut sender, connection) = http1::Builder::new()
            .max_header_size(MAX_TUNNEL_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(&error))?;
        let asked = async {
            let response =
                sender.send_request(request).await.map_err(|error| broken(&NetError::from(error)))?;
            match response.status() {
                status if status.is_success() => {
                    upgrade::on(response).await.map_err(|error| broken(&NetError::from(error)))
                }
                StatusCode::PROXY_AUTHENTICATION_REQUIRED if self.credentials.is_none() => {
                    let how = "asks for credentials; they can be written into its address: http://user:password@host";
                    Err(self.fault(how))
                }
                StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                    Err(self.fault("does not accept the credentials in its address"))
                }
                status => Err(self.fault(&format!("refuses to connect to {}: {status}", origin.authority()))),
            }
        };
        // The connection moves the bytes of the question, and ends when it has become a tunnel. It is driven here, so
        // that it goes when nobody waits any more.
        let mut connection = std::pin::pin!(connection.with_upgrades());
        let mut asked = std::pin::pin!(asked);
        let upgraded = tokio::select! {
            biased;
            upgraded = &mut asked => upgraded,
            driven = &mut connection => match driven {
                Ok(()) => asked.await,
                Err(error) => Err(broken(&NetError::from(error))),
            },
        }?;
        let parts =
            upgraded.downcast::<TokioIo<Stream>>().map_err(|_| self.fault("gave back another connection"))?;
        if !parts.read_buf.is_empty() {
            // In TLS, and in HTTP, it is the client that speaks first.
            return Err(self.fault("spoke before the server was asked anything"));
        }
        Ok(parts.io.into_inner())
    }

    fn connect_request(&self, origin: &Origin) -> Result<Request<Empty<bytes::Bytes>>, NetError> {
        let authority = origin.authority();
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .uri(authority.as_str())
            .header(header::HOST, authority.as_str())
            .body(Empty::new())
            .map_err(|_| NetError::unsent(Kind::Invalid, format!("{authority} is not an address")))?;
        if let Some(credentials) = &self.credentials {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, credentials.clone());
        }
        Ok(request)
    }

    fn fault(&self, what: &str) -> NetError {
        NetError::unsent(Kind::Proxy, format!("the proxy {:?} {what}", self.origin))
    }
}

/// The largest answer of a proxy to the question for a tunnel.
const MAX_TUNNEL_HEADER_BYTES: usize = 16 * 1024;

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::None => f.write_str("None"),
            Self::Given(through) => through.fmt(f),
        }
    }
}

impl fmt::Debug for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its credentials are not shown.
        self.origin.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::of(&Url::parse(url).unwrap()).unwrap()
    }

    fn through(matcher: &Matcher, url: &str) -> Option<String> {
        from_matcher(matcher, &origin(url)).unwrap().map(|through| format!("{through:?}"))
    }

    #[test]
    fn a_proxy_is_chosen_by_scheme_and_exceptions() {
        let matcher = Matcher::builder()
            .http("http://user:secret@plain:3128")
            .all("http://all:80")
            .no("a.com, .b.com, 10.0.0.0/8, ::1")
            .build();
        assert_eq!(through(&matcher, "http://x.com/mcp").unwrap(), "http://plain:3128");
        assert_eq!(through(&matcher, "https://x.com/mcp").unwrap(), "http://all:80");
        for direct in ["http://a.com", "https://c.b.com:8443/mcp", "http://10.1.2.3:80/", "http://[::1]/"] {
            assert_eq!(through(&matcher, direct), None, "{direct}");
        }
        let found = from_matcher(&matcher, &origin("http://x.com")).unwrap().unwrap();
        assert_eq!(found.credentials.unwrap(), "Basic dXNlcjpzZWNyZXQ=");
    }

    #[test]
    fn a_proxy_that_cannot_be_spoken_to_is_an_error_and_not_left_out() {
        let matcher = Matcher::builder().all("socks5://user:secret@host:1080").build();
        let error = from_matcher(&matcher, &origin("https://x.com")).unwrap_err();
        assert_eq!(error.kind(), Kind::Proxy);
        assert!(error.to_string().contains("socks5://") && !error.to_string().contains("secret"), "{error}");
        assert!(Proxy::at("socks5://host").is_none() && Proxy::at("").is_none());
    }
}
