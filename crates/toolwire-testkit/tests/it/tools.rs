//! Tools: listing, calling, structured output, and everything that can be wrong with a call.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolwire_protocol::{
    ErrorCode, RawJson, Version,
    wire::{CallToolResult, Content, Icon, ResourceContents},
};
use toolwire_server::{Args, Json, Server, ToolError, tool};
use toolwire_testkit::each;

use crate::{assert_since, names, text};

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    total: i64,
}

async fn add(Args(sum): Args<Sum>) -> String {
    (sum.a + sum.b).to_string()
}

async fn total(Args(sum): Args<Sum>) -> Json<Total> {
    Json(Total { total: sum.a + sum.b })
}

fn server() -> Server {
    Server::builder("tools", "1.0")
        .tool(tool("total", total))
        .tool(
            tool("add", add)
                .title("Addition")
                .description("Adds two numbers.")
                .read_only()
                .icon(Icon::new("https://example.com/add.png")),
        )
        .tool(tool("count", || async { Json(7) }))
        .tool(tool("nothing", || async { Json(Option::<u8>::None) }))
        .build()
        .unwrap()
}

#[tokio::test]
async fn are_listed_in_the_order_of_registration() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply = wire.request("tools/list", Value::Null).await;
        let tools = &reply.result()["tools"];
        assert_eq!(names(tools, "name"), ["total", "add", "count", "nothing"]);
        let again = wire.request("tools/list", json!({})).await;
        assert_eq!(again.result()["tools"], *tools);
    })
    .await;
}

#[tokio::test]
async fn are_described_as_far_as_the_revision_can() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply = wire.request("tools/list", Value::Null).await;
        let [total, add, count] = [0, 1, 2].map(|at| &reply.result()["tools"][at]);
        assert_eq!(add["description"], "Adds two numbers.");
        assert_eq!(add["inputSchema"]["type"], "object");
        assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
        assert_eq!(add["inputSchema"]["properties"]["a"]["description"], "The first number.");
        let version = setup.version;
        assert_since(version, Version::V2025_03_26, add, "annotations");
        assert_since(version, Version::V2025_06_18, add, "title");
        assert_since(version, Version::V2025_06_18, total, "outputSchema");
        assert_since(version, Version::V2025_11_25, add, "icons");
        let wrapped = &count["outputSchema"]["properties"]["result"];
        let is_wrapped = version >= Version::V2025_06_18 && !version.is_modern();
        assert_eq!(wrapped.is_object(), is_wrapped, "{count}");
        assert!(add.get("outputSchema").is_none());
    })
    .await;
}

#[tokio::test]
async fn answer_with_text() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply =
            wire.request("tools/call", json!({ "name": "add", "arguments": { "a": 2, "b": 40 } })).await;
        assert_eq!(text(reply.result()), "42");
        assert!(reply.result().get("isError").is_none_or(|is_error| is_error == false));
    })
    .await;
}

#[tokio::test]
async fn answer_with_structured_content_and_the_same_as_text() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let (structured, modern) = (setup.version >= Version::V2025_06_18, setup.version.is_modern());
        for (name, object, plain) in [
            ("total", json!({ "total": 3 }), json!({ "total": 3 })),
            ("count", json!({ "result": 7 }), json!(7)),
            ("nothing", json!({ "result": null }), json!(null)),
        ] {
            let call = json!({ "name": name, "arguments": { "a": 1, "b": 2 } });
            let reply = wire.request("tools/call", call).await;
            assert_eq!(text(reply.result()), plain.to_string());
            let expected = structured.then_some(if modern { plain } else { object });
            assert_eq!(reply.result().get("structuredContent"), expected.as_ref(), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn say_to_the_model_what_is_wrong_with_its_arguments() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        for (arguments, parts) in [
            (json!({ "a": "two", "b": 1 }), ["/a", "expected an integer", "found the string \"two\""]),
            (json!({ "b": 1 }), ["missing", "required", "\"a\""]),
            (json!({ "a": 1.5, "b": 1 }), ["/a", "expected an integer", "found 1.5"]),
        ] {
            let reply = wire.request("tools/call", json!({ "name": "add", "arguments": arguments })).await;
            assert_eq!(reply.result()["isError"], true);
            let said = text(reply.result());
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            assert!(said.contains("\"add\""), "the tool is not named: {said}");
        }
        let reply = wire.request("tools/call", json!({ "name": "add" })).await;
        assert_eq!(reply.result()["isError"], true);
    })
    .await;
}

