//! Scopes: who may use what, and what those are told who may not.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::{Message, RpcError, Version, classify::LegacyView};
use toolwire_server::{
    Args, Context, Extensions, FromContext, Group, Principal, Rejection, Scopes, Server, ServerBuilder,
    State, ToolError,
    engine::{Arrival, Call, EncodedResponse, Incoming, Outcome},
    prompt, resource, template, tool,
};

use crate::wire::{Wire, modern, request};

/// How often a handler has run.
type Runs = Arc<AtomicUsize>;

fn ada(scopes: &str) -> Principal {
    Principal::builder("ada").issuer("https://login.example").scopes(scopes.parse().unwrap()).build()
}

async fn run(State(runs): State<Runs>) -> &'static str {
    runs.fetch_add(1, Ordering::SeqCst);
    "done"
}

fn builder(runs: &Runs) -> ServerBuilder {
    Server::builder("files", "1").state(Arc::clone(runs)).tool(tool("open", run))
}

#[derive(Deserialize, JsonSchema)]
struct Guide {
    #[expect(dead_code, reason = "only its name matters")]
    part: Option<String>,
}

/// A guarded route of every kind.
fn guarded(runs: &Runs) -> ServerBuilder {
    let group = Group::new()
        .tool(tool("write", run))
        .prompt(prompt("guide", |Args(_): Args<Guide>| async { "guide" }).complete("part", ["one"]))
        .resource(resource("file:///fixed", || async { "fixed" }))
        .template(template("file:///{name}", || async { "templated" }).complete("name", ["one"]))
        .scopes(["files:write"]);
    builder(runs)
        .routes(group)
        .method("acme/wipe", |_: Context| async { Ok::<_, RpcError>(json!({})) })
        .method_scopes("acme/wipe", ["files:write"])
        .scope_implies("files:admin", ["files:write", "files:read"])
}

/// The requests that need `files:write`.
fn guarded_requests() -> Vec<(&'static str, Value)> {
    let part = json!({"name": "part", "value": ""});
    let name = json!({"name": "name", "value": ""});
    vec![
        ("tools/call", json!({"name": "write"})),
        ("prompts/get", json!({"name": "guide", "arguments": {"part": "one"}})),
        ("resources/read", json!({"uri": "file:///fixed"})),
        ("resources/read", json!({"uri": "file:///x"})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "guide"}, "argument": part})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "file:///{name}"}, "argument": name}),
        ),
        ("acme/wipe", json!({})),
    ]
}

/// What a transport gets for a modern request: the answer with its status, and what the caller is missing.
async fn answer(server: &Server, who: Option<&Principal>, method: &str, params: Value) -> EncodedResponse {
    let message = modern(1, method, params).to_string();
    let (message, peek) = Message::parse_and_peek(&message.into()).unwrap();
    let incoming = server.receive(message, &peek, None, LegacyView::NoPeer, None);
    let Incoming::Request(request, origin) = incoming else { panic!("{incoming:?}") };
    let mut extensions = Extensions::default();
    if let Some(who) = who {
        extensions.insert(who.clone());
    }
    match Call::new(server, request, peek, origin, Arrival::new(server.ledger(), 0, extensions)) {
        Ok(call) => match call.await {
            Outcome::Answered(answer) => answer,
            Outcome::Cancelled => panic!("nobody has cancelled it"),
        },
        Err(answer) => answer,
    }
}

fn needs(answer: &EncodedResponse) -> (u16, String) {
    (answer.status, answer.lack.as_ref().map(|lack| lack.needs().to_string()).unwrap_or_default())
}

