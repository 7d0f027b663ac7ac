//! What a client is given to connect by WebSocket.

use std::{io, time::Duration};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::upgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::{
    handshake::{client::generate_key, derive_accept_key},
    protocol::Role,
};
use toolwire_client::{
    Connection, Connector, FailedConnection,
    link::{Inbox, LinkErrorKind},
};

use super::{
    answer::Answer,
    builder::{HttpBuilder, HttpError},
    connector::Remote,
    endpoint::Endpoint,
    net::{Response, Versions},
    settings::HttpLimits,
};
use crate::websocket::{self, Bounds, SUBPROTOCOL};

/// A server that is reached by WebSocket, at one URL that begins with `ws` or, with the feature `client-tls`, `wss`.
///
/// Each message is one text frame, and both eras are spoken over it. The subprotocol `mcp` is offered; a server that
/// does not name it in return is taken at its word, one that names another is not.
///
/// ```no_run
/// use toolwire_client::Client;
/// use toolwire_http::client::WebSocket;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = WebSocket::builder("ws://127.0.0.1:8080/mcp").bearer("a token").build()?;
/// let client = Client::builder("host", "1.0").connect(server).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WebSocket {
    endpoint: Endpoint,
}

impl WebSocket {
    /// The server at `url`, with all settings at their defaults.
    pub fn new(url: impl AsRef<str>) -> Result<Self, HttpError> {
        Self::builder(url).build()
    }

    /// The server at `url`, with settings to be made.
    pub fn builder(url: impl AsRef<str>) -> WebSocketBuilder {
        WebSocketBuilder::new(url.as_ref())
    }

    /// The URL as it may be shown: without credentials and query.
    pub fn url(&self) -> String {
        // Below it is an address of HTTP.
        self.endpoint.shown().replacen("http", "ws", 1)
    }

    /// Shakes hands.
    async fn open(&self, inbox: &Inbox) -> io::Result<Response> {
        let key = generate_key();
        let response = self
            .endpoint
            .attached(inbox, None)
            .upgrade(|| request_headers(&key))
            .await
            .map_err(io::Error::other)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.refusal(response).await);
        }
        match problem(response.headers(), &key) {
            Some(problem) => Err(io::Error::other(format!("{} {problem}", self.url()))),
            None => Ok(response),
        }
    }

    async fn refusal(&self, response: Response) -> io::Error {
        let mut error = Answer::refusal(response).await;
        let hint = match error.kind {
            LinkErrorKind::Status(200..=299 | 400 | 404 | 405 | 426, _) => {
                "; is the path right, and are WebSockets enabled there?"
            }
            _ => "",
        };
        // Its status stays: whoever connects wants to know whether it is credentials that are missing.
        error.message = format!("{} is no WebSocket: {error}{hint}", self.url()).into();
        io::Error::other(error)
    }
}

fn request_headers(key: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    if let Ok(key) = HeaderValue::try_from(key) {
        headers.insert(header::SEC_WEBSOCKET_KEY, key);
    }
    headers
}

/// What is wrong with an agreement, if anything is.
fn problem(headers: &HeaderMap, key: &str) -> Option<&'static str> {
    let accepted = headers.get(header::SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
    if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Some("does not speak WebSocket: its Sec-WebSocket-Accept is not the answer to our key");
    }
    match headers.get(header::SEC_WEBSOCKET_PROTOCOL) {
        Some(named) if named != SUBPROTOCOL => Some("speaks another subprotocol than \"mcp\""),
        _ => None,
    }
}

impl Connector<Remote> for WebSocket {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        self.try_connect(inbox).await.map_err(|failed| failed.error)
    }

    async fn try_connect(self, inbox: Inbox) -> Result<Connection<Self>, FailedConnection<Self>> {
        let upgraded = match self.open(&inbox).await {
            Ok(response) => upgrade::on(response).await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        let upgraded = match upgraded {
            Ok(upgraded) => upgraded,
            Err(error) => return Err(FailedConnection { error, again: Some(self) }),
        };
        let limits = &self.endpoint.settings().limits;
        let bounds = Bounds {
            message_bytes: limits.response_bytes,
            silence: limits.websocket_silence,
            message_time: limits.response_timeout,
        };
        let (connection, driving) = websocket::open(TokioIo::new(upgraded), Role::Client, bounds, None).await;
        tokio::spawn(driving);
        let key = self.url();
        Ok(Connection::over(connection, inbox).key(key).again(self))
    }
}

