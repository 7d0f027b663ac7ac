//! What handlers take beside their arguments, in every era.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwire_protocol::wire::Meta;
use toolwire_server::{
    Args, Caller, CallerCan, Context, Extension, FromContext, Rejection, Server, State, tool,
};
use toolwire_testkit::each;

use crate::text;

#[derive(Clone)]
struct App {
    greeting: Arc<str>,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// An extractor of our own.
struct CallerName(String);

impl FromContext for CallerName {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(Self(cx.caller().info().map_or_else(|| "nobody".to_owned(), |info| info.name.clone())))
    }
}

async fn greet(State(app): State<App>, CallerName(caller): CallerName, args: Option<Args<Name>>) -> String {
    let name = args.map_or(caller, |Args(name)| name.name);
    format!("{}, {name}", app.greeting)
}

async fn checked(args: Result<Args<Name>, Rejection>) -> &'static str {
    if matches!(args, Err(Rejection::InvalidArguments(_))) { "mended" } else { "fitting" }
}

async fn about(cx: Context, meta: Meta, client: Caller, extra: Option<Extension<App>>) -> String {
    let custom = meta.get("com.example/trace").and_then(|trace| trace.as_str().map(ToOwned::to_owned));
    let method = cx.method().to_string();
    format!(
        "{method} {} {custom:?} {} {}",
        cx.target().unwrap_or_default(),
        client.can(CallerCan::ListRoots),
        extra.is_none(),
    )
}

fn server() -> Server {
    Server::builder("extractors", "1.0")
        .state(App { greeting: "hello".into() })
        .tool(tool("greet", greet))
        .tool(tool("checked", checked))
        .tool(tool("about", about))
        .build()
        .unwrap()
}

#[tokio::test]
async fn give_state_and_values_of_ones_own() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let call = json!({ "name": "greet", "arguments": { "name": "Ada" } });
        assert_eq!(text(wire.request("tools/call", call).await.result()), "hello, Ada");
        let call = json!({ "name": "greet" });
        assert_eq!(text(wire.request("tools/call", call).await.result()), "hello, toolwire-testkit");
        // What is there and does not fit is not the same as what is absent.
        let call = json!({ "name": "greet", "arguments": {} });
        assert_eq!(wire.request("tools/call", call).await.result()["isError"], true);
    })
    .await;
}

#[tokio::test]
async fn that_may_fail_leave_it_to_the_handler() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for (arguments, said) in [(json!({ "name": 7 }), "mended"), (json!({ "name": "Ada" }), "fitting")] {
            let call = json!({ "name": "checked", "arguments": arguments });
            assert_eq!(text(wire.request("tools/call", call).await.result()), said);
        }
    })
    .await;
}

#[tokio::test]
async fn tell_about_the_request_and_its_caller() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire_with(&server, |wire| wire.capabilities(json!({ "roots": {} }))).await;
        let call = json!({ "name": "about", "_meta": { "com.example/trace": "t1" } });
        let reply = wire.request("tools/call", call).await;
        assert_eq!(text(reply.result()), "tools/call about Some(\"t1\") true true");
        let mut wire = setup.wire(&server).await;
        let reply = wire.request("tools/call", json!({ "name": "about" })).await;
        assert_eq!(text(reply.result()), "tools/call about None false true");
    })
    .await;
}
