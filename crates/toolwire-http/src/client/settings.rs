//! Every setting of the HTTP client, with its name, its default and what it protects.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;

use super::authorize::Authorize;

/// How long it may take to reach the server: ten seconds.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to accept a message that has no answer, or to begin an event stream: thirty
/// seconds.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// How much of an error page is read to find out what it says.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How long it may take to read an error page.
pub(super) const ERROR_PATIENCE: Duration = Duration::from_secs(1);
/// How long messages that are under way, and the end of the session, may hold up the end of a connection.
pub(super) const CLOSING_PATIENCE: Duration = Duration::from_secs(2);
/// How long a request that nobody waits for may take to be accepted.
pub(super) const FORGOTTEN_PATIENCE: Duration = Duration::from_secs(10);
/// How many things in a row that are not messages are read from one stream.
pub(super) const MAX_GARBAGE: usize = 100;
/// How often in a row a stream is resumed or opened again in vain: with the pauses in between, for about a minute.
pub(super) const MAX_RESUMES: u32 = 8;
/// How many pages of the list of tools are read to find one tool.
pub(super) const MAX_TOOL_PAGES: usize = 64;

/// The first pause before a stream is opened again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause that this side makes of its own accord.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The longest pause that a server can ask for.
const LONGEST_ASKED_PAUSE: Duration = Duration::from_secs(60 * 60);

/// How long to wait before attempt number `attempt`, which counts from zero: what the server asked for at least, up to
/// an hour.
pub(super) fn pause(attempt: u32, asked: Option<Duration>) -> Duration {
    let own = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST_PAUSE);
    own.max(asked.unwrap_or_default().min(LONGEST_ASKED_PAUSE))
}

/// How much a client takes from its server. All limits are finite; change those that do not fit.
///
/// ```
/// use toolwire_http::client::HttpLimits;
///
/// let limits = HttpLimits { event_bytes: 64 * 1024, ..HttpLimits::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "meant to be written as a literal with ..HttpLimits::default()"
)]
pub struct HttpLimits {
    /// The largest event of a stream, in bytes. Default 16 MiB.
    pub event_bytes: usize,
    /// The largest response that is not a stream, and the largest message of a WebSocket, in bytes. Default 16 MiB.
    pub response_bytes: usize,
    /// The largest head of a response: its status line and all its headers, in bytes. Default 64 KiB.
    pub header_bytes: usize,
    /// The time that a response that is not a stream, or a message of a WebSocket, may take from its first byte to its last,
    /// however little comes at a time. Default five minutes.
    pub response_timeout: Duration,
    /// How many redirects, all within the same origin, one request follows. Default 5.
    pub redirects: usize,
    /// How many requests of one client have a connection or a stream at once; further ones wait. Default 512.
    pub open_streams: usize,
    /// How many connections to the server there are at once, of all clients that share this [`Http`](super::Http). A
    /// request that finds them all in use waits for one, for as long as connecting may take. Default 1024.
    pub connections: usize,
    /// How many tools whose arguments travel in headers are remembered. Default 4096.
    pub tool_plans: usize,
    /// How long the server at a WebSocket may say nothing, not even when it is asked whether it is still there,
    /// before it is given up. It is asked three times in that time. Default one minute.
    pub websocket_silence: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            event_bytes: 16 * 1024 * 1024,
            response_bytes: 16 * 1024 * 1024,
            header_bytes: 64 * 1024,
            response_timeout: Duration::from_secs(5 * 60),
            redirects: 5,
            open_streams: 512,
            connections: 1024,
            tool_plans: 4096,
            websocket_silence: Duration::from_secs(60),
        }
    }
}

/// What all connections of one [`Http`](super::Http) have in common.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Sent with every request.
    pub(super) headers: HeaderMap,
    /// Gives requests their credentials.
    pub(super) authorize: Option<Arc<dyn Authorize>>,
    pub(super) limits: HttpLimits,
    pub(super) send_timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_are_never_shorter_than_asked() {
        assert_eq!(pause(0, None), FIRST_PAUSE);
        assert_eq!(pause(3, None), FIRST_PAUSE * 8);
        assert_eq!(pause(u32::MAX, None), LONGEST_PAUSE);
        assert_eq!(pause(0, Some(Duration::from_millis(500))), Duration::from_millis(500));
        assert_eq!(pause(9, Some(Duration::from_secs(3600))), Duration::from_secs(3600));
        assert_eq!(pause(0, Some(Duration::MAX)), Duration::from_secs(3600));
    }
}
