//! Clients that never come back, thousands of them, and what they cost. In a process of its own, because the memory
//! of the whole process is measured.

#![cfg(all(target_os = "linux", feature = "server"))]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use toolwire_http::server::{Body, HttpLimits, HttpService};
use toolwire_server::{Log, Server, tool};
use tower_service::Service as _;

const VERSION: &str = "2025-11-25";
const SESSIONS: usize = 10_000;

async fn talk(log: Log) -> &'static str {
    log.info("before");
    "talked"
}

async fn post(service: &HttpService, session: Option<&str>, message: &Value) -> Response<Body> {
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session).header("mcp-protocol-version", VERSION);
    }
    let request = request.body(Full::new(Bytes::from(message.to_string()))).unwrap();
    service.clone().call(request).await.unwrap()
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": { "name": "gone", "version": "1" }
    } })
}

/// A client that shakes hands, has something done that leaves events to be resumed, and is not heard of again.
async fn come_and_go(service: &HttpService) {
    let response = post(service, None, &initialize()).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(post(service, Some(&session), &note).await.status(), StatusCode::ACCEPTED);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "talk" } });
    let answer = post(service, Some(&session), &call).await.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&answer).contains("talked"));
}

/// The memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * text.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_sessions_that_never_come_back_cost_no_more_the_second_time() {
    let server = Server::builder("memory", "1.0").tool(tool("talk", talk)).build().unwrap();
    let limits = HttpLimits { sessions: SESSIONS, ..HttpLimits::default() };
    let idle = limits.session_idle;
    let service = HttpService::builder(server).limits(limits).without_peer_addresses().build().unwrap();
    let before = resident();
    let mut after_wave = Vec::new();
    for _ in 0..2 {
        for _ in 0..SESSIONS {
            come_and_go(&service).await;
        }
        // There is no room for more, and those who try cost nothing.
        for _ in 0..SESSIONS {
            assert_eq!(post(&service, None, &initialize()).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        after_wave.push(resident() - before);
        // Nobody does anything; they are forgotten all the same.
        tokio::time::sleep(idle + Duration::from_secs(120)).await;
    }
    let (first, last) = (after_wave[0], after_wave[1]);
    assert!(first < SESSIONS * 64 * 1024, "{first} bytes for {SESSIONS} sessions");
    assert!(last < first + first / 4 + 16 * 1024 * 1024, "it grows: {after_wave:?}");
}