#[tokio::test]
async fn what_asks_for_scopes_is_refused_without_them_and_says_what_it_needs() {
    let runs = Runs::default();
    let server = guarded(&runs).build().unwrap();
    for (method, params) in guarded_requests() {
        let refused = answer(&server, None, method, params.clone()).await;
        assert_eq!(needs(&refused), (401, "files:write".to_owned()), "{method} {params}");
        for scopes in ["", "files:read", "files:write:all", "Files:Write"] {
            let refused = answer(&server, Some(&ada(scopes)), method, params.clone()).await;
            assert_eq!(needs(&refused), (403, "files:write".to_owned()), "{method} {params} {scopes}");
            let body: Value = serde_json::from_slice(&refused.body).unwrap();
            assert_eq!(
                (&body["error"]["code"], &body["error"]["data"]["scope"]),
                (&json!(-32600), &json!("files:write"))
            );
        }
        for scopes in ["files:write", "files:admin"] {
            let done = answer(&server, Some(&ada(scopes)), method, params.clone()).await;
            assert_eq!(needs(&done), (200, String::new()), "{method} {params}: {done:?}");
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    // Everybody sees it, and what asks for nothing is for everybody.
    let list = answer(&server, None, "tools/list", json!({})).await;
    assert!(String::from_utf8_lossy(&list.body).contains("\"write\""));
    assert_eq!(answer(&server, None, "tools/call", json!({"name": "open"})).await.status, 200);
}

#[tokio::test]
async fn on_a_pipe_a_lack_is_told_in_every_revision() {
    let runs = Runs::default();
    let server = guarded(&runs).build().unwrap();
    for version in Version::ALL {
        let mut wire = Wire::connect_as(&server, Some(ada("files:read")));
        let legacy = !version.is_modern();
        if legacy {
            wire.handshake(version.as_str(), json!({})).await;
        }
        let ask = |id, method, params| {
            if legacy { request(id, method, params) } else { modern(id, method, params) }
        };
        let refused = wire.ask(&ask(1, "tools/call", json!({"name": "write"}))).await;
        assert_eq!(refused["error"]["code"], -32600, "{version}");
        assert_eq!(refused["error"]["data"]["scope"], "files:write", "{version}");
        let done = wire.ask(&ask(2, "tools/call", json!({"name": "open"}))).await;
        assert_eq!(done["result"]["content"][0]["text"], "done", "{version}");
        if legacy {
            let refused = wire.ask(&request(3, "resources/subscribe", json!({"uri": "file:///fixed"}))).await;
            assert_eq!(refused["error"]["data"]["scope"], "files:write", "{version}");
        } else {
            let wanted = json!({"notifications": {"resourceSubscriptions": ["other://x", "file:///fixed"]}});
            let refused = wire.ask(&modern(3, "subscriptions/listen", wanted)).await;
            assert_eq!(refused["error"]["data"]["scope"], "files:write", "{version}");
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), Version::ALL.len());
}

#[tokio::test]
async fn nothing_of_a_batch_runs_if_one_call_in_it_is_forbidden() {
    let runs = Runs::default();
    let server = guarded(&runs).tool(tool("share", run).scopes(["files:share"])).build().unwrap();
    let mut wire = Wire::connect_as(&server, Some(ada("files:share")));
    wire.handshake("2025-03-26", json!({})).await;
    let call = |id, name| request(id, "tools/call", json!({"name": name}));
    let subscribe = request(4, "resources/subscribe", json!({"uri": "other://x"}));
    let answers = wire.ask(&json!([call(1, "open"), call(2, "share"), call(3, "write"), subscribe])).await;
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 4);
    for answer in answers {
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert_eq!(answer["error"]["data"]["scope"], "files:share files:write", "{answer}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    // Nor was anything subscribed to.
    server.notify().resource_updated("other://x");
    let answers = wire.ask(&json!([call(5, "open"), call(6, "share")])).await;
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_handler_asks_for_scopes_that_depend_on_the_arguments() {
    async fn share(cx: Context) -> Result<&'static str, ToolError> {
        cx.require(["files:share"])?;
        Ok("shared")
    }
    async fn careful(cx: Context) -> String {
        format!("{}", cx.require(["files:share"]).is_ok())
    }
    async fn boxed(cx: Context) -> Result<String, toolwire_server::BoxError> {
        cx.require(["files:share", "files:write"])?;
        Ok("shared".to_owned())
    }
    let server = Server::builder("files", "1")
        .tool(tool("share", share).scopes(["files:read"]))
        .tool(tool("careful", careful))
        .tool(tool("wrong", |cx: Context| async move {
            cx.require(["two words"]).map_err(ToolError::from).map(|()| "")
        }))
        .resource(resource("file:///x", boxed))
        .build()
        .unwrap();
    let call = |who: Option<Principal>, name: &'static str| {
        let server = server.clone();
        async move { answer(&server, who.as_ref(), "tools/call", json!({"name": name})).await }
    };
    // All that the operation needs is named, not only what this line asks for.
    let refused = call(Some(ada("files:read")), "share").await;
    assert_eq!(needs(&refused), (403, "files:read files:share".to_owned()));
    let body: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(body["error"]["data"]["scope"], "files:read files:share");
    assert_eq!(call(Some(ada("files:read files:share")), "share").await.status, 200);
    assert_eq!(needs(&call(None, "share").await), (401, "files:read".to_owned()));
    let read =
        answer(&server, Some(&ada("files:share")), "resources/read", json!({"uri": "file:///x"})).await;
    assert_eq!(needs(&read), (403, "files:share files:write".to_owned()));
    // Whoever goes on without them has answered for itself.
    assert_eq!(needs(&call(None, "careful").await), (200, String::new()));
    let wrong = call(Some(ada("two")), "wrong").await;
    assert!(wrong.lack.is_none() && String::from_utf8_lossy(&wrong.body).contains("-32603"), "{wrong:?}");
}

/// An extractor that takes the caller by itself.
struct Tenant(String);

impl FromContext for Tenant {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Principal::from_context(cx).await.map(|who| Self(who.subject().to_owned()))
    }
}

#[tokio::test]
async fn a_handler_that_takes_the_caller_is_not_for_anonymous_ones() {
    let server = Server::builder("files", "1")
        .tool(tool("known", |who: Principal| async move { who.subject().to_owned() }))
        .tool(tool("anyone", |who: Option<Principal>| async move { who.is_some().to_string() }))
        .tool(tool("tenant", |Tenant(name): Tenant| async move { name }))
        .tool(tool("any_tenant", |tenant: Option<Tenant>| async move { tenant.is_some().to_string() }))
        .build()
        .unwrap();
    for (name, anonymous) in [("known", 401), ("anyone", 200), ("tenant", 401), ("any_tenant", 200)] {
        let refused = answer(&server, None, "tools/call", json!({"name": name})).await;
        assert_eq!((refused.status, refused.lack.is_some()), (anonymous, anonymous == 401), "{name}");
        assert_eq!(answer(&server, Some(&ada("")), "tools/call", json!({"name": name})).await.status, 200);
    }
}

#[tokio::test]
async fn a_guard_that_is_added_while_serving_counts() {
    let runs = Runs::default();
    let server = builder(&runs).build().unwrap();
    server.add_tool(tool("late", run).scopes(["late"])).unwrap();
    assert_eq!(answer(&server, None, "tools/call", json!({"name": "late"})).await.status, 401);
    let server = builder(&runs).build().unwrap();
    server.edit(|edit| edit.add_tool(tool("late", run).scopes(["late"]))).unwrap();
    assert_eq!(answer(&server, None, "tools/call", json!({"name": "late"})).await.status, 401);

    // A request that was let in before is not let through after.
    let server = builder(&runs).build().unwrap();
    let message = modern(1, "tools/call", json!({"name": "open"})).to_string();
    let (message, peek) = Message::parse_and_peek(&message.into()).unwrap();
    let Incoming::Request(request, origin) = server.receive(message, &peek, None, LegacyView::NoPeer, None)
    else {
        panic!("a request")
    };
    let arrival = Arrival::new(server.ledger(), 0, Extensions::default());
    let call = Call::new(&server, request, peek, origin, arrival).unwrap();
    server
        .edit(|edit| {
            edit.remove_tool("open");
            edit.add_tool(tool("open", run).scopes(["open"]))
        })
        .unwrap();
    let Outcome::Answered(answer) = call.await else { panic!("an answer") };
    assert_eq!(needs(&answer), (401, "open".to_owned()));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[test]
fn rules_that_cannot_work_are_found_when_the_server_is_built() {
    let runs = Runs::default();
    let method = |_: Context| async { Ok::<_, RpcError>(json!({})) };
    for (server, said) in [
        (builder(&runs).tool(tool("x", run).scopes(["a b"])), "tool \"x\": the scope \"a b\""),
        (builder(&runs).tool(tool("x", run).scopes([""])), "tool \"x\": a scope is empty"),
        (builder(&runs).routes(Group::new().tool(tool("x", run)).scopes(["a\"b"])), "tool \"x\": the scope"),
        (
            builder(&runs).method_scopes("acme/x", ["a"]),
            "method_scopes(\"acme/x\", …): there is no such method",
        ),
        (builder(&runs).method_scopes("tools/call", ["a"]), "there is no such method"),
        (
            builder(&runs).method("acme/x", method).method_scopes("acme/x", ["ä"]),
            "method \"acme/x\": the scope",
        ),
        (builder(&runs).scope_implies("a", ["b c"]), "scope_implies(\"a\", …)"),
    ] {
        let error = server.build().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let many = (0..65).map(|number| format!("s{number}"));
    let error = builder(&runs).tool(tool("x", run).scopes(many)).build().unwrap_err().to_string();
    assert!(error.contains("more than 64 scopes"), "{error}");
}

#[test]
fn scopes_of_a_group_are_added_to_those_of_its_routes() {
    let group = Group::new().tool(tool("x", || async {}).scopes(["a"])).scopes(["b"]).prefix("g.");
    let server = Server::builder("t", "1").routes(group).build().unwrap();
    let message = modern(1, "tools/call", json!({"name": "g.x"})).to_string();
    let (Message::Request(request), peek) = Message::parse_and_peek(&message.into()).unwrap() else {
        panic!("a request")
    };
    let lack = server.admit(&request, &peek, Some(&ada("a"))).unwrap_err();
    assert_eq!(lack.needs(), &Scopes::of(["a", "b"]).unwrap());
    assert_eq!(server.admit(&request, &peek, Some(&ada("a b"))), Ok(()));
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

#[tokio::test]
async fn a_state_is_of_the_user_and_the_client_and_not_of_the_token() {
    async fn delete(cx: Context) -> Result<String, toolwire_server::BoxError> {
        let Confirm { yes } = cx.elicit("Really?").key("ok").accepted().await?;
        Ok(yes.to_string())
    }
    let server = Server::builder("files", "1").tool(tool("delete", delete)).build().unwrap();
    let who = |issuer: &str, client: &str| {
        Principal::builder("ada").issuer(issuer.to_owned()).client_id(client.to_owned())
    };
    let ask = |who: Principal, more: Value| {
        let server = server.clone();
        async move {
            let mut wire = Wire::connect_as(&server, Some(who));
            let mut call = modern(1, "tools/call", json!({"name": "delete"}));
            let params = call["params"].as_object_mut().unwrap();
            params.extend(more.as_object().unwrap().clone());
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                json!({"elicitation": {"form": {}}});
            wire.ask(&call).await
        }
    };
    let first = ask(who("https://login.example", "notes").build(), json!({})).await;
    let answered = json!({"ok": {"action": "accept", "content": {"yes": true}}});
    let retry = json!({"requestState": first["result"]["requestState"], "inputResponses": answered});
    for stranger in [
        who("https://login.example", "other"),
        who("https://other.example", "notes"),
        Principal::builder("ada"),
        Principal::builder("eve").issuer("https://login.example").client_id("notes"),
    ] {
        let refused = ask(stranger.clone().build(), retry.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{stranger:?}: {refused}");
    }
    let renewed = who("https://login.example", "notes").scopes("more".parse().unwrap());
    let renewed = renewed.expires_at(std::time::SystemTime::now()).build();
    assert_eq!(ask(renewed, retry).await["result"]["content"][0]["text"], "true");
}
