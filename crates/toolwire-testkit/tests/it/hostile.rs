//! What nobody should send. Everything is answered or ignored, and the connection lives on.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::Version;
use toolwire_server::{Args, Complete, Context, Group, Server, prompt, resource, template, tool};
use toolwire_testkit::{Wire, each};
use toolwire_transport::{Duplex, Sink, Source};

use crate::text;

#[derive(Deserialize, JsonSchema)]
struct Anything {
    value: Value,
    number: Option<f64>,
}

fn server() -> Server {
    let echo = |Args(any): Args<Anything>| async move { format!("{} {:?}", any.value, any.number) };
    Server::builder("hostile", "1.0").tool(tool("echo", echo)).build().unwrap()
}

async fn is_alive(wire: &mut Wire) {
    let call = json!({ "name": "echo", "arguments": { "value": 1 } });
    assert_eq!(text(wire.request("tools/call", call).await.result()), "1 None");
}

/// A call with the raw text of its arguments.
fn call(version: Version, arguments: &str) -> String {
    let meta = if version.is_modern() {
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
    } else {
        ""
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{{"name":"echo","arguments":{arguments}{meta}}}}}"#
    )
}

#[tokio::test]
async fn nesting_without_end_is_refused() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        for levels in [200, 100_000] {
            let deep = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
            wire.send_raw(call(setup.version, &format!("{{\"value\":{deep}}}"))).await;
            let reply = wire.reply("raw").await;
            assert!(reply.is_error() || reply.result()["isError"] == true, "{levels} levels");
            wire.send_raw(call(setup.version, &deep)).await;
            assert_eq!(wire.reply("raw").await.code(), -32600);
            // Not part of anything that is looked at, and refused all the same.
            wire.send_raw(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"x\":{deep}}}")).await;
            assert_eq!(wire.next().await["error"]["code"], -32600);
        }
        wire.send_raw("[".repeat(100_000)).await;
        assert!(wire.next().await["error"]["code"].is_i64());
        is_alive(&mut wire).await;
    })
    .await;
}

#[tokio::test]
async fn odd_texts_and_numbers_are_survived() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        for arguments in [
            r#"{"value":"\ud800"}"#,
            r#"{"value":1,"number":1e999}"#,
            r#"{"value":1,"value":2}"#,
            r#"{"value":1,"\u0000":1}"#,
            r#"{"value":99999999999999999999999999}"#,
        ] {
            wire.send_raw(call(setup.version, arguments)).await;
            let reply = wire.reply("raw").await;
            assert!(reply.message().get("result").is_some() || reply.is_error());
        }
        is_alive(&mut wire).await;
    })
    .await;
}

#[tokio::test]
async fn names_are_not_trusted() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let long = "n".repeat(100_000);
        for name in ["", "\u{0}", "../../etc/passwd", "echo ", "ECHO", &long] {
            assert_eq!(wire.request("tools/call", json!({ "name": name })).await.code(), -32602);
            assert_eq!(wire.request(name, json!({})).await.code(), -32601);
        }
        is_alive(&mut wire).await;
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused() {
    each(async |setup| {
        let (mut source, mut sink) = setup.open(&server()).split();
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        let bad = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\xfe\"}";
        for message in [Bytes::from_static(bad), Bytes::from_static(ping.as_bytes())] {
            sink.send(message).await.unwrap();
        }
        sink.flush().await.unwrap();
        let refusal: Value = serde_json::from_slice(&source.receive().await.unwrap().unwrap()).unwrap();
        assert!(refusal["error"]["code"].is_i64(), "{refusal}");
        let answer: Value = serde_json::from_slice(&source.receive().await.unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], 1);
    })
    .await;
}

async fn broken<T>() -> T {
    panic!("on purpose")
}

/// Panics before there is a future.
fn sudden(_: Context) -> std::future::Ready<String> {
    panic!("on purpose")
}

#[tokio::test]
async fn a_panic_anywhere_is_an_internal_error() {
    let completer = |_: Complete| broken::<Vec<String>>();
    let group = Group::new()
        .tool(tool("tool", broken::<String>))
        .tool(tool("sudden", sudden))
        .prompt(prompt("prompt", broken::<String>))
        .resource(resource("r://a", broken::<String>))
        .template(template("t://{x}", broken::<String>).complete("x", completer));
    let server = Server::builder("panics", "1.0")
        .routes(group)
        .method("own/method", |_: Context| broken::<Result<Value, toolwire_protocol::RpcError>>())
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let reference = json!({ "type": "ref/resource", "uri": "t://{x}" });
        let completion = json!({ "ref": reference, "argument": { "name": "x", "value": "" } });
        for (method, params) in [
            ("tools/call", json!({ "name": "tool" })),
            ("tools/call", json!({ "name": "sudden" })),
            ("prompts/get", json!({ "name": "prompt" })),
            ("resources/read", json!({ "uri": "r://a" })),
            ("resources/read", json!({ "uri": "t://b" })),
            ("completion/complete", completion),
            ("own/method", json!({})),
        ] {
            let reply = wire.request(method, params).await;
            assert_eq!(reply.code(), -32603, "{method}");
            assert!(!reply.error_text().contains("on purpose"));
        }
        wire.request("tools/list", Value::Null).await.result();
    })
    .await;
}
