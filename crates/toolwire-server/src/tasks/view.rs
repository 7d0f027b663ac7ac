//! What clients see of a task.

use toolwire_protocol::{
    codec::TaskState,
    wire::{CreateTaskResult, InputRequests},
};
use toolwire_store::TaskHead;

use super::service::TaskService;

/// The answer to a call that has become a task.
pub(super) fn created(service: &TaskService, head: &TaskHead) -> CreateTaskResult {
    state(service, head).created()
}

/// How a task stands, without its questions and its outcome.
fn state(service: &TaskService, head: &TaskHead) -> TaskState {
    TaskState {
        id: head.id.to_string(),
        status: head.status,
        is_error: head.is_error,
        message: service.open_note(&head.id, &head.note),
        created_ms: head.created_ms,
        updated_ms: head.updated_ms,
        expires_ms: head.expires_ms,
        poll_ms: head.poll_ms,
        open: InputRequests::default(),
        outcome: None,
    }
}
