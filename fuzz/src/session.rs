//! Operations on legacy sessions, in any order.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use toolwire_http::server::{Body, HttpService};
use tower_service::Service as _;

use crate::http::{run, service};

const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2030-01-01"];

const METHODS: [&str; 8] = [
    "ping",
    "tools/list",
    "tools/call",
    "resources/read",
    "resources/subscribe",
    "logging/setLevel",
    "completion/complete",
    "nothing/known",
];

/// How many operations one input is read as; more would only be slower.
const MAX_OPERATIONS: usize = 48;

/// How many streams a client reads at the same time.
const MAX_STREAMS: usize = 8;

/// Clients that open, use, resume and close two sessions, each byte an operation.
pub fn session_operations(data: &[u8]) {
    run(async {
        let mut world = World {
            service: service(),
            sessions: [None, None],
            forgotten: Vec::new(),
            ended: Vec::new(),
            streams: Vec::new(),
            id: 0,
        };
        let mut bytes = data.iter().copied();
        for _ in 0..MAX_OPERATIONS {
            let Some(operation) = bytes.next() else { break };
            world.operate(operation, bytes.next().unwrap_or(0)).await;
        }
        world.close().await;
    });
}

struct World {
    service: HttpService,
    sessions: [Option<String>; 2],
    /// Sessions that their client has opened another one beside.
    forgotten: Vec<String>,
    /// Sessions that were deleted.
    ended: Vec<String>,
    streams: Vec<Body>,
    id: i64,
}

impl World {
    async fn operate(&mut self, operation: u8, detail: u8) {
        let which = usize::from(detail & 1);
        let choice = usize::from(detail >> 1);
        match operation % 12 {
            0 => self.initialize(which, VERSIONS[choice % VERSIONS.len()]).await,
            1 => self.send(which, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await,
            2 => {
                let message = self.request(METHODS[choice % METHODS.len()], choice);
                self.send(which, &message).await;
            }
            3 => self.listen(which, (choice % 4 == 3).then_some("1")).await,
            4 => self.listen(which, Some(["0", "1-1", "x", ""][choice % 4])).await,
            5 => self.delete(which).await,
            6 => {
                let params = json!({"requestId": i64::try_from(choice).unwrap_or(0)});
                self.send(
                    which,
                    &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
                )
                .await;
            }
            7 => {
                let batch = Value::Array((0..choice % 5).map(|at| self.request(METHODS[at], at)).collect());
                self.send(which, &batch).await;
            }
            8 => self.send(which, &json!({"jsonrpc": "2.0", "id": choice, "result": {}})).await,
            9 => drop(self.streams.pop()),
            10 => tokio::time::sleep(Duration::from_secs(1 << (choice % 12))).await,
            _ => self.of_an_ended_session(choice).await,
        }
    }

    fn request(&mut self, method: &str, choice: usize) -> Value {
        self.id += 1;
        let params = match method {
            "tools/call" => {
                let name = ["echo", "log", "wait", "none"][choice / 8 % 4];
                json!({"name": name, "_meta": {"progressToken": 1}})
            }
            "resources/read" | "resources/subscribe" => json!({"uri": "fuzz://thing"}),
            "logging/setLevel" => json!({"level": "debug"}),
            _ => json!({}),
        };
        json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
    }

    fn build(
        &self,
        method: Method,
        session: Option<&str>,
        last: Option<&str>,
        body: String,
    ) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "127.0.0.1")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        request.body(Full::new(body.into())).expect("a request")
    }

    async fn call(&mut self, request: Request<Full<Bytes>>) -> Response<Body> {
        let response = self.service.call(request).await.unwrap_or_else(|never| match never {});
        assert!(response.status() != StatusCode::INTERNAL_SERVER_ERROR, "{response:?}");
        response
    }

    async fn initialize(&mut self, which: usize, version: &str) {
        self.id += 1;
        let params = json!({"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": {"name": "f", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": self.id, "method": "initialize", "params": params});
        let request = self.build(Method::POST, None, None, message.to_string());
        let response = self.call(request).await;
        assert_eq!(response.status(), StatusCode::OK, "a handshake succeeds: {response:?}");
        let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok());
        let session = session.expect("a session has an id").to_owned();
        assert!(self.sessions.iter().flatten().all(|other| *other != session), "ids are unique");
        self.forgotten.extend(self.sessions[which].replace(session));
        self.take(response).await;
    }

    async fn send(&mut self, which: usize, message: &Value) {
        let session = self.sessions[which].clone();
        let request = self.build(Method::POST, session.as_deref(), None, message.to_string());
        let response = self.call(request).await;
        if let Some(Value::Number(id)) = message.get("id").filter(|_| message.get("method").is_some())
            && response.status() == StatusCode::OK
            && response.headers().get("content-type").is_some_and(|kind| kind == "application/json")
        {
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            let answer: Value = serde_json::from_slice(&body).expect("an answer is JSON");
            assert_eq!(answer["id"], Value::Number(id.clone()), "{answer}");
            return;
        }
        self.take(response).await;
    }

    async fn listen(&mut self, which: usize, last: Option<&str>) {
        let session = self.sessions[which].clone();
        let request = self.build(Method::GET, session.as_deref(), last, String::new());
        let response = self.call(request).await;
        self.take(response).await;
    }

    async fn delete(&mut self, which: usize) {
        let Some(session) = self.sessions[which].take() else { return };
        let request = self.build(Method::DELETE, Some(&session), None, String::new());
        let response = self.call(request).await;
        // It may have ended by itself before.
        assert!(response.status().is_success() || response.status() == StatusCode::NOT_FOUND, "{response:?}");
        self.ended.push(session);
    }

    async fn of_an_ended_session(&mut self, choice: usize) {
        let Some(session) = self.ended.get(choice % self.ended.len().max(1)).cloned() else { return };
        let message = self.request("tools/list", 0);
        let request = self.build(Method::POST, Some(&session), None, message.to_string());
        assert_eq!(self.call(request).await.status(), StatusCode::NOT_FOUND, "what has ended stays so");
    }

    /// Reads what comes at once, and keeps a stream for later.
    async fn take(&mut self, response: Response<Body>) {
        let mut body = response.into_body();
        for _ in 0..16 {
            match tokio::time::timeout(Duration::from_millis(1), body.frame()).await {
                Ok(Some(Ok(_))) => {}
                Ok(_) => return,
                Err(_) => break,
            }
        }
        if self.streams.len() == MAX_STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(body);
    }

    async fn close(&mut self) {
        for session in std::mem::take(&mut self.forgotten) {
            self.delete(0).await;
            self.sessions[0] = Some(session);
        }
        for which in 0..self.sessions.len() {
            self.delete(which).await;
        }
        // With their sessions all streams end.
        for body in self.streams.drain(..) {
            let end = tokio::time::timeout(Duration::from_secs(3600), body.collect()).await;
            assert!(end.is_ok(), "a stream outlives its session");
        }
    }
}
