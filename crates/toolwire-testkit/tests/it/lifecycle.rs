//! How a conversation starts in each era, and what the server says of itself.

use serde_json::{Map, Value, json};
use toolwire_protocol::{ServerCapability, Version};
use toolwire_server::{Caller, Context, Log, Server, prompt, resource, tool};
use toolwire_testkit::{Matrix, Setup, Wire, WireBuilder, each};

use crate::{bare, text};

/// What the server says it can do, whichever way one asks.
async fn described(setup: &Setup, server: &Server) -> Value {
    let mut wire = setup.wire_with(server, WireBuilder::without_handshake).await;
    if setup.version.is_modern() {
        wire.request("server/discover", Value::Null).await.result().clone()
    } else {
        wire.request("initialize", hello(setup.version.as_str())).await.result().clone()
    }
}

fn hello(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

#[tokio::test]
async fn the_server_introduces_itself() {
    let server = Server::builder("intro", "2.1")
        .title("Introduction")
        .description("Says hello.")
        .instructions("Be polite.")
        .build()
        .unwrap();
    each(async |setup| {
        let result = described(&setup, &server).await;
        assert_eq!(result["instructions"], "Be polite.");
        let info = if setup.version.is_modern() {
            &result["_meta"]["io.modelcontextprotocol/serverInfo"]
        } else {
            assert_eq!(result["protocolVersion"], setup.version.as_str());
            &result["serverInfo"]
        };
        assert_eq!((&info["name"], &info["version"]), (&json!("intro"), &json!("2.1")));
        assert_eq!(info.get("title").is_some(), setup.version >= Version::V2025_06_18);
        assert_eq!(info.get("description").is_some(), setup.version >= Version::V2025_11_25);
    })
    .await;
}

#[tokio::test]
async fn discovery_names_every_version_the_modern_first() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let result = described(&setup, &bare()).await;
            let versions: Vec<_> = Version::ALL.iter().rev().map(|version| json!(version.as_str())).collect();
            assert_eq!(result["supportedVersions"], Value::Array(versions));
            assert_eq!(result["resultType"], "complete");
            assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
        })
        .await;
}

#[tokio::test]
async fn every_modern_result_names_the_server() {
    Matrix::modern()
        .run(async |setup: Setup| {
            let server = Server::builder("named", "1.0").tool(tool("a", || async { "" })).build().unwrap();
            let mut wire = setup.wire(&server).await;
            for (method, params) in [("tools/list", json!({})), ("tools/call", json!({ "name": "a" }))] {
                let reply = wire.request(method, params).await;
                assert_eq!(reply.result()["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "named");
            }
        })
        .await;
}

#[tokio::test]
async fn capabilities_follow_from_what_is_registered() {
    let full = Server::builder("full", "1.0")
        .tool(tool("a", |_: Log| async { "" }))
        .prompt(prompt("b", || async { "" }))
        .resource(resource("c://d", || async { "" }))
        .advertise(ServerCapability::Completions)
        .build()
        .unwrap();
    let tools = Server::builder("tools", "1.0").tool(tool("a", || async { "" })).build().unwrap();
    each(async |setup| {
        assert_eq!(described(&setup, &bare()).await["capabilities"], json!({}));
        let only = json!({ "tools": { "listChanged": true } });
        assert_eq!(described(&setup, &tools).await["capabilities"], only);
        let mut everything = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "logging": {},
        });
        if setup.version >= Version::V2025_03_26 {
            everything["completions"] = json!({});
        }
        assert_eq!(described(&setup, &full).await["capabilities"], everything);
    })
    .await;
}

#[tokio::test]
async fn extensions_and_experiments_are_advertised() {
    let settings: Map<String, Value> = [("level".to_owned(), json!(3))].into_iter().collect();
    let server = Server::builder("extended", "1.0")
        .extension("com.example/charts", settings.clone())
        .experimental("colours", settings)
        .method("charts/draw", |cx: Context| async move {
            cx.decode::<Value>().map(|params| json!({ "drawn": params["what"] }))
        })
        .build()
        .unwrap();
    each(async |setup| {
        let capabilities = described(&setup, &server).await["capabilities"].clone();
        assert_eq!(capabilities["extensions"], json!({ "com.example/charts": { "level": 3 } }));
        assert_eq!(capabilities["experimental"], json!({ "colours": { "level": 3 } }));
        let mut wire = setup.wire(&server).await;
        let reply = wire.request("charts/draw", json!({ "what": "pie" })).await;
        assert_eq!(reply.result()["drawn"], "pie");
        assert_eq!(wire.request("charts/erase", json!({})).await.code(), -32601);
    })
    .await;
}

#[tokio::test]
async fn what_is_not_advertised_does_not_exist() {
    each(async |setup| {
        let mut wire = setup.wire(&bare()).await;
        for method in [
            "tools/list",
            "tools/call",
            "prompts/list",
            "prompts/get",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "completion/complete",
            "tasks/get",
            "no/such/method",
            "sampling/createMessage",
            "notifications/initialized",
        ] {
            let reply = wire.request(method, json!({})).await;
            assert_eq!(reply.code(), -32601, "{method}: {}", reply.message());
        }
    })
    .await;
}

