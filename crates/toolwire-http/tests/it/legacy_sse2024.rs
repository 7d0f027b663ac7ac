//! HTTP+SSE of 2024-11-05.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use toolwire_http::server::{Body, HttpLimits, HttpService, Principal};
use toolwire_server::{Extension, Limits, Server, tool};
use tower_service::Service as _;

use crate::legacy_kit::*;

const OLDEST: &str = "2024-11-05";

async fn send(
    service: &HttpService,
    method: &str,
    uri: &str,
    principal: Option<&str>,
    body: &Value,
) -> Response<Body> {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("accept", "text/event-stream");
    if let Some(principal) = principal {
        request = request.extension(Principal::new(principal));
    }
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    service.clone().call(request).await.unwrap()
}

/// Opens a stream, and gives it with the place to post to.
async fn open(service: &HttpService, principal: Option<&str>) -> (Events, String) {
    let mut stream = Events::of(send(service, "GET", "/sse", principal, &Value::Null).await);
    let first = stream.next().await.unwrap();
    assert_eq!(first.event.as_deref(), Some("endpoint"));
    assert!(first.data.starts_with("/messages?session="), "{}", first.data);
    (stream, first.data)
}

async fn post(service: &HttpService, uri: &str, body: &Value) -> StatusCode {
    send(service, "POST", uri, None, body).await.status()
}

fn with_sse() -> (HttpService, Gate) {
    service_with(|http| http.path("/mcp").sse2024("/sse", "/messages"))
}

#[tokio::test]
async fn everything_is_accepted_there_and_answered_here() {
    let (service, _) = with_sse();
    let (mut stream, messages) = open(&service, None).await;
    assert_eq!(post(&service, &messages, &initialize(OLDEST)).await, StatusCode::ACCEPTED);
    let event = stream.next().await.unwrap();
    assert_eq!(event.event.as_deref(), Some("message"));
    let answer: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], OLDEST);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&service, &messages, &note).await, StatusCode::ACCEPTED);
    assert_eq!(post(&service, &messages, &call(1, "talk")).await, StatusCode::ACCEPTED);
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(stream.message().await.unwrap());
    }
    assert_eq!(gists(&heard), ["message 1", "message 2", "message 3", "talked"]);
    // The newer transport is served beside it.
    let peer = Peer::connect(&service, NEWEST).await;
    assert_eq!(gist(&json_body(peer.call(1, "echo").await).await), "echo");
}

#[tokio::test]
async fn the_connection_ends_with_its_stream() {
    let (service, _) = with_sse();
    let (stream, messages) = open(&service, None).await;
    drop(stream);
    assert_eq!(post(&service, &messages, &initialize(OLDEST)).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_ones_own_connection_can_be_used() {
    let (service, _) = with_sse();
    let (_stream, messages) = open(&service, Some("alice")).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (principal, status) in
        [(None, 404), (Some("mallory"), 404), (Some("alice"), StatusCode::ACCEPTED.as_u16())]
    {
        let response = send(&service, "POST", &messages, principal, &ping).await;
        assert_eq!(response.status().as_u16(), status, "{principal:?}");
    }
    assert_eq!(post(&service, "/messages", &ping).await, StatusCode::BAD_REQUEST);
    assert_eq!(post(&service, "/messages?session=none", &ping).await, StatusCode::NOT_FOUND);
    assert_eq!(post(&service, "/sse", &ping).await, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn connections_are_bounded() {
    let limits = HttpLimits { sessions: 1, ..HttpLimits::default() };
    let (service, _) = service_with(|http| http.limits(limits).sse2024("/sse", "/messages"));
    let (stream, _) = open(&service, None).await;
    let refused = send(&service, "GET", "/sse", None, &Value::Null).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(stream);
    open(&service, None).await;
}

#[tokio::test]
async fn shutting_down_ends_the_stream() {
    let (server, ..) = server();
    let service = HttpService::builder(server.clone())
        .sse2024("/sse", "/messages")
        .without_peer_addresses()
        .build()
        .unwrap();
    let (mut stream, _) = open(&service, None).await;
    server.shutdown();
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn handlers_see_the_request_that_opened_the_stream() {
    let agent = |Extension(parts): Extension<Arc<http::request::Parts>>| async move {
        parts.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or("?").to_owned()
    };
    let whoami = |Extension(who): Extension<Principal>| async move { who.subject().to_owned() };
    let builder = Server::builder("seen", "1.0").tool(tool("accept", agent)).tool(tool("whoami", whoami));
    let service =
        HttpService::builder(builder.build().unwrap()).sse2024("/sse", "/messages").build().unwrap();
    let (mut stream, messages) = open(&service, Some("ada")).await;
    let say = async |body: &Value| send(&service, "POST", &messages, Some("ada"), body).await.status();
    assert_eq!(say(&initialize(OLDEST)).await, StatusCode::ACCEPTED);
    stream.next().await.unwrap();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(say(&note).await, StatusCode::ACCEPTED);
    for (tool, expected) in [("accept", "text/event-stream"), ("whoami", "ada")] {
        assert_eq!(say(&call(1, tool)).await, StatusCode::ACCEPTED);
        assert_eq!(gist(&stream.message().await.unwrap()), expected);
    }
}

#[tokio::test]
async fn one_caller_leaves_room_for_the_others() {
    let (server, ..) = server_with(Limits { sessions_per_caller: 3, ..Limits::default() });
    let service = HttpService::builder(server).path("/mcp").sse2024("/sse", "/messages").build().unwrap();
    let mut open_streams = Vec::new();
    for _ in 0..3 {
        open_streams.push(open(&service, Some("eve")).await);
    }
    let refused = send(&service, "GET", "/sse", Some("eve"), &Value::Null).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    open(&service, Some("ada")).await;
    open_streams.pop();
    open(&service, Some("eve")).await;
}
