//! What is hidden from a caller is as if it did not exist, whichever way it is asked for.
//!
//! Two servers are asked the same: one that hides something, and one that never had it. Their answers are compared byte
//! for byte.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::{
    Params, RawJson, Version,
    peek::Peek,
    wire::{CacheHint, CacheScope, Resource},
};
use toolwire_server::{
    Args, Context, Group, Limits, Listed, PageAt, Principal, Server, ServerBuilder, Uri, prompt, resource,
    template, tool,
};

use crate::wire::{Wire, modern, request};

fn person(name: &str, role: &str) -> Principal {
    let claims = json!({ "role": role });
    Principal::builder(name.to_owned()).claims(claims.as_object().unwrap().clone()).build()
}

fn listed(uri: &'static str) -> toolwire_server::TemplateRoute {
    template(uri, move |Uri(_): Uri<BTreeMap<String, String>>| async move { uri })
        .complete("x", ["xylophone"])
        .list(move |_: Context, _: PageAt| async move {
            Ok(Listed::new([Resource::at(uri.replace("{x}", "1")).named("one")]))
        })
}

#[derive(Deserialize, JsonSchema)]
struct X {
    #[expect(dead_code, reason = "only its name matters")]
    x: Option<String>,
}

/// What is hidden, of every kind.
fn secret() -> Group {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    Group::new()
        .tool(tool("audit", || async { "secret" }).input_schema(schema))
        .tool(tool("b2", || async { "secret" }))
        .prompt(prompt("confess", |Args(_): Args<X>| async { "secret" }).complete("x", ["xylophone"]))
        .resource(resource("public://fixed", || async { "secret" }))
        .resource(resource("secret://fixed", || async { "secret" }))
        // More specific than a public one.
        .template(template("public://vault/{x}", || async { "secret" }).complete("x", ["xylophone"]))
        .template(listed("listed-secret://{x}"))
}

fn public() -> Group {
    Group::new()
        .prompt(prompt("greet", |Args(_): Args<X>| async { "hello" }).complete("x", ["xylophone"]))
        .resource(resource("public://r1", || async { "r1" }))
        .resource(resource("public://r2", || async { "r2" }))
        .resource(resource("public://r3", || async { "r3" }))
        .template(template("public://{+rest}", || async { "public" }))
        .template(listed("listed-public://{x}"))
}

/// A server, with what `hidden` makes in the middle of everything else.
fn server(hidden: Group) -> ServerBuilder {
    Server::builder("files", "1")
        .limits(Limits { page_items: 2, ..Limits::default() })
        .tool(tool("a1", || async { "a1" }))
        .routes(hidden)
        .tool(tool("c3", || async { "c3" }))
        .tool(tool("d4", || async { "d4" }))
        .routes(public())
}

/// Everything that can be asked about what is hidden.
fn questions() -> Vec<(&'static str, Value)> {
    let after = |key: &str| json!({"cursor": BASE64_URL_SAFE_NO_PAD.encode(key)});
    let x = json!({"name": "x", "value": "x"});
    let complete = |reference: Value| json!({"ref": reference, "argument": x});
    let mut questions = vec![
        ("tools/list", json!({})),
        ("tools/list", after("a1")),
        ("tools/list", after("audit")),
        ("tools/list", after("b2")),
        ("tools/list", after("c3")),
        ("tools/list", after("d4")),
        ("tools/call", json!({"name": "audit"})),
        ("tools/call", json!({"name": "audit", "arguments": {"region": 7}})),
        ("tools/call", json!({"name": "b2"})),
        ("prompts/list", json!({})),
        ("prompts/list", after("confess")),
        ("prompts/get", json!({"name": "confess"})),
        ("prompts/get", json!({"name": "confess", "arguments": {"x": "1"}})),
        ("resources/list", json!({})),
        ("resources/list", after("public://r1")),
        ("resources/list", after("public://r2")),
        ("resources/list", after("public://r3")),
        ("resources/list", after("secret://fixed")),
        ("resources/templates/list", json!({})),
        ("resources/templates/list", after("public://vault/{x}")),
        ("resources/read", json!({"uri": "secret://fixed"})),
        ("resources/read", json!({"uri": "public://fixed"})),
        ("resources/read", json!({"uri": "public://vault/1"})),
        ("resources/read", json!({"uri": "listed-secret://1"})),
        ("completion/complete", complete(json!({"type": "ref/prompt", "name": "confess"}))),
        ("completion/complete", complete(json!({"type": "ref/resource", "uri": "public://vault/{x}"}))),
        ("completion/complete", complete(json!({"type": "ref/resource", "uri": "listed-secret://{x}"}))),
    ];
    questions
        .extend(["l0.", "l1.", "l2.", "l0.x"].map(|cursor| ("resources/list", json!({"cursor": cursor}))));
    questions
}

