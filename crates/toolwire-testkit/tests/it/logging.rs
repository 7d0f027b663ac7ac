//! Log messages to the client: by session in the legacy era, by request in the modern one.

use serde_json::{Value, json};
use toolwire_server::{Log, Server, tool};
use toolwire_testkit::{Matrix, Setup, Wire, each};

use crate::bare;

async fn speak(log: Log) -> &'static str {
    log.debug("debug");
    log.info("info");
    log.clone().named("disk").warning(json!({ "full": 0.9 }));
    log.emergency("emergency");
    "spoken"
}

fn server() -> Server {
    Server::builder("logging", "1.0").tool(tool("speak", speak)).build().unwrap()
}

async fn levels(wire: &mut Wire, params: Value) -> Vec<String> {
    let id = wire.start("tools/call", params).await;
    let mut levels = Vec::new();
    loop {
        let message = wire.next().await;
        if message["method"] == "notifications/message" {
            levels.push(message["params"]["level"].as_str().unwrap().to_owned());
        } else {
            assert_eq!(message["id"], id, "the messages come before the answer: {message}");
            return levels;
        }
    }
}

#[tokio::test]
async fn is_heard_from_the_level_on_that_was_asked_for() {
    each(async |setup| {
        let mut wire = setup.wire_with(&server(), |wire| wire.log_level("warning")).await;
        assert_eq!(levels(&mut wire, json!({ "name": "speak" })).await, ["warning", "emergency"]);
        let mut wire = setup.wire_with(&server(), |wire| wire.log_level("debug")).await;
        let all = ["debug", "info", "warning", "emergency"];
        assert_eq!(levels(&mut wire, json!({ "name": "speak" })).await, all);
    })
    .await;
}

#[tokio::test]
async fn carries_data_and_the_name_of_the_logger() {
    each(async |setup| {
        let mut wire = setup.wire_with(&server(), |wire| wire.log_level("warning")).await;
        wire.start("tools/call", json!({ "name": "speak" })).await;
        let params = wire.next_notification("notifications/message").await;
        assert_eq!(params, json!({ "level": "warning", "logger": "disk", "data": { "full": 0.9 } }));
    })
    .await;
}

#[tokio::test]
async fn gets_lost_rather_than_in_the_way_of_an_answer() {
    let chatty = |log: Log| async move {
        (0..10_000).for_each(|number| log.error(number));
        "done"
    };
    let server = Server::builder("logging", "1.0").tool(tool("chatty", chatty)).build().unwrap();
    each(async |setup| {
        let mut wire = setup.wire_with(&server, |wire| wire.log_level("debug")).await;
        let heard = levels(&mut wire, json!({ "name": "chatty" })).await.len();
        assert!((1..200).contains(&heard), "{heard} messages");
        wire.expect_silence().await;
    })
    .await;
}

#[tokio::test]
async fn is_silent_in_the_modern_era_unless_a_request_asks() {
    let server = server();
    Matrix::modern()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server).await;
            assert!(levels(&mut wire, json!({ "name": "speak" })).await.is_empty());
            let loud =
                json!({ "name": "speak", "_meta": { "io.modelcontextprotocol/logLevel": "emergency" } });
            assert_eq!(levels(&mut wire, loud).await, ["emergency"]);
            assert!(levels(&mut wire, json!({ "name": "speak" })).await.is_empty());
        })
        .await;
}

#[tokio::test]
async fn level_can_be_changed_in_a_legacy_session() {
    let server = server();
    Matrix::legacy()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server).await;
            for (level, heard) in [("emergency", 1), ("debug", 4), ("alert", 1), ("info", 3)] {
                let reply = wire.request("logging/setLevel", json!({ "level": level })).await;
                assert_eq!(*reply.result(), json!({}));
                assert_eq!(levels(&mut wire, json!({ "name": "speak" })).await.len(), heard, "{level}");
            }
        })
        .await;
}

#[tokio::test]
async fn level_that_does_not_exist_is_refused() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply = if setup.version.is_modern() {
            let meta = json!({ "io.modelcontextprotocol/logLevel": "loud" });
            wire.request("tools/call", json!({ "name": "speak", "_meta": meta })).await
        } else {
            wire.request("logging/setLevel", json!({ "level": "loud" })).await
        };
        assert_eq!(reply.code(), -32602);
        assert!(levels(&mut wire, json!({ "name": "speak" })).await.len() < 4, "the level has changed");
    })
    .await;
}

#[tokio::test]
async fn level_cannot_be_set_where_nothing_logs_or_in_the_modern_era() {
    each(async |setup| {
        let server = if setup.version.is_modern() { server() } else { bare() };
        let mut wire = setup.wire(&server).await;
        let reply = wire.request("logging/setLevel", json!({ "level": "info" })).await;
        assert_eq!(reply.code(), -32601);
    })
    .await;
}
