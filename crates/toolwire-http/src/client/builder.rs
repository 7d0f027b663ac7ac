//! Settings on their way to an [`Http`].

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use toolwire_protocol::headers::LAST_EVENT_ID;
use url::Url;

#[cfg(feature = "client-tls")]
use super::net::{Roots, TlsClient};
use super::{
    authorize::{Authorization, Authorize},
    connector::Http,
    endpoint::{Endpoint, shown},
    fetch::Fetcher,
    net::{Bounds, Dialer, Origin, Pool, Proxy, Versions, basic_credentials},
    settings::{CONNECT_TIMEOUT, HttpLimits, SEND_TIMEOUT, Settings},
};

/// Puts together an [`Http`]. From [`Http::builder`].
///
/// ```
/// use toolwire_http::client::Http;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Http::builder("http://127.0.0.1:8080/mcp").bearer("a token").header("x-team", "blue").build()?;
/// assert!(!format!("{server:?}").contains("a token"));
/// # Ok(())
/// # }
/// ```
#[must_use = "it is made by `build`"]
pub struct HttpBuilder {
    url: Result<Url, HttpError>,
    headers: HeaderMap,
    auth: Option<Arc<dyn Authorization>>,
    /// The first thing that was wrong with them.
    fault: Option<HttpError>,
    limits: HttpLimits,
    proxy: Proxy,
    connect_timeout: Duration,
    send_timeout: Duration,
    #[cfg(feature = "client-tls")]
    roots: Roots,
}

/// A server that cannot be described like that.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpError {
    message: String,
}

impl HttpBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: endpoint_url(url),
            headers: HeaderMap::new(),
            auth: None,
            fault: None,
            limits: HttpLimits::default(),
            proxy: Proxy::Environment,
            connect_timeout: CONNECT_TIMEOUT,
            send_timeout: SEND_TIMEOUT,
            #[cfg(feature = "client-tls")]
            roots: Roots::default(),
        }
    }

    /// Sends a header with every request; a second one of the same name takes its place.
    ///
    /// The headers of the protocol itself are not for this.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match custom_header(name, value) {
            Ok((name, value)) => {
                self.headers.insert(name, value);
            }
            Err(fault) => {
                self.fault.get_or_insert(fault);
            }
        }
        self
    }

    /// Sends a token with every request. It never shows up in logs or error messages.
    pub fn bearer(mut self, token: &str) -> Self {
        match HeaderValue::try_from(format!("Bearer {token}")) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.insert(header::AUTHORIZATION, value);
            }
            Err(_) => {
                self.fault
                    .get_or_insert_with(|| HttpError::new("the token has characters no header may have"));
            }
        }
        self
    }

    /// Lets this give requests their credentials, and find some where the server asks for them.
    ///
    /// It goes together with neither [`bearer`](Self::bearer), nor a header `Authorization`, nor credentials in the
    /// address. While it asks a person, the timeouts of requests stand still.
    pub fn auth(mut self, auth: impl Authorization) -> Self {
        self.auth = Some(Arc::new(auth));
        self
    }

    /// Sends everything through this proxy, which begins with `http://` or `https://`. By default the environment is
    /// asked (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`), unless the server is on this machine.
    pub fn proxy(mut self, url: &str) -> Self {
        if let Some(proxy) = Proxy::at(url) {
            self.proxy = proxy;
        } else {
            self.fault.get_or_insert_with(HttpError::not_a_proxy);
        }
        self
    }

    /// Uses no proxy, whatever the environment says.
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Proxy::None;
        self
    }

    /// How long it may take to reach the server; [`CONNECT_TIMEOUT`] by default.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the server may take to accept a message that has no answer, to begin an event stream, or to make a
    /// new session in place of one that it has lost; [`SEND_TIMEOUT`] by default. How long answers may take is for the client to say.
    pub const fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// Trusts these certificates, in PEM, besides those that the system trusts.
    #[cfg(feature = "client-tls")]
    pub fn root_certificates(mut self, pem: &[u8]) -> Self {
        if !self.roots.add(pem) {
            self.fault.get_or_insert_with(|| HttpError::new("the root certificates are not in PEM"));
        }
        self
    }

    /// Sets the limits.
    pub const fn limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks what was given. Nothing is sent yet.
    pub fn build(self) -> Result<Http, HttpError> {
        Ok(Http::over(self.endpoint(Versions::All)?))
    }

    /// The address with everything that was set for it.
    pub(super) fn endpoint(self, versions: Versions) -> Result<Endpoint, HttpError> {
        let url = self.url?;
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let impossible = |why: &dyn fmt::Display| {
            HttpError::new(format!("no connection to {} can be made: {why}", shown(&url)))
        };
        let origin = Origin::of(&url).ok_or_else(|| impossible(&"it has no host"))?;
        let dialer = Dialer::new(origin, &self.proxy, self.connect_timeout, versions);
        let dialer = dialer.map_err(|error| impossible(&error))?;
        #[cfg(feature = "client-tls")]
        let dialer = if dialer.needs_tls() {
            dialer.with_tls(TlsClient::new(&self.roots).map_err(|error| impossible(&error))?)
        } else {
            dialer
        };
        let authorize = self.auth.map(|auth| {
            let fetcher = Fetcher::like(
                self.proxy.clone(),
                #[cfg(feature = "client-tls")]
                self.roots.clone(),
            );
            bound(&*auth, &url, &self.headers, fetcher)
        });
        let authorize = authorize.transpose()?;
        let mut headers = self.headers;
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        // What a user wrote into the address counts only if nothing else says who it is.
        if let Some(credentials) = basic_credentials(&url) {
            headers.entry(header::AUTHORIZATION).or_insert(credentials);
        }
        let HttpLimits { header_bytes, connections, .. } = self.limits;
        let pool = Pool::new(dialer, Bounds { header_bytes, connections });
        let settings = Settings { headers, authorize, limits: self.limits, send_timeout: self.send_timeout };
        Endpoint::new(pool, settings, url)
    }
}