/// Asks everything there is to ask, and gives the answers as they were written.
async fn answers(server: &Server, who: Option<Principal>, version: Version) -> Vec<String> {
    let mut wire = Wire::connect_as(server, who);
    if !version.is_modern() {
        wire.handshake(version.as_str(), json!({})).await;
    }
    let mut answers = Vec::new();
    for (id, (method, params)) in questions().into_iter().enumerate() {
        let ask = if version.is_modern() { modern(id, method, params) } else { request(id, method, params) };
        wire.send(&ask).await;
        answers.push(wire.receive_text().await);
    }
    let secrets = [
        "secret://fixed",
        "public://fixed",
        "public://vault/1",
        "listed-secret://1",
        "secret://",
        "public://r1",
    ];
    if version.is_modern() {
        let wanted = json!({"notifications": {"resourceSubscriptions": secrets, "toolsListChanged": true}});
        wire.send(&modern("listen", "subscriptions/listen", wanted)).await;
        answers.push(wire.receive_text().await);
    } else {
        for (id, uri) in secrets.iter().enumerate() {
            wire.send(&request(id, "resources/subscribe", json!({"uri": uri}))).await;
            answers.push(wire.receive_text().await);
        }
    }
    // News of what is hidden does not come; that of anything else does.
    for uri in ["secret://fixed", "public://fixed", "public://vault/1", "listed-secret://1"] {
        if is_hiding(server) {
            server.notify().resource_updated(uri);
        }
    }
    server.notify().resource_updated("public://r1");
    answers.push(wire.receive_text().await);
    answers
}

fn is_hiding(server: &Server) -> bool {
    server.info().title.as_deref() == Some("hiding")
}

#[tokio::test]
async fn what_is_hidden_answers_like_what_never_existed() {
    let hiding = server(secret().visible_to(|who| who.claim("role") == Some("auditor")));
    let hiding = hiding.title("hiding").build().unwrap();
    let without = server(Group::new()).build().unwrap();
    for version in Version::ALL.iter().copied() {
        for who in [None, Some(person("eve", "reader")), Some(Principal::new("auditor"))] {
            let told = answers(&hiding, who.clone(), version).await;
            let expected = answers(&without, who.clone(), version).await;
            let title = r#","title":"hiding""#;
            for (told, expected) in told.iter().zip(&expected) {
                // The name of the server is in the metadata of modern results.
                assert_eq!(&told.replace(title, ""), expected, "{version} {who:?}");
                assert!(!told.contains("xylophone") || !told.contains("confess"), "{told}");
            }
            assert_eq!(told.len(), expected.len());
        }
    }
}

#[tokio::test]
async fn those_who_may_see_it_see_all_of_it() {
    let hiding = server(secret().visible_to(|who| who.claim("role") == Some("auditor"))).build().unwrap();
    let open = server(secret()).build().unwrap();
    for version in Version::ALL.iter().copied() {
        let auditor = Some(person("ada", "auditor"));
        assert_eq!(answers(&hiding, auditor.clone(), version).await, answers(&open, auditor, version).await);
    }
    let mut wire = Wire::connect_as(&hiding, Some(person("ada", "auditor")));
    let told = wire.ask(&modern(1, "tools/call", json!({"name": "audit"}))).await;
    assert_eq!(told["result"]["content"][0]["text"], "secret");
    let told = wire.ask(&modern(2, "resources/read", json!({"uri": "public://vault/1"}))).await;
    assert_eq!(told["result"]["contents"][0]["text"], "secret");
    let wanted = json!({"notifications": {"resourceSubscriptions": ["secret://fixed"]}});
    wire.ask(&modern(3, "subscriptions/listen", wanted)).await;
    hiding.notify().resource_updated("secret://fixed");
    assert_eq!(wire.receive().await["params"]["uri"], "secret://fixed");
}

