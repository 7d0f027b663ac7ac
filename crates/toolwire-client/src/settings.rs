//! What a client is configured with: times and limits, all of them finite.

use std::{sync::Arc, time::Duration};

use toolwire_protocol::{Version, caching::CacheLimits, wire::LoggingLevel};

use crate::clock::{Clock, SystemClock};

/// How long a request may stay without an answer or progress: one minute.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a request may take altogether, whatever progress it makes: ten minutes.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long the first `server/discover` may stay unanswered before the server is taken for a legacy one.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many requests may wait for their answers at once.
pub const MAX_PENDING_REQUESTS: usize = 4096;
/// How many requests of the server may wait for a free handler.
pub const MAX_QUEUED_SERVER_REQUESTS: usize = 64;
/// How many handlers may run at once for requests of the server.
pub const MAX_CONCURRENT_HANDLERS: usize = 16;
/// How many messages in a row may be garbage before the connection is given up.
pub const MAX_CONSECUTIVE_GARBAGE: usize = 100;
/// How many messages a batch may hold.
pub const MAX_BATCH_MESSAGES: usize = 256;
/// How many progress notifications of one request may wait for its caller; the latest one is always kept.
pub const MAX_WAITING_PROGRESS: usize = 64;
/// How often a server may ask for input before one request is done.
pub const MAX_ROUNDS: usize = 10;
/// How many questions a server may ask in one round.
pub const MAX_QUESTIONS_PER_ROUND: usize = 64;
/// How many pages of a list are fetched.
pub const MAX_PAGES: usize = 1000;
/// How many listeners may be open at once.
pub const MAX_LISTENERS: usize = 256;
/// How many changed resources may wait in a listener before it says [`Resync`](crate::Change::Resync) instead.
pub const MAX_WAITING_UPDATES: usize = 1024;
/// How often a lost subscription is renewed in a row before the listener ends.
pub const MAX_RELISTENS: u32 = 8;

/// The first pause before something is tried again; it doubles each time.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before something is tried again.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long to wait for messages to be written, or for a reason, when a connection ends.
pub(crate) const CLOSING_PATIENCE: Duration = Duration::from_secs(2);

/// The pause before attempt number `attempt`, which counts from zero.
pub(crate) fn pause(attempt: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST_PAUSE)
}

/// Which protocol versions to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EraChoice {
    /// Find out what the server speaks, and prefer the newest.
    #[default]
    Auto,
    /// Only versions without a handshake: `server/discover` opens.
    Modern,
    /// Only versions with a handshake: `initialize` opens.
    Legacy,
    /// Only this version.
    Version(Version),
}

impl EraChoice {
    /// The versions it allows, oldest first.
    pub(crate) fn offered(self) -> Vec<Version> {
        let allowed = |version: &Version| match self {
            Self::Auto => true,
            Self::Modern => version.is_modern(),
            Self::Legacy => !version.is_modern(),
            Self::Version(only) => *version == only,
        };
        Version::ALL.into_iter().filter(allowed).collect()
    }
}

/// Everything that is not a handler.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) era: EraChoice,
    pub(crate) request_timeout: Duration,
    pub(crate) total_timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) limits: Limits,
    pub(crate) cache: CacheLimits,
    pub(crate) clock: Arc<dyn Clock>,
}

/// How much a client holds on behalf of its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) pending_requests: usize,
    pub(crate) queued_server_requests: usize,
    pub(crate) concurrent_handlers: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            era: EraChoice::Auto,
            request_timeout: REQUEST_TIMEOUT,
            total_timeout: TOTAL_TIMEOUT,
            probe_timeout: PROBE_TIMEOUT,
            log_level: None,
            limits: Limits {
                pending_requests: MAX_PENDING_REQUESTS,
                queued_server_requests: MAX_QUEUED_SERVER_REQUESTS,
                concurrent_handlers: MAX_CONCURRENT_HANDLERS,
            },
            cache: CacheLimits::default(),
            clock: Arc::new(SystemClock),
        }
    }
}
