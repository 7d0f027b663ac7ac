//! A server that wants to ask a model meets a person instead.

use inquire::{InquireError, Select, Text};
use owo_colors::OwoColorize;
use toolwire::wire::{Content, CreateMessageRequestParams, CreateMessageResult, Role, StopReason};

use super::form::heading;
use crate::{
    render::{indented, message, wrapped},
    terminal::{Terminal, printable},
};

const ANSWER: &str = "Answer it myself";
const REFUSE: &str = "Refuse";

/// Shows the conversation, and takes an answer or a refusal.
pub(super) fn ask(
    terminal: Terminal,
    server: &str,
    request: &CreateMessageRequestParams,
) -> Result<Option<CreateMessageResult>, InquireError> {
    heading(
        terminal,
        server,
        &format!("What would a model say to this, in at most {} tokens?", request.max_tokens),
    );
    if let Some(system) = &request.system_prompt {
        let text = format!("{}\n{}", "system".yellow().bold(), wrapped(&printable(system), 2));
        terminal.note(indented(&text, 2));
    }
    for said in &request.messages {
        terminal.note(indented(&message(said.role, said.content.as_slice()), 2));
    }
    match Select::new("Answer for the model?", vec![ANSWER, REFUSE]).without_help_message().prompt()? {
        ANSWER => {
            let text = Text::new("assistant").with_help_message("one line; Esc refuses").prompt()?;
            let result =
                CreateMessageResult::new(Role::Assistant, Content::text(text), "a person at a terminal");
            Ok(Some(result.stop_reason(StopReason::EndTurn)))
        }
        _ => Ok(None),
    }
}
