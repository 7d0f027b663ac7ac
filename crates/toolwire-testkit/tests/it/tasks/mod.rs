//! Tasks on the wire, in both eras: the table of the design, cell by cell.

mod access;
mod calls;
mod client;
mod core;
mod extension;
#[cfg(feature = "http")]
mod handover;
#[cfg(all(unix, feature = "unix"))]
mod links;
mod push;

use std::time::Instant;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::Version;
use toolwire_server::{
    Args, BoxError, Context, Json, Limits, Progress, Server, ServerBuilder, TaskPolicy, ToolError, tool,
};
use toolwire_testkit::{Matrix, Setup, Wire};

use crate::PATIENCE;

/// The revision that has tasks in its core.
const CORE: Version = Version::V2025_11_25;
/// The one for which they are an extension.
const EXTENSION: Version = Version::V2026_07_28;

const TASKS: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

#[derive(Deserialize, JsonSchema)]
struct Depth {
    depth: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

async fn sum(Args(pair): Args<Pair>) -> String {
    (pair.a + pair.b).to_string()
}

async fn asks(cx: Context) -> Result<String, BoxError> {
    let depth = cx.elicit::<Depth>("How deep?").key("depth").accepted().await?;
    Ok(format!("{} deep", depth.depth))
}

async fn asks_twice(cx: Context) -> Result<String, BoxError> {
    let (one, two) = (cx.elicit::<Depth>("One?").key("one"), cx.elicit::<Depth>("Two?").key("two"));
    let (one, two) = tokio::join!(one.accepted(), two.accepted());
    Ok(format!("{} and {}", one?.depth, two?.depth))
}

async fn reports(cx: Context, progress: Progress) -> Result<&'static str, BoxError> {
    progress.report_message(1.0, 3.0, "fetched");
    cx.elicit::<Depth>("Go on?").key("go").accepted().await?;
    Ok("done")
}

async fn waits() -> &'static str {
    std::future::pending().await
}

fn builder() -> ServerBuilder {
    let optional = TaskPolicy::optional;
    Server::builder("tasks", "1.0")
        .tool(tool("plain", || async { "plain" }))
        .tool(tool("sum", sum).task(optional()))
        .tool(tool("later", sum).task(TaskPolicy::after(std::time::Duration::from_secs(60))))
        .tool(tool("fails", || async { Err::<&str, _>(ToolError::message("no such file")) }).task(optional()))
        .tool(tool("panics", || async { panic!("on purpose") as &str }).task(optional()))
        .tool(tool("number", || async { Json(7) }).task(optional()))
        .tool(tool("asks", asks).task(optional()))
        .tool(tool("asks_twice", asks_twice).task(optional()))
        .tool(tool("reports", reports).task(optional()))
        .tool(tool("waits", waits).task(optional()))
        .tool(tool("must", || async { "must" }).task(TaskPolicy::required()))
}

fn server() -> Server {
    builder().build().unwrap()
}

fn capabilities(version: Version) -> Value {
    if version == EXTENSION {
        json!({ "elicitation": {}, "extensions": { TASKS: {} } })
    } else {
        json!({ "elicitation": {} })
    }
}

async fn wire(setup: &Setup, server: &Server) -> Wire {
    setup.wire_with(server, |builder| builder.capabilities(capabilities(setup.version))).await
}

/// Calls a tool as a task, and gives the task as it was created.
async fn start(wire: &mut Wire, name: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": name, "arguments": arguments });
    if wire.version() == CORE {
        params["task"] = json!({ "ttl": 60_000 });
    }
    let reply = wire.request("tools/call", params).await;
    let created = if wire.version() == CORE { &reply.result()["task"] } else { reply.result() };
    assert!(created["taskId"].is_string(), "{:?}", reply.message());
    created.clone()
}

fn id(task: &Value) -> Value {
    json!({ "taskId": task["taskId"] })
}

/// Asks for a task until it has this status.
async fn until(wire: &mut Wire, task: &Value, status: &str) -> Value {
    until_it(wire, task, |now| now["status"] == status).await
}

/// Asks for a task until this is true of it.
async fn until_it(wire: &mut Wire, task: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let reply = wire.request("tasks/get", id(task)).await;
        let now = reply.result();
        if wanted(now) {
            return now.clone();
        }
        assert!(["working", "input_required"].contains(&now["status"].as_str().unwrap()), "{now}");
        assert!(began.elapsed() < PATIENCE, "the task does not become what is waited for: {now}");
        tokio::task::yield_now().await;
    }
}

/// The next message with this method, whatever else comes before it.
async fn next_of(wire: &mut Wire, method: &str) -> Value {
    loop {
        let message = wire.next().await;
        if message["method"] == method {
            return message;
        }
    }
}

fn depth(number: u32) -> Value {
    json!({ "action": "accept", "content": { "depth": number } })
}

/// Answers a question that came as a request.
async fn answer(wire: &mut Wire, question: &Value, result: Value) {
    wire.send_raw(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }).to_string()).await;
}

fn core() -> Matrix {
    Matrix::new().versions([CORE])
}

fn extension() -> Matrix {
    Matrix::new().versions([EXTENSION])
}

fn both() -> Matrix {
    Matrix::new().versions([CORE, EXTENSION])
}

fn few_tasks(tasks_per_owner: usize) -> Limits {
    Limits { tasks_per_owner, ..Limits::default() }
}
