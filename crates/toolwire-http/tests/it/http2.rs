//! HTTP/2 without TLS, by prior knowledge.

use http_body_util::{BodyExt as _, Full};
use hyper::{body::Bytes, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::{bare::MODERN, bare::enveloped, fixture::Fixture};

type Sender = http2::SendRequest<Full<Bytes>>;

async fn connect(fixture: &Fixture) -> Sender {
    let stream = TcpStream::connect(fixture.address).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn call(host: &str, tool: &str, meta: &Value) -> http::Request<Full<Bytes>> {
    let mut message = enveloped("tools/call", json!({ "name": tool, "arguments": { "a": 1, "b": 2 } }));
    for (key, value) in meta.as_object().unwrap() {
        message["params"]["_meta"][key] = value.clone();
    }
    http::Request::post(format!("http://{host}/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(Full::new(message.to_string().into()))
        .unwrap()
}

#[tokio::test]
async fn requests_share_a_connection() {
    let fixture = Fixture::start().await;
    let mut sender = connect(&fixture).await;
    // The first request waits while the second one is answered.
    let first = sender.send_request(call("localhost", "wait", &json!({})));
    let first = tokio::spawn(first);
    let second = sender.send_request(call("localhost", "add", &json!({}))).await.unwrap();
    assert_eq!((second.status().as_u16(), second.version()), (200, http::Version::HTTP_2));
    let body: Value =
        serde_json::from_slice(&second.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(body["result"]["content"][0]["text"], "3");
    fixture.go.notify_one();
    let body = first.await.unwrap().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("done"));
    let evil = sender.send_request(call("evil.example", "add", &json!({}))).await.unwrap();
    assert_eq!(evil.status(), 403);
}

#[tokio::test]
async fn resetting_a_stream_cancels_its_request_alone() {
    let mut fixture = Fixture::start().await;
    let mut sender = connect(&fixture).await;
    let hanging = tokio::spawn(sender.send_request(call("localhost", "hang", &json!({}))));
    fixture.hears("started").await;
    hanging.abort();
    fixture.hears_the_end().await;
    let response = sender.send_request(call("localhost", "add", &json!({}))).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn messages_are_streamed() {
    let fixture = Fixture::start().await;
    let mut sender = connect(&fixture).await;
    let request = call("localhost", "steps", &json!({ "progressToken": 1 }));
    let mut response = sender.send_request(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let frame = response.body_mut().frame().await.unwrap().unwrap();
    assert!(frame.data_ref().unwrap().starts_with(b"data: {"));
    fixture.go.notify_one();
    let rest = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&rest).contains("\"result\""));
}
