//! `toolwire demo --stdio`: the server, for any client.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};

use crate::program::{finish, toolwire};

#[test]
fn a_legacy_client_is_served_and_followed_out() {
    let add = json!({ "name": "add", "arguments": { "a": 2, "b": 40 } });
    let [initialize, initialized] = handshake();
    let answers = serve(&[initialize, initialized, request(2, "tools/call", &add)]);
    let hello = answer(&answers, 1);
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    assert_eq!(hello["serverInfo"]["name"], "toolwire-demo");
    assert_eq!(answer(&answers, 2)["structuredContent"], json!({ "sum": 42 }));
}

#[test]
fn a_modern_client_is_served_and_followed_out() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let add = json!({ "name": "add", "arguments": { "a": 2, "b": 40 }, "_meta": meta });
    let discover = json!({ "_meta": meta });
    let answers = serve(&[request(1, "server/discover", &discover), request(2, "tools/call", &add)]);
    assert_eq!(answer(&answers, 1)["supportedVersions"][0], "2026-07-28");
    assert_eq!(answer(&answers, 2)["structuredContent"], json!({ "sum": 42 }));
}

#[test]
fn what_was_asked_is_finished_before_it_leaves() {
    let count = json!({ "name": "count", "arguments": { "to": 5 } });
    let [initialize, initialized] = handshake();
    let answers = serve(&[initialize, initialized, request(2, "tools/call", &count)]);
    assert_eq!(answer(&answers, 2)["content"][0]["text"], "counted to 5");
}

#[test]
fn nobody_to_talk_to_is_no_failure() {
    assert_eq!(serve(&[]), Vec::<Value>::new());
}

#[test]
fn a_client_that_stops_reading_has_left() {
    let mut child = toolwire(&["demo", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", request(1, "ping", &json!({}))).unwrap();
    // The input stays open: it is the output without a reader that ends it.
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    drop(stdin);
}

fn handshake() -> [Value; 2] {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    [request(1, "initialize", &params), initialized]
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The result of a request.
fn answer(messages: &[Value], id: u32) -> &Value {
    let answers: Vec<_> = messages.iter().filter(|message| message["id"] == id).collect();
    assert_eq!(answers.len(), 1, "answers to {id} in {messages:?}");
    &answers[0]["result"]
}

/// Sends messages, closes the input, and gives every line that was printed until the end.
fn serve(messages: &[Value]) -> Vec<Value> {
    let mut child = toolwire(&["demo", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
