//! Handlers that go on after their request was answered.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context as Task, Poll},
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use toolwire_protocol::RpcError;
use toolwire_server::{
    Context, IntoToolOutput, Reply, Route, Server, State,
    engine::{DetachedRun, Messages},
    tool,
};

use crate::wire::{Wire, modern, request};

#[derive(Deserialize, JsonSchema)]
struct Name {
    #[expect(dead_code, reason = "nobody answers")]
    name: String,
}

/// Starts what it is around, hands it over, and answers at once.
#[derive(Clone)]
struct Start(mpsc::UnboundedSender<(DetachedRun, Messages)>);

impl tower_layer::Layer<Route> for Start {
    type Service = Starting;

    fn layer(&self, inner: Route) -> Starting {
        Starting { inner, started: self.0.clone() }
    }
}

#[derive(Clone)]
struct Starting {
    inner: Route,
    started: mpsc::UnboundedSender<(DetachedRun, Messages)>,
}

impl tower_service::Service<Context> for Starting {
    type Response = Reply;
    type Error = RpcError;
    type Future = Ready<Result<Reply, RpcError>>;

    fn poll_ready(&mut self, task: &mut Task<'_>) -> Poll<Result<(), RpcError>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, cx: Context) -> Self::Future {
        let work = self.inner.call(cx.clone());
        self.started.send(DetachedRun::with_messages(&cx, work)).unwrap();
        ready("started".into_tool_output())
    }
}

async fn work(cx: Context, State(go_on): State<Arc<Notify>>) -> String {
    go_on.notified().await;
    cx.progress().report(1.0, 2.0);
    let asked = cx.elicit::<Name>("Who?").await.map(drop).unwrap_err();
    format!("cancelled: {}; {asked}", cx.is_cancelled())
}

fn call(id: u32, version: &str) -> Value {
    let params = json!({"name": "work", "_meta": {"progressToken": "p"}});
    if version != "2026-07-28" {
        return request(id, "tools/call", params);
    }
    let mut call = modern(id, "tools/call", params);
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    call
}

#[tokio::test(start_paused = true)]
async fn a_run_outlives_its_answer_its_cancellation_and_its_connection() {
    for version in ["2025-11-25", "2026-07-28"] {
        let (started, mut runs) = mpsc::unbounded_channel();
        let go_on = Arc::new(Notify::new());
        let server = Server::builder("t", "1")
            .state(Arc::clone(&go_on))
            .tool(tool("work", work).layer(Start(started)))
            .build()
            .unwrap();
        let mut wire = Wire::connect(&server);
        if version != "2026-07-28" {
            wire.handshake(version, json!({"elicitation": {}})).await;
        }
        let answer = wire.ask(&call(1, version)).await;
        assert_eq!(answer["result"]["content"][0]["text"], "started", "{answer}");
        let (run, messages) = runs.recv().await.unwrap();
        let run = tokio::spawn(run);
        wire.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        )
        .await;
        drop(wire);
        server.shutdown();
        tokio::task::yield_now().await;

        go_on.notify_one();
        let progress = messages.next().await.unwrap();
        let progress: Value = serde_json::from_slice(&progress).unwrap();
        assert_eq!(progress["params"]["progress"], 1.0, "{progress}");
        let Reply::CallTool(result) = run.await.unwrap().unwrap() else { panic!("not the result of a tool") };
        let text = result.content[0].as_text().unwrap();
        assert_eq!(text, "cancelled: false; the user cannot be asked: the request was answered already");
        assert_eq!(messages.next().await, None, "the messages end with the run");
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_tells_the_tasks_of_its_handler() {
    let (started, mut runs) = mpsc::unbounded_channel();
    let (left, mut waiting) = mpsc::unbounded_channel();
    let leave_a_task = move |cx: Context| {
        let left = left.clone();
        async move {
            left.send(tokio::spawn(cx.cancelled())).unwrap();
            std::future::pending::<()>().await;
        }
    };
    let server =
        Server::builder("t", "1").tool(tool("work", leave_a_task).layer(Start(started))).build().unwrap();
    let mut wire = Wire::connect(&server);
    wire.ask(&call(1, "2026-07-28")).await;
    let (mut run, _) = runs.recv().await.unwrap();
    assert!(futures_poll(&mut run).is_pending());
    let task = waiting.recv().await.unwrap();
    drop(run);
    task.await.unwrap();
}

fn futures_poll(run: &mut DetachedRun) -> Poll<Result<Reply, RpcError>> {
    use std::{future::Future, pin::Pin, task::Waker};
    Pin::new(run).poll(&mut Task::from_waker(Waker::noop()))
}
