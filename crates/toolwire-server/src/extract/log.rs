//! Log messages to the caller.

use serde::Serialize;
use toolwire_protocol::{
    Method, RawJson,
    wire::{LoggingLevel, LoggingMessageNotificationParams},
};

use crate::Context;

/// Sends log messages to the caller, as far as it wants them. An extractor.
///
/// Logging never blocks and never fails; what a slow reader cannot take is dropped and counted.
/// These messages are for the person at the other end. For your own logs use `tracing`.
///
/// ```
/// use toolwire_server::{Log, tool};
///
/// async fn import(log: Log) -> &'static str {
///     log.info("reading the file");
///     log.warning(serde_json::json!({ "line": 7, "problem": "no date" }));
///     "imported"
/// }
///
/// let route = tool("import", import);
/// ```
#[derive(Clone, Debug)]
pub struct Log {
    cx: Context,
    logger: Option<String>,
}

macro_rules! levels {
    ($($(#[$doc:meta])* $name:ident $level:ident;)+) => {$(
        $(#[$doc])*
        pub fn $name(&self, data: impl Serialize) {
            self.send(LoggingLevel::$level, data);
        }
    )+};
}

impl Log {
    pub(crate) fn new(cx: Context) -> Self {
        Self { cx, logger: None }
    }

    /// Names the part of the server that speaks.
    #[must_use]
    pub fn named(mut self, logger: impl Into<String>) -> Self {
        self.logger = Some(logger.into());
        self
    }

    /// Whether the caller wants messages of this level.
    pub fn is_wanted(&self, level: LoggingLevel) -> bool {
        self.cx.caller().wants_log(level)
    }

    /// Sends a message of any level. `data` is a text or anything that serialises.
    pub fn send(&self, level: LoggingLevel, data: impl Serialize) {
        if !self.is_wanted(level) {
            return;
        }
        let Ok(data) = RawJson::of(&data) else {
            tracing::warn!("a log message could not be serialised");
            return;
        };
        let mut params = LoggingMessageNotificationParams::new(level, data);
        params.logger.clone_from(&self.logger);
        self.cx.outbox().droppable(Method::LoggingMessage, &params);
    }

    levels! {
        /// Sends a debug message.
        debug Debug;
        /// Sends an informational message.
        info Info;
        /// Sends a message about something normal but significant.
        notice Notice;
        /// Sends a warning.
        warning Warning;
        /// Sends an error.
        error Error;
        /// Sends a message about a critical condition.
        critical Critical;
        /// Sends a message about something that must be acted upon at once.
        alert Alert;
        /// Sends a message that the system is unusable.
        emergency Emergency;
    }
}
