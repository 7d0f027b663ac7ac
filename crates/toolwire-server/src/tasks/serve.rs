//! `tasks/get` and its siblings, in both eras.
//!
//! What is asked about a task is answered to its owner alone. Whoever asks about one that does not exist, that is
//! somebody else's, that has expired, or whose tool is hidden by now, hears the same; what a tool asks of its callers is
//! asked of those who look at its tasks, too.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use toolwire_protocol::{
    Feature, Method, RawJson, RpcError,
    classify::Fault,
    journal::Entry,
    wire::{ListTasksResult, TASKS_EXTENSION, TaskRequestParams, UpdateTaskRequestParams},
};
use toolwire_store::{Owner, TaskHead, TaskId, TaskView};

use super::{asker::Asker, service::TaskService, view};
use crate::{Context, Reply, ToolRoute, engine::EndsAt, handler::Answer};

/// How many tasks there are on a page.
const PAGE: usize = 100;

/// Answers a request that is about tasks.
pub(super) fn serve(service: Arc<TaskService>, cx: Context) -> Answer {
    if let Err(error) = check_extension(&cx) {
        return Box::pin(std::future::ready(Err(error)));
    }
    match cx.method().known() {
        Some(Method::GetTask) => Box::pin(get(service, cx)),
        Some(Method::GetTaskPayload) => Box::pin(result(service, cx)),
        Some(Method::ListTasks) => Box::pin(list(service, cx)),
        Some(Method::CancelTask) => Box::pin(cancel(service, cx)),
        Some(Method::UpdateTask) => Box::pin(update(service, cx)),
        _ => Box::pin(std::future::ready(Err(RpcError::method_not_found(cx.method().as_str())))),
    }
}

/// Where tasks are an extension, they are for those alone who have declared it, whichever task it is about.
pub(crate) fn check_extension(cx: &Context) -> Result<(), RpcError> {
    if cx.0.version.has(Feature::TasksExtension) && !cx.caller().has_extension(TASKS_EXTENSION) {
        return Err(extension_missing());
    }
    Ok(())
}

/// What those are told who would have to declare the extension.
pub(crate) fn extension_missing() -> RpcError {
    let required = serde_json::json!({ "extensions": { TASKS_EXTENSION: {} } });
    Fault::MissingClientCapability { required: RawJson::from(&required) }.rpc_error()
}

/// The same whatever the reason, so that nobody learns which tasks others have.
fn unknown() -> RpcError {
    RpcError::invalid_params("unknown task: it does not exist, has expired, or is not yours")
}

/// A task of the caller, and its tool, which the caller may use.
async fn find(
    service: &TaskService,
    cx: &Context,
    owner: &Owner,
    id: &TaskId,
) -> Result<(TaskView, Arc<ToolRoute>), RpcError> {
    let view = service.view(owner, id).await?.ok_or_else(unknown)?;
    let catalog = cx.server().catalog();
    let route = catalog.tools.get(&view.head.tool, &cx.viewer()).ok_or_else(unknown)?;
    cx.check_access(&route.needs.access)?;
    Ok((view, Arc::clone(route)))
}

/// The task that a request names.
fn named(text: &str) -> Result<TaskId, RpcError> {
    text.parse().map_err(|_| unknown())
}

async fn get(service: Arc<TaskService>, cx: Context) -> Result<Reply, RpcError> {
    let params: TaskRequestParams = cx.decode()?;
    let id = named(&params.task_id)?;
    let (view, route) = find(&service, &cx, &TaskService::owner(&cx), &id).await?;
    custom(&view::state(&service, &view, &route, cx.0.version)?.shown(cx.0.version))
}

async fn cancel(service: Arc<TaskService>, cx: Context) -> Result<Reply, RpcError> {
    let params: TaskRequestParams = cx.decode()?;
    let (id, owner, version) = (named(&params.task_id)?, TaskService::owner(&cx), cx.0.version);
    let (_, route) = find(&service, &cx, &owner, &id).await?;
    let cancelled = service.cancel(&owner, &id).await?.ok_or_else(unknown)?;
    if version.has(Feature::TasksExtension) {
        return Ok(Reply::Empty);
    }
    let state = view::state(&service, &cancelled.now, &route, version)?;
    if cancelled.was_terminal {
        return Err(RpcError::invalid_params(format!(
            "the task cannot be cancelled: it is {} already",
            state.status_in(version).as_str()
        )));
    }
    custom(&state.shown(version))
}

