//! The server that the tests call.

use std::{net::SocketAddr, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc},
    task::JoinHandle,
};
use toolwire_http::server::{HttpBuilder, HttpRequest, HttpService};
use toolwire_protocol::{ErrorCode, classify::Fault};
use toolwire_server::{Args, Context, Log, Progress, Server, State, ToolError, tool};

use crate::PATIENCE;

/// What handlers report, and what they wait for.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) said: mpsc::UnboundedSender<&'static str>,
    pub(crate) go: Arc<Notify>,
}

/// A server that is served, and the strings to pull.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
    pub(crate) heard: mpsc::UnboundedReceiver<&'static str>,
    pub(crate) go: Arc<Notify>,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

async fn add(Args(sum): Args<Sum>) -> String {
    (sum.a + sum.b).to_string()
}

/// Says when it ends without having finished.
struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

async fn hang(State(stage): State<Stage>, cx: Context) -> String {
    let _guard = Dropped(stage.said.clone());
    let said = stage.said.clone();
    let cancelled = cx.cancelled();
    tokio::spawn(async move {
        cancelled.await;
        let _ = said.send("cancelled");
    });
    let _ = stage.said.send("started");
    std::future::pending().await
}

async fn wait(State(stage): State<Stage>) -> &'static str {
    let _ = stage.said.send("started");
    stage.go.notified().await;
    "done"
}

async fn steps(progress: Progress, State(stage): State<Stage>) -> &'static str {
    progress.report(0.0, 100.0);
    stage.go.notified().await;
    progress.report(50.0, 100.0);
    progress.report(100.0, 100.0);
    "done"
}

async fn quick_steps(progress: Progress) -> &'static str {
    progress.report(1.0, 2.0);
    progress.report(2.0, 2.0);
    "done"
}

async fn chatty(log: Log) -> &'static str {
    log.info("hello");
    log.debug("details");
    "done"
}

/// Sends much more than anything between it and the client can hold.
async fn flood(log: Log, State(stage): State<Stage>) -> &'static str {
    let _guard = Dropped(stage.said.clone());
    let line = "x".repeat(64 * 1024);
    loop {
        log.info(&line);
        tokio::task::yield_now().await;
    }
}

async fn needy() -> Result<String, ToolError> {
    let required = serde_json::from_value(json!({ "sampling": {} })).map_err(|_| ToolError::message("?"))?;
    Err(ToolError::Rpc(Fault::MissingClientCapability { required }.rpc_error()))
}

async fn relays() -> Result<String, ToolError> {
    Err(ToolError::rpc(ErrorCode::HEADER_MISMATCH, "from upstream"))
}

async fn agent(request: HttpRequest) -> String {
    request.header("user-agent").unwrap_or("?").to_owned()
}

fn mirrored() -> toolwire_server::ToolRoute {
    let schema = json!({
        "type": "object",
        "properties": {
            "value": { "type": "string", "x-mcp-header": "Value" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
        },
    });
    tool("mirrored", || async { "fine" }).input_schema(schema)
}

fn server(stage: Stage, limits: toolwire_server::Limits) -> Server {
    Server::builder("fixture", "1.0")
        .state(stage)
        .limits(limits)
        .tool(tool("add", add))
        .tool(tool("hang", hang))
        .tool(tool("wait", wait))
        .tool(tool("steps", steps))
        .tool(tool("quick_steps", quick_steps))
        .tool(tool("chatty", chatty))
        .tool(tool("flood", flood))
        .tool(tool("needy", needy))
        .tool(tool("relays", relays))
        .tool(tool("agent", agent))
        .tool(tool("panics", || async { panic!("on purpose") as &'static str }))
        .tool(mirrored())
        .build()
        .unwrap()
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with(|builder| builder).await
    }

    pub(crate) async fn with(change: impl FnOnce(HttpBuilder) -> HttpBuilder) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").await.unwrap(), change)
    }

    /// Serves on this listener.
    pub(crate) fn at(listener: TcpListener, change: impl FnOnce(HttpBuilder) -> HttpBuilder) -> Self {
        let limits =
            toolwire_server::Limits { drain_timeout: PATIENCE, ..toolwire_server::Limits::default() };
        Self::serve(listener, limits, change)
    }

    pub(crate) async fn with_limits(
        limits: toolwire_server::Limits,
        change: impl FnOnce(HttpBuilder) -> HttpBuilder,
    ) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), limits, change)
    }

    fn serve(
        listener: TcpListener,
        limits: toolwire_server::Limits,
        change: impl FnOnce(HttpBuilder) -> HttpBuilder,
    ) -> Self {
        let (said, heard) = mpsc::unbounded_channel();
        let go = Arc::new(Notify::new());
        let server = server(Stage { said, go: Arc::clone(&go) }, limits);
        let address = listener.local_addr().unwrap();
        let service = change(HttpService::builder(server.clone()).path("/mcp")).build().unwrap();
        let serving = tokio::spawn(service.serve(listener).into_future());
        Self { address, server, heard, go, serving }
    }

    /// Waits until a handler says this.
    pub(crate) async fn hears(&mut self, word: &str) {
        assert_eq!(self.next_word().await, word);
    }

    /// Waits until the handler `hang` has been stopped and its other tasks have been told, in any order.
    pub(crate) async fn hears_the_end(&mut self) {
        let mut both = [self.next_word().await, self.next_word().await];
        both.sort_unstable();
        assert_eq!(both, ["cancelled", "dropped"]);
    }

    async fn next_word(&mut self) -> &'static str {
        let heard = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        heard.expect("nothing was heard").unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
