//! Log messages from server to client.

use super::{
    Meta,
    macros::{wire_enum, wire_struct},
};
use crate::RawJson;

wire_enum! {
    /// How serious a log message is: the levels of RFC 5424, from the least to the most serious.
    ///
    /// ```
    /// use toolwire_protocol::wire::LoggingLevel;
    ///
    /// assert!(LoggingLevel::Debug < LoggingLevel::Emergency);
    /// ```
    #[derive(PartialOrd, Ord)]
    #[expect(clippy::exhaustive_enums, reason = "RFC 5424 has exactly these eight")]
    pub enum LoggingLevel {
        /// Details for whoever is looking for a fault.
        Debug = "debug",
        /// Normal progress.
        Info = "info",
        /// Normal, but worth noticing.
        Notice = "notice",
        /// Something may be wrong.
        Warning = "warning",
        /// Something failed.
        Error = "error",
        /// A part of the system failed.
        Critical = "critical",
        /// Someone must act at once.
        Alert = "alert",
        /// Nothing works any more.
        Emergency = "emergency",
    }
}

impl LoggingLevel {
    /// All levels, the least serious first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];
}

wire_struct! {
    /// The parameters of `logging/setLevel`, before 2026-07-28.
    pub struct SetLevelRequestParams {
        /// The least serious level to send.
        level: LoggingLevel,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of `notifications/message`.
    pub struct LoggingMessageNotificationParams {
        /// How serious it is.
        level: LoggingLevel,
        /// Which part of the server says it.
        logger?: String,
        /// What is said: any JSON.
        data: RawJson,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}