/// What gives requests to `url` their credentials.
fn bound(
    auth: &dyn Authorization,
    url: &Url,
    headers: &HeaderMap,
    fetcher: Fetcher,
) -> Result<Arc<dyn Authorize>, HttpError> {
    let twice = |where_| {
        let text = format!(
            "there are credentials for {} in {where_} as well as by `auth`; keep one of them",
            shown(url)
        );
        Err(HttpError::new(text))
    };
    if headers.contains_key(header::AUTHORIZATION) {
        return twice("a header");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return twice("its address");
    }
    auth.bind(url.as_str(), fetcher).map_err(|error| HttpError::new(error.to_string()))
}

/// How this client names itself, unless the user has another name for it.
pub(super) const AGENT: &str = concat!("toolwire/", env!("CARGO_PKG_VERSION"));

fn endpoint_url(text: &str) -> Result<Url, HttpError> {
    // The text is not repeated, because it may have a password in it.
    let mut url = Url::parse(text).map_err(|error| {
        HttpError::new(format!(
            "the address of the server is no URL ({error}); one looks like http://127.0.0.1:8080/mcp"
        ))
    })?;
    url.set_fragment(None);
    match url.scheme() {
        "http" => Ok(url),
        "https" if cfg!(feature = "client-tls") => Ok(url),
        "https" => {
            let text = format!(
                "{} needs TLS: enable the feature `http-tls` of toolwire (`client-tls` of toolwire-http)",
                shown(&url)
            );
            Err(HttpError::new(text))
        }
        other => {
            Err(HttpError::new(format!("the address of the server begins with {other:?}, not with http")))
        }
    }
}

