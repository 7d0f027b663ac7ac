//! A client of a few lines: one request at a time, raw bytes back.

use serde_json::{Value, json};
use toolwire::{
    Server,
    memory::{self, MemorySink, MemorySource},
    transport::{Duplex, Sink, Source},
};

pub(crate) struct Session {
    source: MemorySource,
    sink: MemorySink,
    last_id: u64,
}

impl Session {
    /// Serves in the background and shakes hands.
    pub(crate) async fn start(server: Server) -> Self {
        let (ours, theirs) = memory::pair();
        tokio::spawn(async move { server.serve(theirs).await });
        let (source, sink) = ours.split();
        let mut session = Self { source, sink, last_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        session.ask("initialize", &hello).await;
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        session
    }

    /// The whole response, as it came.
    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> String {
        self.last_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.send(&request).await;
        let response = self.source.receive().await.expect("no fault").expect("the server stays");
        String::from_utf8(response.to_vec()).expect("JSON is UTF-8")
    }

    /// The answer to a message, as it came.
    pub(crate) async fn ask_raw(&mut self, message: &str) -> String {
        self.sink.send(message.to_owned().into()).await.expect("the server listens");
        let response = self.source.receive().await.expect("no fault").expect("the server stays");
        String::from_utf8(response.to_vec()).expect("JSON is UTF-8")
    }

    /// The result of a request that succeeds.
    pub(crate) async fn result(&mut self, method: &str, params: &Value) -> Value {
        let response: Value = serde_json::from_str(&self.ask(method, params).await).expect("a response");
        response.get("result").cloned().unwrap_or_else(|| panic!("{response}"))
    }

    async fn send(&mut self, message: &Value) {
        self.sink.send(message.to_string().into()).await.expect("the server listens");
    }
}
