//! From a request to its handler, and from the handler's reply to bytes.

use std::{
    future::{Future, ready},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use toolwire_protocol::{
    Method, MethodName, RpcError, Version,
    codec::{CreatedTask, adapt_error, adapt_to_output_schema},
    envelope::{write_error, write_response},
    wire::{
        CallToolResult, CompleteRequestParams, CompletionReference, Content, DiscoverResult, EmptyResult,
    },
};

use crate::{
    Context, Reply, Server,
    catalog::{Catalog, PageRequest},
    handler::{Answer, SharedEndpoint},
    listen,
    output::not_found,
    reply::Prepared,
    route::{ToolRoute, check_prompt_arguments, read_listing_cursor, run_completer, run_listing},
};

/// Starts the handling of a request whose era, method and headers have passed the checks of `classify`.
pub(crate) fn dispatch(cx: Context) -> Answer {
    match cx.server().outer_layers().cloned() {
        Some(layered) => layered.call(cx),
        None => route(cx),
    }
}

/// Finds who answers.
pub(crate) fn route(cx: Context) -> Answer {
    // The parameters of a custom method have names and types of its own; only `_meta` belongs to every method.
    let is_custom = cx.method().known().is_none();
    if let Some(fault) = cx.0.peek.fault.as_ref().filter(|fault| !is_custom || fault.member == "_meta") {
        return now(Err(RpcError::invalid_params(format!("{}: {fault}", cx.method()))));
    }
    let method = match cx.method() {
        MethodName::Known(method) => *method,
        MethodName::Unknown(name) => {
            return match cx.server().custom(name).cloned() {
                Some(endpoint) => endpoint.call(cx),
                None => now(Err(RpcError::method_not_found(name))),
            };
        }
    };
    let catalog = cx.server().catalog();
    match method {
        Method::CallTool => call_tool(cx, &catalog),
        Method::GetPrompt => get_prompt(cx, &catalog),
        Method::ReadResource => read_resource(cx, &catalog),
        Method::Complete => Box::pin(complete(cx, catalog)),
        Method::Listen => Box::pin(listen::serve(cx)),
        Method::ListTools => list(&cx, |request| catalog.list_tools(request)),
        Method::ListPrompts => list(&cx, |request| catalog.list_prompts(request)),
        Method::ListResources => list_resources(cx, catalog),
        Method::ListResourceTemplates => list(&cx, |request| catalog.list_templates(request)),
        Method::Discover => now(discover(cx.server(), &catalog, cx.0.version)),
        Method::GetTask
        | Method::GetTaskPayload
        | Method::ListTasks
        | Method::CancelTask
        | Method::UpdateTask => match cx.server().tasks().cloned() {
            Some(tasks) => tasks.serve(cx),
            None => now(Err(RpcError::method_not_found(method.as_str()))),
        },
        other => now(Err(RpcError::method_not_found(other.as_str()))),
    }
}

fn now(result: Result<Reply, RpcError>) -> Answer {
    Box::pin(ready(result))
}

fn list(cx: &Context, page: impl FnOnce(&PageRequest<'_>) -> Result<Prepared, RpcError>) -> Answer {
    let server = cx.server();
    let request = PageRequest {
        version: cx.0.version,
        cursor: cx.0.peek.cursor.as_deref(),
        items: server.limits().page_items.max(1),
        codec: server.codec(),
        cache: server.list_cache(),
        viewer: cx.viewer(),
    };
    now(page(&request).map(Reply::Prepared))
}

/// The fixed resources, then those that templates list when they are asked.
fn list_resources(cx: Context, catalog: Arc<Catalog>) -> Answer {
    let listing = match cx.0.peek.cursor.as_deref() {
        Some(cursor) => read_listing_cursor(cursor)
            .map(|(number, theirs)| (number, Some(theirs).filter(|text| !text.is_empty()))),
        None => catalog.lists_only_templates(&cx.viewer()).then_some((0, None)),
    };
    match listing.map(|(number, theirs)| (number, theirs.map(str::to_owned))) {
        Some((number, theirs)) => Box::pin(run_listing(cx, catalog, number, theirs)),
        None => list(&cx, |request| catalog.list_resources(request)),
    }
}

fn discover(server: &Server, catalog: &Catalog, version: Version) -> Result<Reply, RpcError> {
    let versions: Vec<String> =
        catalog.served(server.has_legacy()).modern_first().iter().map(ToString::to_string).collect();
    let mut result = DiscoverResult::new(versions, catalog.capabilities.clone()).cached(server.list_cache());
    result.instructions = server.instructions().map(Into::into);
    let mut bytes = Vec::new();
    server
        .codec()
        .write(version, result, &mut bytes)
        .map_err(|_| RpcError::internal("the description of the server could not be serialised"))?;
    Ok(Reply::Prepared(Prepared(bytes.into())))
}

fn call_tool(cx: Context, catalog: &Catalog) -> Answer {
    let Some(name) = cx.0.peek.name.as_deref() else {
        return now(Err(RpcError::invalid_params("tools/call needs the \"name\" of a tool")));
    };
    let Some(route) = catalog.tools.get(name, &cx.viewer()) else {
        return now(Err(RpcError::invalid_params(format!("unknown tool: {name:?}"))));
    };
    // The request was admitted before it had its turn, and the tool may be another one by now.
    if let Err(error) = cx.check_access(&route.needs.access) {
        return now(Err(error));
    }
    // Set once: a request is routed once.
    let _ = cx.0.tool.set(Arc::clone(route));
    if (route.task.is_some() || cx.0.peek.task.is_some())
        && let Some(tasks) = cx.server().tasks().cloned()
    {
        return tasks.call(cx, Arc::clone(route));
    }
    inline_tool(cx, route)
}

/// A call that is answered by its result.
pub(crate) fn inline_tool(cx: Context, route: &Arc<ToolRoute>) -> Answer {
    if let Some(refused) = route.refused(&cx) {
        return now(refused);
    }
    let version = cx.0.version;
    let answer = route.endpoint.call(cx);
    if route.output.is_none() {
        return answer;
    }
    let route = Arc::clone(route);
    Box::pin(async move { Ok(adapted(&route, checked(&route, answer.await?)?, version)) })
}

/// Runs a tool by one of its handlers. Its result is checked, and the same for every revision.
pub(crate) fn run_tool(cx: Context, route: &Arc<ToolRoute>, endpoint: &SharedEndpoint) -> Answer {
    let answer = endpoint.call(cx);
    if route.output.is_none() {
        return answer;
    }
    let route = Arc::clone(route);
    Box::pin(async move { checked(&route, answer.await?) })
}

/// The result of a tool as the caller's revision was told that it would be.
pub(crate) fn adapted(route: &ToolRoute, mut reply: Reply, version: Version) -> Reply {
    if let (Reply::CallTool(result), Some(output)) = (&mut reply, &route.output)
        && result.is_error != Some(true)
    {
        adapt_to_output_schema(result, &output.schema, version);
    }
    reply
}

/// A result that contradicts the schema we have published would break clients that trust it.
fn checked(route: &ToolRoute, reply: Reply) -> Result<Reply, RpcError> {
    match reply {
        Reply::CallTool(result) => checked_result(route, result).map(Reply::CallTool),
        other => Ok(other),
    }
}

fn checked_result(route: &ToolRoute, mut result: CallToolResult) -> Result<CallToolResult, RpcError> {
    let Some(output) = &route.output else { return Ok(result) };
    if result.is_error == Some(true) {
        // An error has no structured content to check; its text is what matters.
        result.structured_content = None;
        return Ok(result);
    }
    let violation = match (output.check(), &result.structured_content) {
        (Err(problem), _) => Some(problem.to_owned()),
        (Ok(_), None) => Some("the result has no structured content".to_owned()),
        (Ok(schema), Some(content)) => match content.decode() {
            Ok(value) => schema.validate(&value).err().map(|violations| violations.to_string()),
            Err(error) => Some(error.to_string()),
        },
    };
    if let Some(violation) = violation {
        tracing::error!(
            tool = route.tool.name,
            violation,
            "a tool's result does not match its output schema"
        );
        let message =
            format!("tool {:?} returned a result that does not match its output schema", route.tool.name);
        return Err(RpcError::internal(message));
    }
    Ok(result)
}

fn get_prompt(cx: Context, catalog: &Catalog) -> Answer {
    let Some(name) = cx.0.peek.name.as_deref() else {
        return now(Err(RpcError::invalid_params("prompts/get needs the \"name\" of a prompt")));
    };
    match catalog.prompts.get(name, &cx.viewer()) {
        Some(route) => {
            let checked = cx.check_access(&route.needs.access);
            match checked.and_then(|()| check_prompt_arguments(name, &cx.arguments())) {
                Ok(()) => route.endpoint.call(cx),
                Err(error) => now(Err(error)),
            }
        }
        None => now(Err(RpcError::invalid_params(format!("unknown prompt: {name:?}")))),
    }
}

fn read_resource(cx: Context, catalog: &Catalog) -> Answer {
    let Some(uri) = cx.0.peek.uri.as_deref() else {
        return now(Err(RpcError::invalid_params("resources/read needs a \"uri\"")));
    };
    let viewer = cx.viewer();
    let (endpoint, mime_type, needs) = if let Some(route) = catalog.resources.get(uri, &viewer) {
        (&route.endpoint, &route.resource.mime_type, &route.needs)
    } else if let Some((route, captures)) = catalog.template_for(uri, &viewer) {
        let _ = cx.0.captures.set(captures);
        (&route.endpoint, &route.template.mime_type, &route.needs)
    } else {
        return now(Err(not_found(uri)));
    };
    if let Err(error) = cx.check_access(&needs.access) {
        return now(Err(error));
    }
    if let Some(mime_type) = mime_type {
        let _ = cx.0.mime_type.set(mime_type.clone());
    }
    endpoint.call(cx)
}

async fn complete(cx: Context, catalog: Arc<Catalog>) -> Result<Reply, RpcError> {
    let params: CompleteRequestParams = cx.decode()?;
    let viewer = cx.viewer();
    let (completers, needs) = match &params.reference {
        CompletionReference::Prompt(reference) => {
            let route = catalog.prompts.get(&reference.name, &viewer);
            let unknown = || RpcError::invalid_params(format!("unknown prompt: {:?}", reference.name));
            let route = route.ok_or_else(unknown)?;
            (&route.completers, &route.needs)
        }
        CompletionReference::Resource(reference) => {
            let route = catalog.templates.get(&reference.uri, &viewer);
            let unknown =
                || RpcError::invalid_params(format!("unknown resource template: {:?}", reference.uri));
            let route = route.ok_or_else(unknown)?;
            (&route.completers, &route.needs)
        }
        _ => return Err(RpcError::invalid_params("the \"ref\" is of an unknown type")),
    };
    cx.check_access(&needs.access)?;
    run_completer(completers, params, cx.clone()).await.map(Reply::Complete)
}

/// Runs a handler so that its panic becomes an error and nothing else is disturbed.
pub(crate) struct Shielded(pub(crate) Answer);

impl Future for Shielded {
    type Output = Result<Reply, RpcError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(task)));
        polled.unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(|s| &**s));
            tracing::error!(panic = text.unwrap_or("?"), "a handler panicked");
            Poll::Ready(Err(RpcError::internal("the handler panicked")))
        })
    }
}

