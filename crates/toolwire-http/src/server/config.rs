//! Every setting of an HTTP endpoint, with its name, its default and what it protects.

use std::time::Duration;

/// How clients of the protocol revisions before 2026-07-28 are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a choice that callers make, not one they match on")]
pub enum Legacy {
    /// With sessions, as they expect it: streams that can be resumed, messages that come unasked.
    #[default]
    Sessions,
    /// Each request for itself and nothing remembered in between: for places where the next request may come
    /// to another process.
    Stateless,
    /// Not at all.
    Off,
}

/// Whether browsers may let pages of other origins read the responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a choice that callers make, not one they match on")]
pub enum Cors {
    /// No: the endpoint says nothing about it, so browsers refuse.
    #[default]
    Off,
    /// Yes, for the origins that are allowed.
    AllowedOrigins,
}

/// The settings of an HTTP endpoint; [`HttpBuilder`](super::HttpBuilder) has a method for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpConfig {
    /// How legacy clients are served.
    pub(crate) legacy: Legacy,
    /// The one path that is answered; `None` answers on every path.
    pub(crate) path: Option<String>,
    /// The URL under which clients reach the endpoint, when that is not the address it listens on.
    pub(crate) public_url: Option<String>,
    /// Hosts that requests may name besides the loopback ones, each as `host` (any port) or `host:port`.
    pub(crate) hosts: Vec<String>,
    /// Whether requests may name any host at all.
    pub(crate) any_host: bool,
    /// Origins of web pages that may send requests, each as `scheme://host` or `scheme://host:port`.
    pub(crate) origins: Vec<String>,
    /// Whether pages of any origin may send requests.
    pub(crate) any_origin: bool,
    /// What browsers are told about pages of other origins.
    pub(crate) cors: Cors,
    /// Whether every connection comes from a proxy, so that its address says nothing about the client.
    pub(crate) behind_proxy: bool,
    /// Whether requests are served although the address of their client is unknown.
    pub(crate) without_peer_addresses: bool,
    /// Where clients of 2024-11-05 are served, if they are.
    #[cfg(feature = "sse2024")]
    pub(crate) sse2024: Option<super::legacy::Sse2024Paths>,
    /// Whether the path can be opened as a WebSocket.
    #[cfg(feature = "ws")]
    pub(crate) websocket: bool,
    /// The limits.
    pub(crate) limits: HttpLimits,
}

/// The limits of an HTTP endpoint, besides those of the [`Server`](toolwire_server::Server) behind it. All are
/// finite; change those that do not fit.
///
/// ```
/// use toolwire_http::server::HttpLimits;
///
/// let limits = HttpLimits { body_bytes: 64 * 1024, ..HttpLimits::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "meant to be written as a literal with ..HttpLimits::default()"
)]
pub struct HttpLimits {
    /// The longest body of a request, in bytes; longer ones get 413. It is also the longest message of a WebSocket;
    /// longer ones end it with the code 1009. Default 4 MiB.
    pub body_bytes: usize,
    /// The time that the body of a request may take to arrive; later ones get 408. A message of a WebSocket has as long from
    /// its first byte to its last; later ones end it with the code 1008. Default 30 seconds.
    pub body_timeout: Duration,
    /// How long all headers of a request may be together, in bytes; longer ones get 431. Default 32 KiB, and at
    /// least 8 KiB.
    pub header_bytes: usize,
    /// How many headers a request may have; more get 431. Default 100.
    pub headers: usize,
    /// How long the headers of a request may take to arrive, and so how long an idle connection is kept for another
    /// request. Default 30 seconds.
    pub header_timeout: Duration,
    /// How many connections are open at once; further ones wait to be accepted. Default 4096.
    pub connections: usize,
    /// How many requests of one HTTP/2 connection are open at once. Default 128.
    pub requests_per_connection: u32,
    /// After how long without anything to say an answer becomes a stream, and how often an idle stream says
    /// that it is still there. Default 5 seconds.
    pub keep_alive: Duration,
    /// How long a client may take no byte of what is sent to it before its connection is closed. Over HTTP/2, where each
    /// response can be held up alone, it has that long for every 16 KiB of one, or else that stream is reset. Default one
    /// minute.
    pub write_timeout: Duration,
    /// How many WebSockets are open at once; further ones get 503. They are not counted as connections any more.
    /// The longest message of each, if it has more than 64 KiB, is charged to its caller from its first bytes to the end of
    /// the WebSocket, which keeps the buffer; what crosses the limit `held_bytes_per_caller` or `held_bytes` ends the
    /// WebSocket with the code 1013. Default 1024.
    pub websockets: usize,
    /// How long the client at a WebSocket may say nothing, not even when it is asked whether it is still there,
    /// before it is given up. It is asked three times in that time. Default one minute.
    pub websocket_silence: Duration,
    /// How many legacy sessions are kept. Beyond that, one without a finished handshake makes room, or else the
    /// one that was idle for longest, if that is more than a minute; otherwise new clients get 503 and
    /// `Retry-After`. Default 10 000.
    pub sessions: usize,
    /// How long a legacy session without requests and without an open stream is kept. Default 30 minutes.
    pub session_idle: Duration,
    /// How long a legacy session may take from `initialize` to `notifications/initialized`. Default 30 seconds.
    pub session_handshake: Duration,
    /// How many events of one legacy stream are kept for clients that resume it. Default 256.
    pub stream_events: usize,
    /// How many bytes of events one legacy session keeps for clients that resume. Default 8 MiB.
    pub session_event_bytes: usize,
    /// How long the events of a finished legacy stream are kept. Default 5 minutes.
    pub event_timeout: Duration,
    /// What a legacy client is told to wait before it comes back to a stream. Default one second.
    pub retry: Duration,
    /// How many connections are open at once from one address, or from addresses of IPv6 that share their first half;
    /// further ones are closed. As many WebSockets are open besides, and at most a quarter of all of them; further ones
    /// get 503. It does not count [behind a proxy](super::HttpBuilder::behind_proxy). Default 1024.
    pub connections_per_address: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body_bytes: toolwire_protocol::framing::DEFAULT_MAX_MESSAGE_BYTES,
            body_timeout: Duration::from_secs(30),
            header_bytes: 32 * 1024,
            headers: 100,
            header_timeout: Duration::from_secs(30),
            connections: 4096,
            requests_per_connection: 128,
            keep_alive: Duration::from_secs(5),
            write_timeout: Duration::from_secs(60),
            websockets: 1024,
            websocket_silence: Duration::from_secs(60),
            sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            session_handshake: Duration::from_secs(30),
            stream_events: 256,
            session_event_bytes: 8 * 1024 * 1024,
            event_timeout: Duration::from_secs(5 * 60),
            retry: Duration::from_secs(1),
            connections_per_address: 1024,
        }
    }
}