async fn update(service: Arc<TaskService>, cx: Context) -> Result<Reply, RpcError> {
    let params: UpdateTaskRequestParams = cx.decode()?;
    let (id, owner) = (named(&params.task_id)?, TaskService::owner(&cx));
    let (view, _) = find(&service, &cx, &owner, &id).await?;
    let answers: Vec<_> =
        params.input_responses.into_iter().map(|(key, answer)| Entry::answer(key, answer)).collect();
    service.answer_seen(&owner, &view, answers).await?.ok_or_else(unknown)?;
    Ok(Reply::Empty)
}

async fn list(service: Arc<TaskService>, cx: Context) -> Result<Reply, RpcError> {
    if !service.is_identified(&cx) {
        // Everybody would see what everybody has.
        return Err(RpcError::method_not_found(cx.method().as_str()));
    }
    let owner = TaskService::owner(&cx);
    let after = cx.0.peek.cursor.as_deref().map(read_cursor).transpose()?;
    let after = after.as_ref().map(|(created, id)| (*created, id));
    // One more than a page has, to know whether there are more.
    let mut heads = service.list(&owner, after, PAGE + 1).await?;
    let more = heads.len() > PAGE;
    heads.truncate(PAGE);
    let next = heads.last().filter(|_| more).map(cursor);
    let (catalog, viewer) = (cx.server().catalog(), cx.viewer());
    // What cannot be looked at is not listed either.
    let visible = |head: &&TaskHead| {
        catalog.tools.get(&head.tool, &viewer).is_some_and(|route| viewer.may_use(&route.needs.access))
    };
    let tasks = heads.iter().filter(visible).map(|head| view::of_head(&service, head).task(cx.0.version));
    let mut result = ListTasksResult::new(tasks.collect::<Vec<_>>());
    result.next_cursor = next;
    custom(&result)
}

/// Where the next page starts: behind this task, also if it is gone by then.
fn cursor(head: &TaskHead) -> String {
    BASE64_URL_SAFE_NO_PAD.encode([head.created_ms.to_be_bytes().as_slice(), head.id.as_bytes()].concat())
}

fn read_cursor(text: &str) -> Result<(u64, TaskId), RpcError> {
    let read = || {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (created, id) = bytes.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*created), TaskId::from_bytes(id.try_into().ok()?)))
    };
    read().ok_or_else(|| RpcError::invalid_params("tasks/list: the cursor is not one of this server"))
}

/// Waits for the end of a task, and puts its questions to the client meanwhile.
async fn result(service: Arc<TaskService>, cx: Context) -> Result<Reply, RpcError> {
    let params: TaskRequestParams = cx.decode()?;
    let (id, owner, version) = (named(&params.task_id)?, TaskService::owner(&cx), cx.0.version);
    // Before the first look, so that no change falls between.
    let mut watch = service.watch(id);
    let mut asker = Asker::new(&service, &cx, id);
    let end = cx.extension::<EndsAt>();
    loop {
        let (view, route) = find(&service, &cx, &owner, &id).await?;
        let state = view::state(&service, &view, &route, version)?;
        if let Some(payload) = state.payload() {
            asker.withdraw();
            return payload.map(Reply::CallTool);
        }
        asker.ask(&state.open).await;
        tokio::select! {
            biased;
            () = EndsAt::reached(end) => return Err(RpcError::internal("the token has expired; ask again")),
            () = cx.server().until_shutdown() => {
                return Err(RpcError::internal("the server is shut down; the task goes on, ask again"));
            }
            () = watch.changed() => {}
            () = asker.others_changed() => {}
        }
    }
}

fn custom<T: serde::Serialize>(result: &T) -> Result<Reply, RpcError> {
    RawJson::of(result).map(Reply::Custom).map_err(|_| RpcError::internal("the task could not be serialised"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_a_moment_and_a_task() {
        let head = TaskHead::new(TaskId::from_bytes([7; 24]), "t", 1_764_066_600_000);
        assert_eq!(read_cursor(&cursor(&head)), Ok((head.created_ms, head.id)));
        for text in ["", "x", "AAAA", &cursor(&head)[1..], &format!("{}A", cursor(&head))] {
            assert!(read_cursor(text).is_err(), "{text}");
        }
    }
}
