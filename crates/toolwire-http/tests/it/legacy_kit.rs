//! A legacy client made of single HTTP exchanges, for tests that look at each of them.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwire_http::server::{Body, HttpBuilder, HttpService, LegacyStream, Principal};
use toolwire_protocol::framing::sse::{SseDecoder, SseEvent};
use toolwire_server::{Extension, Limits, Log, Server, State, tool};
use tower_service::Service as _;

use crate::until;

pub(crate) const NEWEST: &str = "2025-11-25";

/// Opened by tests to let waiting handlers go on.
#[derive(Clone)]
pub(crate) struct Gate(pub(crate) Arc<Semaphore>);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// Says that a handler was dropped before its end.
struct Dropped(Arc<Semaphore>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// A counter of handlers that ended early.
#[derive(Clone)]
pub(crate) struct Ends(pub(crate) Arc<Semaphore>);

async fn talk(log: Log) -> &'static str {
    for number in 1..=3 {
        log.info(format!("message {number}"));
    }
    "talked"
}

async fn wait(State(gate): State<Gate>, State(ends): State<Ends>) -> &'static str {
    let _dropped = Dropped(ends.0);
    gate.pass().await;
    "waited"
}

async fn talk_and_wait(log: Log, State(gate): State<Gate>) -> &'static str {
    log.info("before");
    gate.pass().await;
    log.info("after");
    "talked and waited"
}

async fn poll(stream: Option<Extension<LegacyStream>>, State(gate): State<Gate>) -> &'static str {
    match stream {
        Some(Extension(stream)) => stream.close(),
        None => return "cannot be resumed",
    }
    gate.pass().await;
    "polled"
}

/// The server of most tests.
pub(crate) fn server() -> (Server, Gate, Ends) {
    server_with(Limits::default())
}

pub(crate) fn server_with(limits: Limits) -> (Server, Gate, Ends) {
    let (gate, ends) = (Gate(Arc::new(Semaphore::new(0))), Ends(Arc::new(Semaphore::new(0))));
    let server = Server::builder("test", "1.0")
        .state(gate.clone())
        .state(ends.clone())
        .limits(limits)
        .tool(tool("echo", || async { "echo" }))
        .tool(tool("talk", talk))
        .tool(tool("wait", wait))
        .tool(tool("talk_and_wait", talk_and_wait))
        .tool(tool("poll", poll))
        .build()
        .unwrap();
    (server, gate, ends)
}

pub(crate) fn service() -> (HttpService, Gate) {
    let (server, gate, _) = server();
    (crate::unaddressed(server), gate)
}

pub(crate) fn service_with(configure: impl FnOnce(HttpBuilder) -> HttpBuilder) -> (HttpService, Gate) {
    let (server, gate, _) = server();
    (configure(HttpService::builder(server).without_peer_addresses()).build().unwrap(), gate)
}

/// One client.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) service: HttpService,
    pub(crate) session: Option<String>,
    pub(crate) version: Option<&'static str>,
    pub(crate) principal: Option<Principal>,
}

impl Peer {
    /// A client without a session.
    pub(crate) fn stranger(service: &HttpService) -> Self {
        Self { service: service.clone(), session: None, version: None, principal: None }
    }

    /// A client that has shaken hands.
    pub(crate) async fn connect(service: &HttpService, version: &'static str) -> Self {
        let mut peer = Self::stranger(service);
        peer.initialize(version).await;
        peer.initialized().await;
        peer
    }

    pub(crate) async fn initialize(&mut self, version: &'static str) {
        let response = self.post(&initialize(version)).await;
        assert_eq!(response.status(), StatusCode::OK);
        self.session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        self.version = Some(version);
        let answer = json_body(response).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
    }

    pub(crate) async fn initialized(&self) {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&note).await.status(), StatusCode::ACCEPTED);
    }

    pub(crate) async fn post(&self, message: &Value) -> Response<Body> {
        self.send("POST", &[], message.to_string()).await
    }

    pub(crate) async fn call(&self, id: u64, tool: &str) -> Response<Body> {
        self.post(&call(id, tool)).await
    }

    /// Starts a call without waiting for its response.
    pub(crate) fn start(&self, id: u64, tool: &'static str) -> tokio::task::JoinHandle<Response<Body>> {
        let peer = self.clone();
        tokio::spawn(async move { peer.call(id, tool).await })
    }

    /// Waits until a request with this id has been let in.
    pub(crate) async fn wait_for_start(&self, id: u64) {
        until("the request was not let in", async || self.uses(id).await).await;
    }

    /// Returns `true` if a request with this id is under way, so that another one is refused.
    pub(crate) async fn uses(&self, id: u64) -> bool {
        !json_body(self.call(id, "echo").await).await["error"].is_null()
    }

    pub(crate) async fn get(&self, last_event_id: Option<&str>) -> Response<Body> {
        let last: Vec<_> = last_event_id.into_iter().map(|id| ("last-event-id", id)).collect();
        self.send("GET", &last, String::new()).await
    }

    pub(crate) async fn delete(&self) -> Response<Body> {
        self.send("DELETE", &[], String::new()).await
    }

    pub(crate) async fn send(&self, method: &str, headers: &[(&str, &str)], body: String) -> Response<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(version) = self.version {
            request = request.header("mcp-protocol-version", version);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(principal) = &self.principal {
            request = request.extension(principal.clone());
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        self.service.clone().call(request).await.unwrap()
    }
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }})
}

pub(crate) fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

pub(crate) fn cancelled(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

pub(crate) fn content_type(response: &Response<Body>) -> &str {
    response.headers().get("content-type").map_or("", |value| value.to_str().unwrap())
}

pub(crate) async fn json_body(response: Response<Body>) -> Value {
    assert_eq!(content_type(&response), "application/json");
    serde_json::from_slice(&bytes(response).await).unwrap()
}

pub(crate) async fn bytes(response: Response<Body>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

/// The events of a response, as they come.
pub(crate) struct Events {
    body: Body,
    decoder: SseDecoder,
    chunk: Bytes,
}

impl Events {
    pub(crate) fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(content_type(&response), "text/event-stream");
        Self::in_body(response.into_body())
    }

    /// The events of a stream that was resumed: none, if the server says that there are no more.
    pub(crate) fn resumed(response: Response<Body>) -> Self {
        if response.status() == StatusCode::NO_CONTENT {
            return Self::in_body(response.into_body());
        }
        Self::of(response)
    }

    fn in_body(body: Body) -> Self {
        Self { body, decoder: SseDecoder::new(1 << 20), chunk: Bytes::new() }
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.decoder.decode(&mut self.chunk).unwrap() {
                return Some(event);
            }
            self.chunk = self.body.frame().await?.unwrap().into_data().unwrap();
        }
    }

    /// The next message, past events without one.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.next().await?;
            if !event.data.is_empty() {
                return Some(serde_json::from_str(&event.data).unwrap());
            }
        }
    }

    /// All messages up to the end of the stream.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }

    pub(crate) fn last_event_id(&self) -> String {
        self.decoder.last_event_id().unwrap().to_owned()
    }
}

/// What a message is about, in short.
pub(crate) fn gist(message: &Value) -> String {
    match (&message["params"]["data"], &message["result"]["content"][0]["text"], &message["method"]) {
        (Value::String(data), ..) => data.clone(),
        (_, Value::String(text), _) => text.clone(),
        (.., Value::String(method)) => method.clone(),
        _ => message.to_string(),
    }
}

pub(crate) fn gists(messages: &[Value]) -> Vec<String> {
    messages.iter().map(gist).collect()
}