#[tokio::test]
async fn that_do_not_exist_are_refused() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        for params in [
            json!({ "name": "substract" }),
            json!({}),
            json!({ "name": 7 }),
            json!({ "name": "add", "arguments": [1, 2] }),
        ] {
            let reply = wire.request("tools/call", params).await;
            assert_eq!(reply.code(), -32602, "{}", reply.message());
        }
        let reply = wire.request("tools/call", json!({ "name": "substract" })).await;
        assert!(reply.error_text().contains("substract"), "{}", reply.message());
    })
    .await;
}

#[tokio::test]
async fn that_break_their_output_schema_are_our_error() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let liar = || async {
        let mut result = CallToolResult::new(vec![Content::text("n is many")]);
        result.structured_content = Some(RawJson::from(&json!({ "n": "many" })));
        result
    };
    let mute = || async { "no structured content at all" };
    let failing = || async { Err::<String, _>(ToolError::message("the disk is full")) };
    let server = Server::builder("tools", "1.0")
        .tool(tool("liar", liar).output_schema(schema.clone()))
        .tool(tool("mute", mute).output_schema(schema.clone()))
        .tool(tool("failing", failing).output_schema(schema))
        .tool(tool("honest", || async { "still here" }))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for name in ["liar", "mute"] {
            let reply = wire.request("tools/call", json!({ "name": name })).await;
            assert_eq!(reply.code(), -32603);
            assert!(!reply.message().to_string().contains("many"), "what was wrong stays in our log");
        }
        let reply = wire.request("tools/call", json!({ "name": "failing" })).await;
        assert_eq!(text(reply.result()), "the disk is full");
        let reply = wire.request("tools/call", json!({ "name": "honest" })).await;
        assert_eq!(text(reply.result()), "still here");
    })
    .await;
}

async fn at_once() -> String {
    panic!("at once: the secret is 42")
}

async fn late() -> String {
    tokio::task::yield_now().await;
    panic!("later: the secret is 42")
}

#[tokio::test]
async fn that_panic_disturb_nobody() {
    each(async |setup| {
        let open = Arc::new(Notify::new());
        let gate = Arc::clone(&open);
        let waiting = move || {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                "waited"
            }
        };
        let server = Server::builder("tools", "1.0")
            .tool(tool("wait", waiting))
            .tool(tool("panic", at_once))
            .tool(tool("late", late))
            .build()
            .unwrap();
        let mut wire = setup.wire(&server).await;
        let waiting = wire.start("tools/call", json!({ "name": "wait" })).await;
        for name in ["panic", "late"] {
            let reply = wire.request("tools/call", json!({ "name": name })).await;
            assert_eq!(reply.code(), -32603);
            assert!(!reply.message().to_string().contains("42"), "a panic's text is not for the client");
        }
        open.notify_one();
        assert_eq!(text(wire.reply(waiting).await.result()), "waited");
    })
    .await;
}

#[tokio::test]
async fn fail_in_words_or_in_codes() {
    let fault = || async { Err::<String, _>(ToolError::rpc(ErrorCode(4711), "no such account")) };
    let number = || async { "x".parse::<u8>().map(|number| number.to_string()) };
    let server = Server::builder("tools", "1.0")
        .tool(tool("said", || async { Err::<String, _>("try another city") }))
        .tool(tool("number", number))
        .tool(tool("fault", fault))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for (name, words) in [("said", "try another city"), ("number", "invalid digit found in string")] {
            let reply = wire.request("tools/call", json!({ "name": name })).await;
            assert_eq!(reply.result()["isError"], true);
            assert_eq!(text(reply.result()), words);
        }
        let reply = wire.request("tools/call", json!({ "name": "fault" })).await;
        assert_eq!((reply.code(), reply.error_text()), (4711, "no such account"));
    })
    .await;
}

#[tokio::test]
async fn answer_with_every_kind_of_content_the_revision_has() {
    let everything = || async {
        vec![
            Content::text("text"),
            Content::image([1, 2, 3], "image/png"),
            Content::audio([1, 2, 3], "audio/wav"),
            Content::resource_link("file:///a", "a"),
            Content::resource(ResourceContents::text("file:///b", "b")),
        ]
    };
    let server = Server::builder("tools", "1.0").tool(tool("everything", everything)).build().unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let reply = wire.request("tools/call", json!({ "name": "everything" })).await;
        let audio = if setup.version >= Version::V2025_03_26 { "audio" } else { "text" };
        let link = if setup.version >= Version::V2025_06_18 { "resource_link" } else { "text" };
        let kinds = names(&reply.result()["content"], "type");
        assert_eq!(kinds, ["text", "image", audio, link, "resource"]);
        assert_eq!(reply.result()["content"][1]["data"], "AQID");
    })
    .await;
}
