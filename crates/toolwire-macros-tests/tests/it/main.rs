//! A server written with the attributes and one written without serve the same bytes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod arguments;
mod by_hand;
mod errors;
mod service;
mod session;
mod with_macros;

use serde_json::{Value, json};

use crate::session::Session;

/// Every way to look at what a server offers, and to use it.
fn requests() -> Vec<(&'static str, Value)> {
    vec![
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1, "bee": 2 } })),
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1 } })),
        ("tools/call", json!({ "name": "add", "arguments": { "a": "one" } })),
        ("tools/call", json!({ "name": "greet.everybody", "arguments": { "type": "warm" } })),
        ("tools/call", json!({ "name": "greet.everybody", "arguments": { "who": "Ada" } })),
        ("tools/call", json!({ "name": "wipe" })),
        ("prompts/get", json!({ "name": "review", "arguments": { "code": "x", "limit": "3" } })),
        ("prompts/get", json!({ "name": "review", "arguments": { "limit": "3" } })),
        ("resources/read", json!({ "uri": "config://app" })),
        ("resources/read", json!({ "uri": "users://7/name" })),
        ("resources/read", json!({ "uri": "users://seven/name" })),
    ]
}

#[tokio::test(flavor = "current_thread")]
async fn both_serve_the_same_bytes() {
    let mut with_macros = Session::start(with_macros::server()).await;
    let mut by_hand = Session::start(by_hand::server()).await;
    for (method, params) in requests() {
        let expected = by_hand.ask(method, &params).await;
        assert_eq!(with_macros.ask(method, &params).await, expected, "{method} {params}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_written_is_what_is_served() {
    let mut session = Session::start(with_macros::server()).await;
    let tools = session.result("tools/list", &json!({})).await;
    let add = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "add").unwrap();
    assert_eq!(add["description"], "Adds two numbers.\n\nThe second one is 3 if nobody gives it.");
    assert_eq!(add["inputSchema"]["properties"]["a"]["description"], "The first one.");
    assert_eq!(add["inputSchema"]["properties"]["bee"]["default"], 3);
    assert_eq!(add["inputSchema"]["required"], json!(["a"]));

    let sum = session.result("tools/call", &json!({ "name": "add", "arguments": { "a": 1 } })).await;
    assert_eq!(sum["content"][0]["text"], r#"{"sum":4}"#);
    let prompt = json!({ "name": "review", "arguments": { "code": "x", "limit": "3" } });
    let review = session.result("prompts/get", &prompt).await;
    assert_eq!(review["messages"][0]["content"]["text"], "x, at most 3 remarks");
    let user = session.result("resources/read", &json!({ "uri": "users://7/name" })).await;
    assert_eq!(user["contents"][0]["text"], "name of 7");
}

#[tokio::test(flavor = "current_thread")]
async fn the_functions_stay_what_they_are() {
    assert_eq!(with_macros::add(1, 2).await.0.sum, 3);
    assert_eq!(with_macros::review("x".to_owned(), None).await, "x, at most 5 remarks");
    assert_eq!(with_macros::config(), "colour = true");
}
