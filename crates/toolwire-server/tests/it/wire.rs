//! A client that writes and reads raw messages.

use std::{panic::Location, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use toolwire_server::{Extensions, Principal, Server};
use toolwire_transport::{
    Duplex, Sink, Source,
    memory::{self, Memory},
};

/// The timeout for everything that a test expects to happen at once, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that happens in another task, where no message tells of it.
#[track_caller]
pub(crate) fn until(condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let happened = async {
            while !condition() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, happened).await;
        assert!(waited.is_ok(), "what was waited for at {caller} did not happen");
    }
}

pub(crate) struct Wire {
    source: <Memory as Duplex>::Source,
    sink: <Memory as Duplex>::Sink,
}

impl Wire {
    pub(crate) fn connect(server: &Server) -> Self {
        let (ours, theirs) = memory::pair();
        let server = server.clone();
        tokio::spawn(async move { server.serve(theirs).await });
        Self::over(ours)
    }

    /// Connects over a transport that knows who is calling.
    pub(crate) fn connect_as(server: &Server, who: Option<Principal>) -> Self {
        let (ours, theirs) = memory::pair();
        let (server, mut extensions) = (server.clone(), Extensions::default());
        if let Some(who) = who {
            extensions.insert(who);
        }
        tokio::spawn(async move { server.serve_with(theirs, extensions).await });
        Self::over(ours)
    }

    /// The client's end of a connection that somebody else serves.
    pub(crate) fn over(end: Memory) -> Self {
        let (source, sink) = end.split();
        Self { source, sink }
    }

    /// Has nothing more to say, but still listens.
    pub(crate) async fn end_input(&mut self) {
        self.sink.close().await.unwrap();
    }

    /// Connects and shakes hands.
    pub(crate) async fn legacy(server: &Server, version: &str) -> Self {
        Self::legacy_with(server, version, json!({})).await
    }

    /// Connects and shakes hands, with capabilities.
    pub(crate) async fn legacy_with(server: &Server, version: &str, capabilities: Value) -> Self {
        let mut wire = Self::connect(server);
        wire.handshake(version, capabilities).await;
        wire
    }

    pub(crate) async fn handshake(&mut self, version: &str, capabilities: Value) {
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})).await;
        assert_eq!(self.receive().await["result"]["protocolVersion"], version);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.sink.send(Bytes::copy_from_slice(text.as_bytes())).await.unwrap();
        self.sink.flush().await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_text().await).unwrap()
    }

    pub(crate) async fn receive_text(&mut self) -> String {
        let received = tokio::time::timeout(PATIENCE, self.source.receive()).await;
        let bytes = received.expect("nothing came").unwrap().expect("the server hung up");
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.receive().await
    }
}

/// A modern request.
pub(crate) fn modern(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A legacy request.
#[expect(clippy::needless_pass_by_value, reason = "written with a literal everywhere")]
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}
