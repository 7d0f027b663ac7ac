//! From what is stored of a task to what clients are told of it.

use toolwire_protocol::{
    RpcError, Version,
    codec::{TaskOutcome, TaskState, adapt_to_output_schema},
    wire::{CallToolResult, CreateTaskResult, InputRequest, InputRequests},
};
use toolwire_store::{Outcome, TaskHead, TaskView};

use super::service::TaskService;
use crate::ToolRoute;

/// The answer to a call that has become a task.
pub(crate) fn created(service: &TaskService, head: &TaskHead) -> CreateTaskResult {
    of_head(service, head).created()
}

/// What a list shows of a task.
pub(crate) fn of_head(service: &TaskService, head: &TaskHead) -> TaskState {
    TaskState {
        id: head.id.to_string(),
        status: head.status,
        is_error: head.is_error,
        message: service.open_note(&head.id, &head.note),
        created_ms: head.created_ms,
        updated_ms: head.updated_ms,
        expires_ms: head.expires_ms,
        poll_ms: head.poll_ms,
        open: InputRequests::new(),
        outcome: None,
    }
}

/// Everything that a client may be told of a task, for the revision that it speaks.
///
/// # Errors
/// When something of it cannot be opened or read by this server.
pub(crate) fn state(
    service: &TaskService,
    view: &TaskView,
    route: &ToolRoute,
    version: Version,
) -> Result<TaskState, RpcError> {
    let id = &view.head.id;
    let mut state = of_head(service, &view.head);
    for open in &view.open {
        let question = service.open_question(id, &open.key, &open.question);
        let question = question.map_err(|error| error.rpc_error())?;
        state
            .open
            .insert(open.key.clone(), question.decode::<InputRequest>().map_err(|error| unread(&error))?);
    }
    let outcome = view.outcome.as_ref().map(|outcome| service.open_outcome(id, outcome)).transpose();
    state.outcome = match outcome.map_err(|error| error.rpc_error())? {
        None => None,
        Some(Outcome::Result(result)) => {
            let mut result: CallToolResult = result.decode().map_err(|error| unread(&error))?;
            if let Some(output) = &route.output {
                adapt_to_output_schema(&mut result, &output.schema, version);
            }
            Some(TaskOutcome::Result(result))
        }
        Some(Outcome::Error(error)) => {
            Some(TaskOutcome::Error(error.decode().map_err(|error| unread(&error))?))
        }
    };
    Ok(state)
}

fn unread(error: &serde_json::Error) -> RpcError {
    tracing::error!(%error, "what is stored of a task cannot be read");
    RpcError::internal("what is stored of this task cannot be read by this server")
}