#[tokio::test]
async fn each_era_lacks_the_methods_of_the_other() {
    each(async |setup| {
        let server = Server::builder("both", "1.0")
            .resource(resource("a://b", |_: Log| async { "" }))
            .build()
            .unwrap();
        let mut wire = setup.wire(&server).await;
        let foreign: &[&str] = if setup.version.is_modern() {
            &["ping", "initialize", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"]
        } else {
            &["server/discover", "subscriptions/listen"]
        };
        for method in foreign {
            let params = json!({ "uri": "a://b", "level": "info" });
            assert_eq!(wire.request(method, params).await.code(), -32601, "{method}");
        }
        if !setup.version.is_modern() {
            assert_eq!(*wire.request("ping", Value::Null).await.result(), json!({}));
        }
    })
    .await;
}

#[tokio::test]
async fn a_legacy_client_gets_its_version_or_our_newest() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let mut wire = Wire::builder(Version::LATEST_LEGACY).without_handshake().connect(&bare()).await;
        let reply = wire.request("initialize", hello(asked)).await;
        assert_eq!(reply.result()["protocolVersion"], agreed, "{asked:?}");
    }
    let old = Server::builder("old", "1.0").versions([Version::V2024_11_05]).build().unwrap();
    let mut wire = Wire::builder(Version::V2024_11_05).without_handshake().connect(&old).await;
    let reply = wire.request("initialize", hello("2025-06-18")).await;
    assert_eq!(reply.result()["protocolVersion"], "2024-11-05");
}

#[tokio::test]
async fn a_server_of_one_era_refuses_the_other_and_says_what_it_serves() {
    let modern = Server::builder("modern", "1.0").versions([Version::V2026_07_28]).build().unwrap();
    let mut wire = Wire::builder(Version::LATEST_LEGACY).without_handshake().connect(&modern).await;
    let reply = wire.request("initialize", hello("2025-11-25")).await;
    assert_eq!(reply.code(), -32022);
    assert_eq!(reply.error()["data"]["supported"], json!(["2026-07-28"]));

    let legacy = Server::builder("legacy", "1.0").versions([Version::V2025_06_18]).build().unwrap();
    let mut wire = Wire::builder(Version::LATEST).connect(&legacy).await;
    let reply = wire.request("server/discover", Value::Null).await;
    assert_eq!(reply.code(), -32022);
    assert_eq!(reply.error()["data"], json!({ "supported": ["2025-06-18"], "requested": "2026-07-28" }));
}

#[tokio::test]
async fn a_bad_handshake_can_be_tried_again() {
    Matrix::legacy()
        .run(async |setup: Setup| {
            let mut wire = setup.wire_with(&bare(), WireBuilder::without_handshake).await;
            for params in [json!({}), json!({ "protocolVersion": 7 }), Value::Null] {
                assert_eq!(wire.request("initialize", params).await.code(), -32602);
            }
            wire.request("initialize", hello(setup.version.as_str())).await.result();
        })
        .await;
}

#[tokio::test]
async fn a_modern_request_without_its_metadata_is_refused() {
    let mut wire = Wire::builder(Version::LATEST).connect(&bare()).await;
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    for meta in [
        json!({ key("protocolVersion"): "2026-07-28" }),
        json!({ key("protocolVersion"): 7, key("clientCapabilities"): {} }),
        json!({ key("protocolVersion"): "2026-07-28", key("clientCapabilities"): [] }),
    ] {
        let message = json!({
            "jsonrpc": "2.0", "id": "x", "method": "server/discover", "params": { "_meta": meta },
        });
        wire.send_raw(message.to_string()).await;
        assert_eq!(wire.reply("x").await.code(), -32602, "{meta}");
    }
    let anonymous = json!({ key("protocolVersion"): "2026-07-28", key("clientCapabilities"): {} });
    let message = json!({
        "jsonrpc": "2.0", "id": "y", "method": "server/discover", "params": { "_meta": anonymous },
    });
    wire.send_raw(message.to_string()).await;
    wire.reply("y").await.result();
}

#[tokio::test]
async fn handlers_know_the_caller_in_every_era() {
    let who = |client: Caller| async move {
        let name = client.info().map_or("nobody", |info| info.name.as_str()).to_owned();
        format!("{name} {}", client.has_extension("com.example/charts"))
    };
    let server = Server::builder("who", "1.0").tool(tool("who", who)).build().unwrap();
    each(async |setup| {
        let mut wire = setup
            .wire_with(&server, |wire| {
                wire.client_info(json!({ "name": "somebody", "version": "1" }))
                    .capabilities(json!({ "extensions": { "com.example/charts": {} } }))
            })
            .await;
        let reply = wire.request("tools/call", json!({ "name": "who" })).await;
        assert_eq!(text(reply.result()), "somebody true");
    })
    .await;
}