#[tokio::test]
async fn without_its_scopes_a_route_is_hidden_if_the_server_says_so() {
    let build =
        |hide| server(secret().scopes(["audit"])).scope_implies("admin", ["audit"]).hide_without_scopes(hide);
    let hiding = build(true).title("hiding").build().unwrap();
    let without = server(Group::new()).build().unwrap();
    let with = |scopes: &str| Some(Principal::builder("ada").scopes(scopes.parse().unwrap()).build());
    for who in [None, with(""), with("other")] {
        let told = answers(&hiding, who.clone(), Version::LATEST).await;
        let told: Vec<_> = told.iter().map(|told| told.replace(r#","title":"hiding""#, "")).collect();
        assert_eq!(told, answers(&without, who, Version::LATEST).await);
    }
    let (open, shown) = (server(secret()).build().unwrap(), build(true).build().unwrap());
    for who in [with("audit"), with("admin")] {
        let told = answers(&shown, who.clone(), Version::LATEST).await;
        assert_eq!(told, answers(&open, who, Version::LATEST).await);
    }
    let mut wire = Wire::connect_as(&build(false).build().unwrap(), with("other"));
    let list = wire.ask(&modern(1, "tools/list", json!({}))).await;
    assert_eq!(list["result"]["tools"][1]["name"], "audit");
}

#[tokio::test]
async fn a_list_that_differs_by_caller_is_private_and_never_another_ones() {
    let hint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };
    let own = |name: &'static str| {
        tool(name, move || async move { name }).visible_to(move |who| who.subject() == name)
    };
    let mut builder = Server::builder("files", "1").list_cache(hint).prompt(prompt("p", || async { "p" }));
    let names: Vec<&'static str> =
        (0..70).map(|number| &*Box::leak(format!("n{number}").into_boxed_str())).collect();
    for name in &names {
        builder = builder.tool(own(name));
    }
    let server = builder.build().unwrap();
    // Twice, so that what was kept is read, beyond the number of lists that are kept.
    for _ in 0..2 {
        for name in &names {
            let mut wire = Wire::connect_as(&server, Some(Principal::new(*name)));
            let list = wire.ask(&modern(1, "tools/list", json!({}))).await;
            let tools = list["result"]["tools"].as_array().unwrap();
            assert_eq!(tools.len(), 1, "{name}");
            assert_eq!((&tools[0]["name"], &list["result"]["cacheScope"]), (&json!(name), &json!("private")));
        }
    }
    let mut wire = Wire::connect_as(&server, None);
    let list = wire.ask(&modern(1, "tools/list", json!({}))).await;
    assert_eq!((&list["result"]["tools"], &list["result"]["cacheScope"]), (&json!([]), &json!("private")));
    let prompts = wire.ask(&modern(2, "prompts/list", json!({}))).await;
    assert_eq!(prompts["result"]["cacheScope"], "public");
}

#[test]
fn headers_of_a_hidden_tool_are_not_checked() {
    let hiding = server(secret().visible_to(|who| who.claim("role") == Some("auditor"))).build().unwrap();
    let params = Params::from(RawJson::parse(r#"{"name":"audit","arguments":{"region":"eu"}}"#).unwrap());
    let check = |who: Option<&Principal>| hiding.check_param_headers(&Peek::of(&params), who, |_| Some("us"));
    assert!(check(Some(&person("ada", "auditor"))).is_err());
    assert_eq!(check(Some(&person("eve", "reader"))), Ok(()));
    assert_eq!(check(None), Ok(()));
}

#[tokio::test]
async fn a_rule_that_panics_has_not_said_yes() {
    let broken = |_: &Principal| -> bool { panic!("no idea") };
    let server =
        Server::builder("t", "1").tool(tool("x", || async { "x" }).visible_to(broken)).build().unwrap();
    let mut wire = Wire::connect_as(&server, Some(Principal::new("ada")));
    let list = wire.ask(&modern(1, "tools/list", json!({}))).await;
    assert_eq!(list["result"]["tools"], json!([]));
    assert_eq!(wire.ask(&modern(2, "tools/call", json!({"name": "x"}))).await["error"]["code"], -32602);
}

#[tokio::test]
async fn all_rules_of_a_route_have_to_agree() {
    let both = tool("x", || async { "x" }).visible_to(|who| who.claim("role") == Some("auditor"));
    let group = Group::new().tool(both).visible_to(|who| who.subject() == "ada");
    let server = Server::builder("t", "1").routes(group).build().unwrap();
    for (who, seen) in [("ada", "auditor"), ("eve", "auditor"), ("ada", "reader")]
        .map(|(name, role)| (person(name, role), (name, role) == ("ada", "auditor")))
    {
        let mut wire = Wire::connect_as(&server, Some(who));
        let list = wire.ask(&modern(1, "tools/list", json!({}))).await;
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), usize::from(seen));
    }
}

