//! `subscriptions/listen`: changes in the modern era.

use serde_json::{Value, json};
use toolwire_server::{Limits, Server, prompt, resource, tool};
use toolwire_testkit::{Matrix, Setup, Wire};

use crate::bare;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn server() -> Server {
    Server::builder("listen", "1.0")
        .tool(tool("a", || async { "" }))
        .prompt(prompt("a", || async { "" }))
        .resource(resource("r://a", || async { "" }))
        .limits(Limits { subscriptions: 3, ..Limits::default() })
        .build()
        .unwrap()
}

/// Listens with an id of our own and gives what the server acknowledged.
async fn listen(wire: &mut Wire, id: Value, filter: Value) -> Value {
    wire.start_as(id.clone(), "subscriptions/listen", json!({ "notifications": filter })).await;
    let params = wire.next_notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(params["_meta"][SUBSCRIPTION], id);
    params["notifications"].clone()
}

#[tokio::test]
async fn is_acknowledged_first_and_tells_what_was_asked_for() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["r://a"] });
            assert_eq!(listen(&mut wire, json!("a"), filter.clone()).await, filter);
            server.notify().prompts_changed();
            server.notify().resources_changed();
            server.notify().resource_updated("r://b");
            wire.expect_silence().await;

            server.add_tool(tool("b", || async { "" })).unwrap();
            let params = wire.next_notification("notifications/tools/list_changed").await;
            assert_eq!(params, json!({ "_meta": { SUBSCRIPTION: "a" } }));
            server.notify().resource_updated("r://a");
            let params = wire.next_notification("notifications/resources/updated").await;
            assert_eq!(params, json!({ "uri": "r://a", "_meta": { SUBSCRIPTION: "a" } }));
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn keeps_the_json_type_of_the_id() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            listen(&mut wire, json!("7"), json!({ "toolsListChanged": true })).await;
            listen(&mut wire, json!(7), json!({ "promptsListChanged": true })).await;
            server.notify().prompts_changed();
            let params = wire.next_notification("notifications/prompts/list_changed").await;
            assert_eq!(params["_meta"][SUBSCRIPTION], json!(7));
            server.notify().tools_changed();
            let params = wire.next_notification("notifications/tools/list_changed").await;
            assert_eq!(params["_meta"][SUBSCRIPTION], json!("7"));
        })
        .await;
}

#[tokio::test]
async fn promises_only_what_the_server_can_keep() {
    let everything = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["r://a"],
    });
    Matrix::modern()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&bare()).await;
            assert_eq!(listen(&mut wire, json!(1), everything.clone()).await, json!({}));
            let mut wire = setup.wire(&server()).await;
            assert_eq!(listen(&mut wire, json!(1), everything.clone()).await, everything);
            assert_eq!(listen(&mut wire, json!(2), json!({ "toolsListChanged": false })).await, json!({}));
        })
        .await;
}

#[tokio::test]
async fn nothing_is_sent_to_those_who_do_not_listen() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            server.notify().tools_changed();
            server.notify().prompts_changed();
            server.notify().resources_changed();
            server.notify().resource_updated("r://a");
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn ends_in_silence_when_the_client_cancels() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            listen(&mut wire, json!("a"), json!({ "toolsListChanged": true })).await;
            wire.cancel("a").await;
            wire.expect_silence().await;
            server.notify().tools_changed();
            wire.expect_silence().await;
            listen(&mut wire, json!("a"), json!({ "toolsListChanged": true })).await;
        })
        .await;
}

#[tokio::test]
async fn ends_with_its_result_and_then_a_notification_at_shutdown() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            listen(&mut wire, json!("a"), json!({ "toolsListChanged": true })).await;
            server.shutdown();
            let reply = wire.reply("a").await;
            assert_eq!(reply.result()["resultType"], "complete");
            assert_eq!(reply.result()["_meta"][SUBSCRIPTION], "a");
            let params = wire.next_notification("notifications/cancelled").await;
            assert_eq!(params["requestId"], "a");
            assert_eq!(wire.close().await, Vec::<Value>::new());
        })
        .await;
}

#[tokio::test]
async fn says_what_is_pending_before_it_ends() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            let filter = json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            });
            listen(&mut wire, json!("a"), filter).await;
            server.notify().tools_changed();
            server.notify().prompts_changed();
            server.notify().resources_changed();
            server.shutdown();
            let mut said = Vec::new();
            for message in wire.close().await {
                said.push(message["method"].as_str().unwrap_or("the result").to_owned());
            }
            let expected = [
                "notifications/tools/list_changed",
                "notifications/prompts/list_changed",
                "notifications/resources/list_changed",
                "the result",
                "notifications/cancelled",
            ];
            assert_eq!(said, expected);
        })
        .await;
}

#[tokio::test]
async fn is_limited_in_number_and_in_resources() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server()).await;
            let four = json!({ "resourceSubscriptions": ["r://1", "r://2", "r://3", "r://4"] });
            let reply = wire.request("subscriptions/listen", json!({ "notifications": four })).await;
            assert_eq!(reply.code(), -32602);
            assert_eq!(wire.request("subscriptions/listen", json!({})).await.code(), -32602);
            for id in ["a", "b", "c"] {
                listen(&mut wire, json!(id), json!({ "toolsListChanged": true })).await;
            }
            let filter = json!({ "notifications": { "toolsListChanged": true } });
            assert_eq!(wire.request("subscriptions/listen", filter).await.code(), -32603);
            wire.cancel("b").await;
            wire.expect_silence().await;
            listen(&mut wire, json!("d"), json!({ "toolsListChanged": true })).await;
        })
        .await;
}

#[tokio::test]
async fn does_not_take_the_place_of_requests() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let limits = Limits { requests_in_flight: 1, ..Limits::default() };
            let server = Server::builder("listen", "1.0")
                .tool(tool("a", || async { "" }))
                .limits(limits)
                .build()
                .unwrap();
            let mut wire = setup.wire(&server).await;
            listen(&mut wire, json!("a"), json!({ "toolsListChanged": true })).await;
            listen(&mut wire, json!("b"), json!({ "toolsListChanged": true })).await;
            wire.request("tools/call", json!({ "name": "a" })).await.result();
        })
        .await;
}

#[tokio::test]
async fn does_not_exist_in_the_legacy_era() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server()).await;
            let filter = json!({ "notifications": { "toolsListChanged": true } });
            assert_eq!(wire.request("subscriptions/listen", filter).await.code(), -32601);
        })
        .await;
}
