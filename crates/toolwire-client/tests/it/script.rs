//! A server that does what the test says: it expects messages and sends messages.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use toolwire_client::{Client, ClientBuilder, Error};
use toolwire_protocol::Version;
use toolwire_transport::{
    Duplex, Sink, Source,
    memory::{self, Memory, MemorySink, MemorySource},
};

/// Longer than anything a test waits for, by its own clock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

pub(crate) struct Script {
    source: MemorySource,
    sink: MemorySink,
}

impl Script {
    pub(crate) fn new(end: Memory) -> Self {
        let (source, sink) = end.split();
        Self { source, sink }
    }

    /// A client's end and the script at the other.
    pub(crate) fn pair() -> (Memory, Self) {
        let (client, server) = memory::pair();
        (client, Self::new(server))
    }

    /// The next message, or `None` when the client is gone.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let bytes = timeout(PATIENCE, self.source.receive()).await.expect("a message").unwrap()?;
        Some(serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// The next message, to the byte.
    pub(crate) async fn receive_text(&mut self) -> String {
        let bytes = timeout(PATIENCE, self.source.receive()).await.expect("a message").unwrap();
        String::from_utf8(bytes.expect("the client is still there").into()).unwrap()
    }

    /// The next message, which must be this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.receive().await.expect("the client is still there");
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Checks that the client has sent nothing else, and that it has gone.
    pub(crate) async fn expect_end(&mut self) {
        assert_eq!(self.receive().await, None);
    }

    /// The next message, if the client sends one without further ado. It must still be there.
    pub(crate) async fn receive_now(&mut self) -> Option<Value> {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let bytes = timeout(Duration::ZERO, self.source.receive()).await.ok()?;
        Some(serde_json::from_slice(&bytes.unwrap().expect("the client is still there")).expect("JSON"))
    }

    /// Checks that the client is there and says nothing.
    pub(crate) async fn expect_silence(&mut self) {
        if let Some(message) = self.receive_now().await {
            panic!("unexpected: {message}");
        }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_text(message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: impl Into<String>) {
        self.sink.send(text.into().into()).await.unwrap();
    }

    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub(crate) async fn fail(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub(crate) async fn progress(&mut self, request: &Value, progress: f64) {
        let token = request["params"]["_meta"]["progressToken"].clone();
        assert!(!token.is_null(), "progress was asked for: {request}");
        self.notify("notifications/progress", json!({"progressToken": token, "progress": progress})).await;
    }

    /// Answers `server/discover`.
    pub(crate) async fn discovered(&mut self) {
        let request = self.expect("server/discover").await;
        self.reply(&request, discovery()).await;
    }

    /// Answers `initialize` with this version, and takes the confirmation.
    pub(crate) async fn initialized(&mut self, version: Version) {
        let request = self.expect("initialize").await;
        self.reply(&request, initialization(version.as_str())).await;
        self.expect("notifications/initialized").await;
    }
}

pub(crate) fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true, "listChanged": true},
        "completions": {}, "logging": {},
    })
}

pub(crate) fn discovery() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"],
        "capabilities": capabilities(), "instructions": "be kind", "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "script", "version": "9"}},
    })
}

pub(crate) fn initialization(version: &str) -> Value {
    json!({
        "protocolVersion": version, "capabilities": capabilities(), "instructions": "be kind",
        "serverInfo": {"name": "script", "version": "9"},
    })
}

pub(crate) fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1")
}

/// A client that is connected in this version, and the script on the other side.
pub(crate) async fn connect(builder: ClientBuilder, version: Version) -> (Client, Script) {
    let (end, mut script) = Script::pair();
    let server = async {
        if version.is_modern() {
            script.discovered().await;
        } else {
            let probe = script.expect("server/discover").await;
            script.fail(&probe, -32601, "what?").await;
            script.initialized(version).await;
        }
    };
    let (client, ()) = tokio::join!(builder.connect(end), server);
    (client.unwrap(), script)
}

pub(crate) async fn modern() -> (Client, Script) {
    connect(builder(), Version::LATEST).await
}

pub(crate) async fn legacy() -> (Client, Script) {
    connect(builder(), Version::LATEST_LEGACY).await
}

/// Connects while `server` runs.
pub(crate) async fn attempt(
    builder: ClientBuilder,
    server: impl AsyncFnOnce(&mut Script),
) -> (Result<Client, Error>, Script) {
    let (end, mut script) = Script::pair();
    let (client, ()) = tokio::join!(builder.connect(end), server(&mut script));
    (client, script)
}
