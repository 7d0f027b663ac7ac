//! Tasks for people and for scripts.

use serde_json::{Value, json};
use std::path::Path;
use toolwire::{
    client::{CallOutcome, TaskState},
    wire::TaskStatus,
};

use crate::{
    failure::{Code, Failure, Result},
    render::Blocks,
    terminal::{Terminal, printable, printable_line},
};

/// The status in words.
pub(super) const fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Working => "working",
        TaskStatus::InputRequired => "waits for answers",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
        _ => "unknown",
    }
}

/// How a task stands, on one line.
pub(crate) fn line(tool: &str, state: &TaskState) -> String {
    let said = state.message().and_then(|message| message.lines().next()).map(printable_line);
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    format!("{} {}{said}", printable_line(tool), status(state.status()))
}

/// A task for scripts: its members as in 2025-11-25, and what is known of it here.
pub(super) fn to_json(state: &TaskState, tool: Option<&str>) -> Value {
    let mut task = serde_json::to_value(state.as_task()).unwrap_or_default();
    if let Some(tool) = tool {
        task["tool"] = json!(tool);
    }
    let questions: serde_json::Map<String, Value> =
        state.questions().map(|(key, question)| (key.to_owned(), json!(question))).collect();
    if !questions.is_empty() {
        task["questions"] = Value::Object(questions);
    }
    task
}

/// Shows what a tool has returned.
pub(super) fn result(
    outcome: &CallOutcome,
    output: Option<&Path>,
    terminal: Terminal,
    tool: &str,
) -> Result<()> {
    let blocks = Blocks { content: outcome.content(), structured: outcome.structured() };
    if terminal.json {
        if let Some(path) = output {
            Blocks { structured: None, ..blocks }.save(path)?;
        }
        terminal.print_json(outcome.as_result())?;
    } else {
        blocks.show(terminal, output)?;
    }
    if outcome.is_error() {
        let text = format!("the tool `{}` returned an error", printable(tool));
        return Err(Failure::new(Code::ToolError, text));
    }
    Ok(())
}
