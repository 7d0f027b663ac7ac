//! A server that cannot be reached for a while: what is tried again, and for how long.

use std::time::Duration;

use tokio::time::Instant;
use toolwire_protocol::ErrorCode;

use crate::{
    client::Client,
    error::{Error, ErrorKind},
    settings::pause,
};

/// Failures in a row.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    since: Option<Instant>,
    attempts: u32,
}

impl Trouble {
    /// It works again.
    pub(super) fn over(&mut self) {
        *self = Self::default();
    }

    /// How long to wait before the next attempt.
    ///
    /// # Errors
    /// The error itself, when another attempt cannot help or there were enough.
    pub(super) fn after(&mut self, client: &Client, error: Error) -> Result<Duration, Error> {
        if is_final(client, &error) {
            return Err(error);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let patience = client.settings().limits.task_outage;
        if since.elapsed() >= patience {
            let hint = format!("that has been so for {patience:?}; the task itself may go on");
            return Err(error.with_hint(&hint).with_limit("task_outage"));
        }
        let pause = pause(self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        tracing::debug!(%error, ?pause, "the server of a task cannot be asked; trying again");
        Ok(pause.min(patience.saturating_sub(since.elapsed())))
    }
}

/// Whether asking again cannot help.
fn is_final(client: &Client, error: &Error) -> bool {
    match error.kind() {
        // Overloaded or broken for now, or something between us and the server is.
        _ if matches!(error.status(), Some(408 | 425 | 429 | 500..=599)) => false,
        _ if error.status().is_some() => true,
        ErrorKind::Rpc => error.rpc().is_none_or(|error| error.code != ErrorCode::INTERNAL_ERROR),
        ErrorKind::Timeout | ErrorKind::Connect | ErrorKind::Busy => false,
        ErrorKind::Closed => client.host().hub.is_closed(),
        _ => true,
    }
}
