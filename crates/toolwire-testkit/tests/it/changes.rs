//! Change notifications in the legacy era: unsolicited, and by subscription for single resources.

use serde_json::{Value, json};
use toolwire_server::{Limits, Server, prompt, resource, template, tool};
use toolwire_testkit::{Matrix, Setup, WireBuilder};

use crate::bare;

fn server() -> Server {
    Server::builder("changes", "1.0")
        .tool(tool("a", || async { "" }))
        .prompt(prompt("a", || async { "" }))
        .resource(resource("r://a", || async { "" }))
        .build()
        .unwrap()
}

#[tokio::test]
async fn of_lists_come_without_being_asked() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            wire.expect_silence().await;
            server.add_tool(tool("b", || async { "" })).unwrap();
            wire.next_notification("notifications/tools/list_changed").await;
            server.remove_tool("b");
            wire.next_notification("notifications/tools/list_changed").await;
            server.add_prompt(prompt("b", || async { "" })).unwrap();
            wire.next_notification("notifications/prompts/list_changed").await;
            server.add_resource(resource("r://b", || async { "" })).unwrap();
            wire.next_notification("notifications/resources/list_changed").await;
            server.add_template(template("t://{x}", || async { "" })).unwrap();
            wire.next_notification("notifications/resources/list_changed").await;
            server.remove_tool("unknown");
            assert!(server.add_tool(tool("a", || async { "" })).is_err());
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn are_not_sent_before_the_client_is_initialized() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire_with(&server, WireBuilder::without_handshake).await;
            let params = json!({
                "protocolVersion": setup.version.as_str(),
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            });
            wire.request("initialize", params).await.result();
            server.notify().tools_changed();
            wire.expect_silence().await;
            wire.notify("notifications/initialized", Value::Null).await;
            wire.expect_silence().await;
            server.notify().tools_changed();
            wire.next_notification("notifications/tools/list_changed").await;
        })
        .await;
}

#[tokio::test]
async fn are_sent_once_however_often_the_client_says_it_is_initialized() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            wire.notify("notifications/initialized", Value::Null).await;
            wire.notify("notifications/initialized", Value::Null).await;
            wire.settle().await;
            server.notify().tools_changed();
            wire.next_notification("notifications/tools/list_changed").await;
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn of_a_resource_come_while_it_is_subscribed_to() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            server.notify().resource_updated("r://a");
            wire.expect_silence().await;

            let reply = wire.request("resources/subscribe", json!({ "uri": "r://a" })).await;
            assert_eq!(*reply.result(), json!({}));
            server.notify().resource_updated("r://b");
            server.notify().resource_updated("r://a");
            let params = wire.next_notification("notifications/resources/updated").await;
            assert_eq!(params, json!({ "uri": "r://a" }));
            server.notify().resource_updated("r://a/part");
            let params = wire.next_notification("notifications/resources/updated").await;
            assert_eq!(params, json!({ "uri": "r://a/part" }));
            wire.expect_silence().await;

            let reply = wire.request("resources/unsubscribe", json!({ "uri": "r://a" })).await;
            assert_eq!(*reply.result(), json!({}));
            server.notify().resource_updated("r://a");
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn said_many_times_are_heard_once() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = setup.wire(&server).await;
            wire.expect_silence().await;
            for _ in 0..1000 {
                server.notify().tools_changed();
            }
            wire.next_notification("notifications/tools/list_changed").await;
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn reach_every_client_but_only_as_it_asked() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let server = server();
            let (mut one, mut two) = (setup.wire(&server).await, setup.wire(&server).await);
            one.request("resources/subscribe", json!({ "uri": "r://a" })).await.result();
            two.expect_silence().await;
            server.notify().resource_updated("r://a");
            server.notify().tools_changed();
            two.next_notification("notifications/tools/list_changed").await;
            two.expect_silence().await;
            one.next_notification("notifications/tools/list_changed").await;
            one.next_notification("notifications/resources/updated").await;
        })
        .await;
}

#[tokio::test]
async fn can_be_subscribed_to_only_so_many_times() {
    let server = Server::builder("changes", "1.0")
        .resource(resource("r://a", || async { "" }))
        .limits(Limits { subscriptions: 2, ..Limits::default() })
        .build()
        .unwrap();
    Matrix::legacy()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server).await;
            for params in [json!({}), json!({ "uri": 7 }), Value::Null] {
                assert_eq!(wire.request("resources/subscribe", params).await.code(), -32602);
            }
            for uri in ["r://a", "r://b", "r://a"] {
                wire.request("resources/subscribe", json!({ "uri": uri })).await.result();
            }
            let reply = wire.request("resources/subscribe", json!({ "uri": "r://c" })).await;
            assert_eq!(reply.code(), -32602);
            wire.request("resources/unsubscribe", json!({ "uri": "r://b" })).await.result();
            wire.request("resources/subscribe", json!({ "uri": "r://c" })).await.result();
        })
        .await;
}

#[tokio::test]
async fn cannot_be_subscribed_to_where_there_are_no_resources() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&bare()).await;
            for method in ["resources/subscribe", "resources/unsubscribe"] {
                assert_eq!(wire.request(method, json!({ "uri": "r://a" })).await.code(), -32601);
            }
        })
        .await;
}

#[tokio::test]
async fn that_the_server_did_not_advertise_are_not_sent() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let server = bare();
            let mut wire = setup.wire(&server).await;
            server.notify().tools_changed();
            server.notify().prompts_changed();
            server.notify().resources_changed();
            wire.expect_silence().await;
        })
        .await;
}
