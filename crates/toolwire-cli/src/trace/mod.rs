//! Recorded conversations: the format, writing it and reading it.
//!
//! A trace is text: a [`Header`], then one [`Line`] for each message that passed, all of them JSON. Times count
//! from the start, so that two recordings of the same conversation look alike. Secrets are taken out while it is
//! written, as far as their names give them away; `requestState` stays, because a replay needs it and only the
//! server can read it.

mod conversation;
mod read;
mod record;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use conversation::{Conversation, Exchange, Item, Notice, Outcome, asks_for_input};
pub(crate) use read::{Event, Problem, Trace, What};
pub(crate) use record::Recorder;

/// The version of the format. Readers refuse what is newer than themselves.
const FORMAT: u32 = 1;

/// How large a trace may become, and how large a file is read: 1 GiB.
const MAX_BYTES: u64 = 1 << 30;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version of the format; that it is there tells a trace from other files.
    #[serde(rename = "toolwireTrace")]
    pub(crate) format: u32,
    /// What has written it.
    pub(crate) program: String,
    /// When it began, in UTC.
    pub(crate) started: String,
    /// What people call the first server in it.
    pub(crate) server: String,
    /// Where that is, without secrets.
    pub(crate) target: String,
    /// How it is reached, in one word.
    pub(crate) transport: String,
}

/// One thing that happened.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Microseconds since the start.
    micros: u64,
    direction: Direction,
    /// Who was spoken to.
    server: String,
    /// The whole JSON-RPC message that was sent or received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
    /// What went wrong or why it ended, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Which way something went, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Sent,
    Received,
    Failed,
    Closed,
}

/// Who has said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Client,
    Server,
}

#[cfg(test)]
mod tests;
