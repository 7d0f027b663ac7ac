//! What a client is configured with, and the limits that nobody needs to change.

use std::{sync::Arc, time::Duration};

use toolwire_protocol::wire::LoggingLevel;

use crate::{
    clock::{Clock, SystemClock},
    connect::EraChoice,
    limits::ClientLimits,
};

/// How many messages in a row may be unreadable before the connection is given up.
pub(crate) const MAX_INVALID_MESSAGES: usize = 100;
/// How many progress notifications of one request may wait for its caller; the latest one is always kept.
pub(crate) const MAX_WAITING_PROGRESS: usize = 64;
/// How many questions a server may ask in one round.
pub(crate) const MAX_QUESTIONS_PER_ROUND: usize = 64;
/// How many changed resources may wait in a listener before it says [`Resync`](crate::Change::Resync) instead.
pub(crate) const MAX_WAITING_UPDATES: usize = 1024;
/// How often a new session is told in a row what the lost one knew.
pub(crate) const MAX_RESTORE_ATTEMPTS: u32 = 8;

/// The first pause before something is tried again; it doubles each time.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before something is tried again.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause before a subscription is asked for again.
pub(crate) const LONGEST_RELISTEN_PAUSE: Duration = Duration::from_secs(60);
/// How long a reader waits for those who have not taken their answers yet.
pub(crate) const ROOM_PATIENCE: Duration = Duration::from_millis(250);
/// How long to wait for messages to be written, or for a reason, when a connection ends.
pub(crate) const CLOSING_PATIENCE: Duration = Duration::from_secs(2);

/// The pause before attempt number `attempt`, which counts from zero.
pub(crate) fn pause(attempt: u32) -> Duration {
    pause_up_to(attempt, LONGEST_PAUSE)
}

/// The pause before attempt number `attempt`, which counts from zero, and never longer than this.
pub(crate) fn pause_up_to(attempt: u32, longest: Duration) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt)).min(longest)
}

/// Everything that is not a handler.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) era: EraChoice,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) limits: ClientLimits,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            era: EraChoice::Auto,
            log_level: None,
            limits: ClientLimits::default(),
            clock: Arc::new(SystemClock),
        }
    }
}