/// Puts together a [`WebSocket`]. From [`WebSocket::builder`].
#[derive(Debug)]
#[must_use = "it is made by `build`"]
pub struct WebSocketBuilder {
    http: HttpBuilder,
    fault: Option<HttpError>,
}

impl WebSocketBuilder {
    fn new(url: &str) -> Self {
        // It begins with a request of HTTP, to the same place.
        let http = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => Some(format!("http://{rest}")),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("wss") => Some(format!("https://{rest}")),
            _ => None,
        };
        // The text is not repeated, because it may have a password in it.
        let fault = http.is_none().then(|| {
            HttpError::new(
                "the address of a WebSocket begins with ws:// or wss://, as in ws://127.0.0.1:8080/mcp",
            )
        });
        Self { http: HttpBuilder::new(http.as_deref().unwrap_or_default()), fault }
    }

    /// Sends a header with the request that opens it; a second one of the same name takes its place.
    ///
    /// The headers of the protocol itself are not for this.
    pub fn header(self, name: &str, value: &str) -> Self {
        Self { http: self.http.header(name, value), ..self }
    }

    /// Sends a token with the request that opens it. It never shows up in logs or error messages.
    pub fn bearer(self, token: &str) -> Self {
        Self { http: self.http.bearer(token), ..self }
    }

    /// Lets this give the request that opens it its credentials, as [`HttpBuilder::auth`] says.
    pub fn auth(self, auth: impl super::authorize::Authorization) -> Self {
        Self { http: self.http.auth(auth), ..self }
    }

    /// Connects through this proxy. By default the environment is asked, as
    /// [`HttpBuilder::proxy`] says.
    pub fn proxy(self, url: &str) -> Self {
        Self { http: self.http.proxy(url), ..self }
    }

    /// Uses no proxy, whatever the environment says.
    pub fn no_proxy(self) -> Self {
        Self { http: self.http.no_proxy(), ..self }
    }

    /// How long it may take to reach the server; [`CONNECT_TIMEOUT`](super::CONNECT_TIMEOUT) by default.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self { http: self.http.connect_timeout(timeout), ..self }
    }

    /// How long the server may take to agree; [`SEND_TIMEOUT`](super::SEND_TIMEOUT) by default.
    pub fn send_timeout(self, timeout: Duration) -> Self {
        Self { http: self.http.send_timeout(timeout), ..self }
    }

    /// Trusts these certificates, in PEM, besides those that the system trusts.
    #[cfg(feature = "client-tls")]
    pub fn root_certificates(self, pem: &[u8]) -> Self {
        Self { http: self.http.root_certificates(pem), ..self }
    }

    /// Sets the limits. Those of streams and requests mean nothing here.
    pub fn limits(self, limits: HttpLimits) -> Self {
        Self { http: self.http.limits(limits), ..self }
    }

    /// Checks what was given. Nothing is sent yet.
    pub fn build(self) -> Result<WebSocket, HttpError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // Newer versions of HTTP have no upgrade.
        Ok(WebSocket { endpoint: self.http.endpoint(Versions::Http1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_begins_with_ws_and_its_password_is_never_repeated() {
        for url in ["http://user:secret@host/mcp", "user:secret@host", "ws:/host", ""] {
            let error = WebSocket::new(url).unwrap_err().to_string();
            assert!(error.contains("begins with ws://") && !error.contains("secret"), "{error}");
        }
        let error = WebSocket::new("ws://user:secret@ho st/").unwrap_err().to_string();
        assert!(error.contains("no URL") && !error.contains("secret"), "{error}");
        let socket = WebSocket::new("WS://user:secret@127.0.0.1:80/mcp?key=secret").unwrap();
        assert_eq!(socket.url(), "ws://127.0.0.1/mcp");
        assert!(!format!("{socket:?}").contains("secret"), "{socket:?}");
    }

    #[test]
    fn headers_of_the_protocol_cannot_be_overridden() {
        for name in ["Sec-WebSocket-Protocol", "Connection", "upgrade", "mcp-session-id"] {
            let error = WebSocket::builder("ws://127.0.0.1").header(name, "x").build().unwrap_err();
            assert!(error.to_string().contains("set by the client itself"), "{error}");
        }
    }

    #[test]
    fn an_agreement_is_checked() {
        let key = generate_key();
        let mut headers = HeaderMap::new();
        assert!(problem(&headers, &key).unwrap().contains("not the answer"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes()).parse().unwrap());
        assert_eq!(problem(&headers, &key), None);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("chat"));
        assert!(problem(&headers, &key).unwrap().contains("another subprotocol"));
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
        assert_eq!(problem(&headers, &key), None);
    }
}
