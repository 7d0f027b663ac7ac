//! Batches of 2025-03-26.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwire_http::server::{Legacy, Principal};
use toolwire_server::{Limits, Server, State, tool};

use crate::{legacy_kit::*, until};

const BATCHES: &str = "2025-03-26";

fn sorted(mut answers: Vec<Value>) -> Vec<Value> {
    answers.sort_by_key(|answer| answer["id"].to_string());
    answers
}

#[tokio::test]
async fn an_array_is_answered_with_an_array() {
    let (service, _) = service();
    let peer = Peer::connect(&service, BATCHES).await;
    let batch = json!([
        call(1, "echo"),
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
        {"id": 4},
        {"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
    ]);
    let response = peer.post(&batch).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answers = sorted(serde_json::from_value(json_body(response).await).unwrap());
    assert_eq!(answers.len(), 5);
    assert_eq!(gist(&answers[0]), "echo");
    assert_eq!(answers[1]["result"], json!({}));
    assert_eq!(answers[2]["error"]["code"], -32601);
    for refused in &answers[3..] {
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
    }
}

#[tokio::test]
async fn one_request_in_an_array_is_still_answered_with_an_array() {
    let (service, _) = service();
    let peer = Peer::connect(&service, BATCHES).await;
    let answers = json_body(peer.post(&json!([call(1, "echo")])).await).await;
    assert_eq!(answers.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn without_requests_there_is_nothing_to_answer() {
    let (service, _) = service();
    let peer = Peer::connect(&service, BATCHES).await;
    let batch = json!([cancelled(1), {"jsonrpc": "2.0", "id": 9, "result": {}}]);
    let response = peer.post(&batch).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    assert!(bytes(response).await.is_empty());
}

#[tokio::test]
async fn a_batch_with_something_to_say_becomes_a_stream() {
    let (service, _) = service();
    let peer = Peer::connect(&service, BATCHES).await;
    let mut stream = Events::of(peer.post(&json!([call(1, "echo"), call(2, "talk"), call(3, "echo")])).await);
    let messages = stream.rest().await;
    let notes: Vec<_> = messages.iter().filter(|message| message["id"].is_null()).map(gist).collect();
    assert_eq!(notes, ["message 1", "message 2", "message 3"]);
    let answers = sorted(messages.into_iter().filter(|message| !message["id"].is_null()).collect());
    assert_eq!(gists(&answers), ["echo", "talked", "echo"]);
}

#[tokio::test]
async fn arrays_are_refused_by_other_versions_and_when_they_are_too_long() {
    let (service, _) = service();
    for version in ["2024-11-05", "2025-06-18", NEWEST] {
        let peer = Peer::connect(&service, version).await;
        assert_eq!(peer.post(&json!([call(1, "echo")])).await.status(), StatusCode::BAD_REQUEST, "{version}");
    }
    let peer = Peer::connect(&service, BATCHES).await;
    let long: Vec<_> = (0..65).map(|id| call(id, "echo")).collect();
    assert_eq!(peer.post(&long.into()).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(peer.post(&json!([])).await.status(), StatusCode::BAD_REQUEST);
    peer.delete().await;
    assert_eq!(peer.post(&json!([call(1, "echo")])).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn without_sessions_and_without_a_header_arrays_are_answered_too() {
    let (service, _) = service_with(|http| http.legacy(Legacy::Stateless));
    let mut peer = Peer::stranger(&service);
    let answers = json_body(peer.post(&json!([call(1, "echo"), call(2, "echo")])).await).await;
    assert_eq!(answers.as_array().unwrap().len(), 2);
    peer.version = Some(NEWEST);
    assert_eq!(peer.post(&json!([call(1, "echo")])).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_batch_weighs_what_it_weighs_until_the_last_of_it_is_over() {
    let (server, gate, _) = server();
    let peer = Peer::connect(&crate::unaddressed(server.clone()), BATCHES).await;
    // One call that stays, and sixty-three that are over at once: together they carry 300 kB that stay, too.
    let ping =
        |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {"x": "x".repeat(4700)}});
    let batch = json!(std::iter::once(call(1, "wait")).chain((2..65).map(ping)).collect::<Vec<_>>());
    let posted = tokio::spawn(async move { peer.post(&batch).await });
    until("the batch was not let in", async || server.usage().requests > 0).await;
    assert!(server.usage().request_bytes > 290_000, "{:?}", server.usage());
    gate.open();
    let answers = json_body(posted.await.unwrap()).await;
    assert_eq!(answers.as_array().unwrap().len(), 64);
    until("the batch still weighs something", async || server.usage().request_bytes == 0).await;
}

#[tokio::test]
async fn answers_that_wait_for_the_rest_of_their_batch_are_charged() {
    const LIMIT: usize = 1_000_000;
    let gate = Gate(Arc::new(Semaphore::new(0)));
    let wait = |State(gate): State<Gate>| async move {
        gate.0.acquire().await.unwrap().forget();
        "waited"
    };
    let server = Server::builder("test", "1.0")
        .state(gate.clone())
        .limits(Limits { held_bytes_per_caller: LIMIT, ..Limits::default() })
        .tool(tool("wait", wait))
        .tool(tool("large", || async { "x".repeat(300_000) }))
        .build()
        .unwrap();
    let service = crate::unaddressed(server.clone());
    let mut peer = Peer { principal: Some(Principal::new("ada")), ..Peer::stranger(&service) };
    peer.initialize(BATCHES).await;
    peer.initialized().await;
    let batch = json!(
        std::iter::once(call(1, "wait")).chain((2..10).map(|id| call(id, "large"))).collect::<Vec<_>>()
    );
    let posted = tokio::spawn(async move { peer.post(&batch).await });
    until("nothing waits", async || server.usage().answer_bytes > 2 * 300_000).await;
    assert!(server.usage().held_bytes <= LIMIT, "{:?}", server.usage());
    gate.open();
    let answers: Vec<Value> = serde_json::from_value(json_body(posted.await.unwrap()).await).unwrap();
    assert_eq!(answers.len(), 9);
    for (id, answer) in (2..10).zip(answers.iter().filter(|answer| answer["id"] != 1)) {
        assert_eq!(answer["id"], id);
        let expected = if id < 5 { json!(null) } else { json!("held_bytes_per_caller") };
        assert_eq!(answer["error"]["data"]["limit"], expected, "{id}");
    }
    until("it still weighs something", async || server.usage().answer_bytes == 0).await;
}