/// The bytes of the answer, as the caller's revision wants them.
pub(crate) fn encode(cx: &Context, result: Result<Reply, RpcError>) -> Bytes {
    let (id, version, codec) = (cx.request_id(), cx.0.version, cx.server().codec());
    let reply = match result {
        Ok(reply) => reply,
        Err(error) => return write_error(Some(id), &adapt_error(version, error)),
    };
    let written = write_response::<serde_json::Error>(id, |out| match reply {
        Reply::CallTool(result) => {
            // Room for long texts at once, so that they do not move while they are written.
            out.reserve(result.content.iter().filter_map(Content::as_text).map(str::len).sum());
            codec.write(version, result, out)
        }
        Reply::GetPrompt(result) => codec.write(version, result, out),
        Reply::ReadResource(result) => codec.write(version, result, out),
        Reply::Complete(result) => codec.write(version, result, out),
        Reply::Listen(result) => codec.write(version, result, out),
        Reply::InputRequired(result) => codec.write(version, result, out),
        Reply::Task(created) => codec.write(version, CreatedTask::from(*created), out),
        Reply::Custom(result) => codec.write_custom(version, &result, out),
        Reply::Raw(result) => result.write(cx.method(), version, codec, out),
        // The engine has turned questions into a result of their own before, and routes their failures.
        Reply::Empty | Reply::NeedInput(_) | Reply::Failed(_) => {
            codec.write(version, EmptyResult::new(), out)
        }
        Reply::Prepared(Prepared(bytes)) => {
            // With room for the closing brace, or that would move the whole list again.
            out.reserve_exact(bytes.len() + 1);
            out.extend_from_slice(&bytes);
            Ok(())
        }
    });
    written.unwrap_or_else(|error| {
        tracing::error!(%error, method = %cx.method(), "a result could not be serialised");
        write_error(Some(id), &RpcError::internal("the result could not be serialised"))
    })
}
