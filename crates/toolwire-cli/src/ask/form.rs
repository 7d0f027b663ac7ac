//! A form: every field, and then whether it is sent.

use inquire::{InquireError, Select};
use owo_colors::OwoColorize;
use serde_json::{Map, Value};
use toolwire::wire::RequestedSchema;

use super::{Field, Reply, required};
use crate::{
    render::wrapped,
    terminal::{Terminal, printable, printable_line},
};

const SEND: &str = "Send it";
const AGAIN: &str = "Start over";
const BACK: &str = "Go back to the form";
const DECLINE: &str = "Decline";
const CANCEL: &str = "Cancel";

/// A form that a server wants to be filled in.
pub(super) struct Form {
    terminal: Terminal,
    server: String,
    message: String,
    fields: Vec<Field>,
    /// What has been answered in advance.
    given: Map<String, Value>,
}

impl Form {
    pub(super) fn new(
        terminal: Terminal,
        server: &str,
        message: &str,
        schema: &RequestedSchema,
        given: Map<String, Value>,
    ) -> Self {
        let required = required(schema);
        let field = |(name, definition)| Field::new(name, definition, required.contains(name));
        let fields = schema.properties.iter().map(field).collect();
        Self { terminal, server: server.to_owned(), message: message.to_owned(), fields, given }
    }

    /// Asks for every field. Esc leaves the form, by declining or by going away.
    pub(super) fn ask(self) -> Result<Reply, InquireError> {
        heading(self.terminal, &self.server, &self.message);
        loop {
            let (question, choices, filled) = match self.fill_in() {
                Ok(filled) => ("Send this answer?", vec![SEND, AGAIN, DECLINE, CANCEL], filled),
                Err(InquireError::OperationCanceled) => {
                    ("Leave the form?", vec![BACK, DECLINE, CANCEL], Map::new())
                }
                Err(error) => return Err(error),
            };
            match Select::new(question, choices).without_help_message().prompt() {
                Ok(SEND) => return Ok(Reply::Accept(filled)),
                Ok(DECLINE) => return Ok(Reply::Decline),
                Ok(CANCEL) | Err(InquireError::OperationCanceled) => return Ok(Reply::Cancel),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fill_in(&self) -> Result<Map<String, Value>, InquireError> {
        let mut filled = self.given.clone();
        for field in self.fields.iter().filter(|field| !self.given.contains_key(&field.name)) {
            if let Some(value) = field.ask()? {
                filled.insert(field.name.clone(), value);
            }
        }
        Ok(filled)
    }
}

/// Says who asks, and what.
pub(super) fn heading(terminal: Terminal, server: &str, message: &str) {
    terminal.note(format!("{} {}", printable_line(server).bold(), "asks:".bold()));
    terminal.note(wrapped(&printable(message), 2));
}
