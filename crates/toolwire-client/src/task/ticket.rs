//! What is written down of a task, so that somebody can go on with it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toolwire_protocol::Method;

use crate::error::Error;

/// How long a ticket may be.
const MAX_TICKET_BYTES: usize = 64 * 1024;
/// How long the id of a task may be.
pub(super) const MAX_ID_BYTES: usize = 1024;
/// The format.
const FORMAT: u32 = 1;

/// A ticket: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ticket {
    /// The format, under a name that tells what it is.
    #[serde(rename = "toolwire-task")]
    format: u32,
    /// What the server calls itself, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    /// The protocol version in which the task was begun.
    #[serde(default)]
    pub(super) version: String,
    pub(super) id: String,
    /// The tool that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    /// The keys of questions that are answered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) answered: BTreeSet<String>,
}

impl Ticket {
    pub(super) const fn new(
        server: Option<String>,
        version: String,
        id: String,
        tool: Option<String>,
        answered: BTreeSet<String>,
    ) -> Self {
        Self { format: FORMAT, server, version, id, tool, answered }
    }

    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.len() > MAX_TICKET_BYTES {
            return Err(not_a_ticket(format_args!("it is longer than {MAX_TICKET_BYTES} bytes")));
        }
        let ticket: Self = serde_json::from_str(text).map_err(not_a_ticket)?;
        if ticket.format != FORMAT {
            return Err(not_a_ticket(format_args!(
                "it has format {}, and this version of Toolwire knows {FORMAT}",
                ticket.format
            )));
        }
        if !is_id(&ticket.id) {
            return Err(not_a_ticket("the id of its task is not valid"));
        }
        Ok(ticket)
    }

    pub(super) fn write(&self) -> String {
        // Texts and numbers can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Whether this can be the id of a task.
pub(super) const fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID_BYTES
}

fn not_a_ticket(why: impl std::fmt::Display) -> Error {
    Error::invalid_params(&Method::GetTask.into(), format_args!("this is not the ticket of a task: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_a_line_that_can_be_read_again() {
        let answered = BTreeSet::from(["depth#2".to_owned(), "depth".to_owned()]);
        let ticket =
            Ticket::new(Some("s".into()), "2026-07-28".into(), "abc".into(), Some("t".into()), answered);
        let text = ticket.write();
        assert_eq!(
            text,
            r#"{"toolwire-task":1,"server":"s","version":"2026-07-28","id":"abc","tool":"t","answered":["depth","depth#2"]}"#
        );
        let read = Ticket::read(&format!(" {text}\n")).unwrap();
        assert_eq!((read.write(), read.id), (text, "abc".to_owned()));
    }

    #[test]
    fn what_is_not_a_ticket_is_refused() {
        let long = "x".repeat(MAX_ID_BYTES + 1);
        for text in [
            "",
            "abc",
            "{}",
            r#"{"toolwire-task":2,"id":"a"}"#,
            r#"{"toolwire-task":1,"id":""}"#,
            r#"{"toolwire-task":1,"id":"a","id":"b"}"#,
            &format!(r#"{{"toolwire-task":1,"id":"{long}"}}"#),
            &format!(r#"{{"toolwire-task":1,"id":"a"}}{}"#, " ".repeat(MAX_TICKET_BYTES) + "x"),
        ] {
            let error = Ticket::read(text).unwrap_err().to_string();
            assert!(error.contains("not the ticket of a task"), "{error}");
        }
    }
}
