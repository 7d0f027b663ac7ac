//! The rounds of one request at different processes.

use serde_json::{Value, json};
use toolwire_protocol::Version;
use toolwire_testkit::{Program, Wire};

use crate::child::example;

async fn replica(secrets: &[&str]) -> Wire {
    let program = secrets.iter().fold(Program::new(example("asking_server")), Program::arg);
    Wire::builder(Version::V2026_07_28).capabilities(json!({"elicitation": {}})).connect(&program).await
}

fn retry(state: &Value, key: &str, name: &str) -> Value {
    json!({
        "name": "greet",
        "requestState": state,
        "inputResponses": {key: {"action": "accept", "content": {"name": name}}},
    })
}

#[tokio::test]
async fn each_round_may_reach_another_process_that_has_the_key() {
    let (old, new) = ("the secret of last month, long enough", "the secret of this month, long enough");
    let asked = replica(&[old]).await.request("tools/call", json!({"name": "greet"})).await;
    let first = asked.result()["requestState"].clone();
    // The second process has a newer key, and still knows the old one.
    let asked = replica(&[new, old]).await.request("tools/call", retry(&first, "first", "Ada")).await;
    let second = asked.result()["requestState"].clone();
    assert!(asked.result()["inputRequests"]["last"].is_object());
    let done = replica(&[new]).await.request("tools/call", retry(&second, "last", "Lovelace")).await;
    assert_eq!(done.result()["content"][0]["text"], "Hello, Ada Lovelace!");
    // One that never had the key refuses, and does not say why.
    let refused = replica(&[new]).await.request("tools/call", retry(&first, "first", "Ada")).await;
    assert_eq!(refused.code(), -32602);
    assert_eq!(refused.error_text(), "invalid or expired requestState; send the request again without it");
}