#[tokio::test]
async fn a_listing_is_not_run_for_those_who_may_not_read_what_it_lists() {
    let hint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };
    for fixed in [true, false] {
        let mut builder = Server::builder("files", "1").list_cache(hint);
        if fixed {
            builder = builder.resource(resource("public://r1", || async { "r1" }));
        }
        let group = Group::new().template(listed("mail://{x}")).scopes(["mail"]);
        let server = builder.routes(group).template(listed("open://{x}")).build().unwrap();
        let all = async |who: Option<Principal>| {
            let mut wire = Wire::connect_as(&server, who);
            let (mut found, mut params) = (Vec::new(), json!({}));
            loop {
                let list = wire.ask(&modern(1, "resources/list", params)).await;
                assert_eq!(list["result"]["cacheScope"], "private");
                let page = list["result"]["resources"].as_array().unwrap().clone();
                found.extend(page.iter().map(|item| item["uri"].as_str().unwrap().to_owned()));
                assert!(found.len() < 100, "the pages have no end");
                match &list["result"]["nextCursor"] {
                    Value::String(next) => params = json!({ "cursor": next }),
                    _ => break found,
                }
            }
        };
        let with = |scopes: &str| Some(Principal::builder("ada").scopes(scopes.parse().unwrap()).build());
        let expected = |listed: &[&'static str]| {
            fixed.then_some("public://r1").into_iter().chain(listed.iter().copied()).collect::<Vec<_>>()
        };
        for _ in 0..2 {
            assert_eq!(all(None).await, expected(&["open://1"]));
            assert_eq!(all(with("files")).await, expected(&["open://1"]));
            assert_eq!(all(with("mail")).await, expected(&["mail://1", "open://1"]));
        }
    }
}

#[tokio::test]
async fn whoever_listens_above_hears_nothing_of_what_it_may_not_read() {
    let group = Group::new()
        .resource(resource("mail://inbox/first", || async { "secret" }))
        .template(template("mail://inbox/{x}", || async { "secret" }))
        .scopes(["mail"]);
    let server = Server::builder("mail", "1")
        .routes(group)
        .resource(resource("mail://news", || async { "news" }))
        .build()
        .unwrap();
    for (scopes, heard) in [("", &["mail://news"][..]), ("mail", &["mail://inbox/first", "mail://inbox/x"])] {
        for version in [Version::LATEST, Version::V2025_11_25] {
            let who = Principal::builder("ada").scopes(scopes.parse().unwrap()).build();
            let mut wire = Wire::connect_as(&server, Some(who));
            if version.is_modern() {
                let wanted = json!({"notifications": {"resourceSubscriptions": ["mail://"]}});
                wire.ask(&modern(1, "subscriptions/listen", wanted)).await;
            } else {
                wire.handshake(version.as_str(), json!({})).await;
                let subscribed =
                    wire.ask(&request(1, "resources/subscribe", json!({"uri": "mail://"}))).await;
                assert!(subscribed["result"].is_object());
            }
            for uri in ["mail://inbox/first", "mail://inbox/x", "mail://news"] {
                server.notify().resource_updated(uri);
            }
            for uri in heard {
                assert_eq!(wire.receive().await["params"]["uri"], *uri, "{version}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_to_listen_to_too_much_is_not_looked_at_in_full() {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    let (looked, limits) = (Arc::new(AtomicUsize::new(0)), Limits { subscriptions: 8, ..Limits::default() });
    let counting = Arc::clone(&looked);
    let hidden = resource("x://1", || async { "x" }).scopes(["x"]).visible_to(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        true
    });
    let server = Server::builder("t", "1").limits(limits).resource(hidden).build().unwrap();
    let mut wire = Wire::connect_as(&server, Some(Principal::new("eve")));
    let uris = vec!["x://1"; 10_000];
    let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
    let refused = wire.ask(&modern(1, "subscriptions/listen", wanted)).await;
    assert!(refused["error"].is_object(), "{refused}");
    assert!(looked.load(Ordering::SeqCst) <= 8, "{looked:?}");
}

#[tokio::test]
async fn the_order_of_answers_does_not_tell_that_a_slow_tool_is_hidden() {
    let slow = tool("audit", || async {
        std::thread::sleep(std::time::Duration::from_millis(25));
        "secret"
    });
    let hidden = slow.visible_to(|who| who.subject() == "ada");
    let server = Server::builder("t", "1").tool(hidden).build().unwrap();
    let call = |id: u64, name: &str| modern(id, "tools/call", json!({ "name": name }));
    let mut ada = Wire::connect_as(&server, Some(Principal::new("ada")));
    for id in 0..3 {
        assert!(ada.ask(&call(id, "audit")).await["result"].is_object());
    }
    let mut eve = Wire::connect_as(&server, Some(Principal::new("eve")));
    for name in ["audit", "never"] {
        eve.send(&call(1, name)).await;
        eve.send(&call(2, "other")).await;
        let order = [eve.receive().await["id"].clone(), eve.receive().await["id"].clone()];
        assert_eq!(order, [json!(1), json!(2)], "{name}");
    }
}