fn custom_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HttpError> {
    let bad = |what: &str| HttpError::new(format!("the header {name:?} {what}"));
    let header = HeaderName::try_from(name).map_err(|_| bad("has a name that no header may have"))?;
    let reserved = [
        header::ACCEPT,
        header::CONNECTION,
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::HOST,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    let ours = ["mcp-", "sec-websocket-"].iter().any(|prefix| header.as_str().starts_with(prefix));
    if ours || header == LAST_EVENT_ID || reserved.contains(&header) {
        return Err(bad("is set by the client itself"));
    }
    let mut value =
        HeaderValue::try_from(value).map_err(|_| bad("has characters that no header may have"))?;
    // Custom headers are where keys are sent.
    value.set_sensitive(true);
    Ok((header, value))
}

impl fmt::Debug for HttpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.as_ref().map(shown);
        f.debug_struct("HttpBuilder").field("url", &url).field("proxy", &self.proxy).finish_non_exhaustive()
    }
}

impl HttpError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    pub(super) fn not_a_proxy() -> Self {
        Self::new("the address of the proxy is not valid; one looks like http://user:password@host:3128")
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The text of the error, because `main` shows an error this way.
impl fmt::Debug for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for HttpError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(builder: HttpBuilder) -> String {
        builder.build().unwrap_err().to_string()
    }

    #[test]
    fn an_address_is_checked_and_its_password_is_never_repeated() {
        let cases = [
            ("127.0.0.1:8080", "no URL"),
            ("ftp://user:secret@host/", "\"ftp\""),
            ("http://user:secret@ho st/", "no URL"),
            ("file:///etc/passwd", "\"file\""),
        ];
        for (url, expected) in cases {
            let text = fault(Http::builder(url));
            assert!(text.contains(expected) && !text.contains("secret"), "{text}");
        }
        let http = Http::new("http://user:secret@127.0.0.1/mcp").unwrap();
        assert!(!format!("{http:?}").contains("secret"), "{http:?}");
    }

    #[cfg(not(feature = "client-tls"))]
    #[test]
    fn https_without_tls_names_the_feature() {
        let text = fault(Http::builder("https://user:secret@host/mcp"));
        assert!(
            text.contains("https://host/mcp needs TLS: enable the feature `http-tls` of toolwire"),
            "{text}"
        );
    }

    #[test]
    fn headers_of_the_protocol_cannot_be_overridden() {
        for name in
            ["Mcp-Session-Id", "mcp-anything", "Accept", "content-type", "Last-Event-ID", "Host", "Upgrade"]
        {
            let text = fault(Http::builder("http://127.0.0.1").header(name, "x"));
            assert!(text.contains("set by the client itself"), "{text}");
        }
        assert!(fault(Http::builder("http://127.0.0.1").header("a b", "x")).contains("name"));
        assert!(fault(Http::builder("http://127.0.0.1").header("a", "x\n")).contains("characters"));
        assert!(fault(Http::builder("http://127.0.0.1").bearer("x\n")).contains("token"));
        assert!(fault(Http::builder("http://127.0.0.1").proxy("")).contains("proxy"));
    }

    #[test]
    fn what_main_prints_of_an_error_is_its_text() {
        let error = Http::new(String::from("nonsense")).unwrap_err();
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[derive(Debug)]
    struct Nobody;

    impl Authorization for Nobody {
        fn bind(
            &self,
            _server: &str,
            _fetcher: Fetcher,
        ) -> Result<Arc<dyn Authorize>, Box<dyn std::error::Error + Send + Sync>> {
            Err("nobody is known".into())
        }
    }

    #[test]
    fn there_is_one_place_for_credentials() {
        let plain = || Http::builder("http://127.0.0.1/mcp").auth(Nobody);
        assert_eq!(fault(plain()), "nobody is known");
        for twice in [
            plain().bearer("secret"),
            plain().header("Authorization", "Basic secret"),
            Http::builder("http://user:secret@127.0.0.1/mcp").auth(Nobody),
        ] {
            let text = fault(twice);
            assert!(text.contains("keep one of them") && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn secrets_do_not_show() {
        let builder = Http::builder("http://user:secret@127.0.0.1?key=secret");
        let builder = builder.bearer("secret").header("x-key", "secret");
        let builder = builder.proxy("http://user:secret@proxy:3128");
        assert!(!format!("{builder:?}").contains("secret"), "{builder:?}");
        let http = builder.build().unwrap();
        assert!(!format!("{http:?}").contains("secret"), "{http:?}");
    }
}
