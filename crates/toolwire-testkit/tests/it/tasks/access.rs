//! Who may look at which task.

use serde_json::{Value, json};
use toolwire_server::{Extensions, Principal};
use toolwire_testkit::{AnyDuplex, Link, Setup};
use toolwire_transport::memory;

use super::*;

/// A connection of somebody who has proved who it is.
async fn of(server: &Server, version: Version, who: Principal) -> Wire {
    let (ours, theirs) = memory::pair();
    let mut extensions = Extensions::default();
    extensions.insert(who);
    let server = server.clone();
    tokio::spawn(async move { server.serve_with(theirs, extensions).await });
    Wire::builder(version).capabilities(capabilities(version)).over(AnyDuplex::new(ours)).await
}

fn scoped(name: &str, scopes: &str) -> Principal {
    Principal::builder(name).scopes(scopes.parse().unwrap()).build()
}

async fn asked(wire: &mut Wire, task: &Value) -> Vec<String> {
    let methods: &[&str] = if wire.version() == CORE {
        &["tasks/get", "tasks/result", "tasks/cancel"]
    } else {
        &["tasks/get", "tasks/update", "tasks/cancel"]
    };
    let mut texts = Vec::new();
    for method in methods {
        let mut params = id(task);
        params["inputResponses"] = json!({});
        let reply = wire.request(method, params).await;
        assert_eq!(reply.code(), -32602, "{method}: {:?}", reply.message());
        texts.push(reply.error_text().to_owned());
    }
    texts
}

#[tokio::test]
async fn unknown_and_foreign_tasks_cannot_be_told_apart() {
    for version in [CORE, EXTENSION] {
        let server = server();
        let mut ada = of(&server, version, Principal::new("ada")).await;
        let task = start(&mut ada, "waits", json!({})).await;
        let mut eve = of(&server, version, Principal::new("eve")).await;
        let foreign = asked(&mut eve, &task).await;
        let unknown = asked(&mut eve, &json!({ "taskId": "A".repeat(32) })).await;
        let nonsense = asked(&mut eve, &json!({ "taskId": "../etc" })).await;
        assert!(foreign == unknown && unknown == nonsense, "{foreign:?} {unknown:?} {nonsense:?}");
        assert_eq!(ada.request("tasks/get", id(&task)).await.result()["status"], "working");
    }
}

#[tokio::test]
async fn a_task_can_be_read_in_another_era_by_the_same_owner() {
    let server = server();
    let mut old = of(&server, CORE, Principal::new("ada")).await;
    let task = start(&mut old, "asks", json!({})).await;
    let mut new = of(&server, EXTENSION, Principal::new("ada")).await;
    let waiting = until(&mut new, &task, "input_required").await;
    assert!(waiting["ttlMs"].is_u64());
    let mut update = id(&task);
    update["inputResponses"] = json!({ "depth": depth(4) });
    new.request("tasks/update", update).await.result();
    assert_eq!(crate::text(old.request("tasks/result", id(&task)).await.result()), "4 deep");
}

#[tokio::test]
async fn a_list_is_for_those_who_can_be_told_apart() {
    core()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = Wire::builder(CORE).without_handshake().over(setup.open(&server)).await;
            let hello = json!({ "protocolVersion": CORE.as_str(), "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let hello = wire.request("initialize", hello).await;
            wire.notify("notifications/initialized", Value::Null).await;
            let tasks = &hello.result()["capabilities"]["tasks"];
            assert_eq!(tasks["cancel"], json!({}));
            assert_eq!(tasks["requests"], json!({ "tools": { "call": {} } }));
            assert!(hello.result()["capabilities"].get("extensions").is_none());
            // A process on this machine is known; whoever is behind any other stream is not.
            let known = setup.link == Link::Memory;
            assert_eq!(tasks.get("list").is_some(), known, "{}", setup.link);
            let list = wire.request("tasks/list", json!({})).await;
            if known { assert_eq!(list.result()["tasks"], json!([])) } else { assert_eq!(list.code(), -32601) }
        })
        .await;
}

#[tokio::test]
async fn lists_have_pages_the_newest_first_and_only_ones_own() {
    let server = builder().limits(few_tasks(500)).build().unwrap();
    let mut eve = of(&server, CORE, Principal::new("eve")).await;
    start(&mut eve, "sum", json!({ "a": 1, "b": 1 })).await;
    let mut ada = of(&server, CORE, Principal::new("ada")).await;
    let mut made = Vec::new();
    for number in 0..205 {
        made.push(start(&mut ada, "sum", json!({ "a": number, "b": 0 })).await["taskId"].clone());
    }
    let (mut listed, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let page = ada.request("tasks/list", json!({ "cursor": cursor })).await;
        let tasks = page.result()["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 100);
        let times: Vec<_> = tasks.iter().map(|task| task["createdAt"].as_str().unwrap().to_owned()).collect();
        assert!(times.windows(2).all(|two| two[0] >= two[1]), "{times:?}");
        listed.extend(tasks.iter().map(|task| task["taskId"].clone()));
        pages += 1;
        assert!(pages <= 3, "the pages have no end");
        match page.result().get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    let sorted = |mut ids: Vec<Value>| {
        ids.sort_by_key(ToString::to_string);
        ids
    };
    assert_eq!(pages, 3);
    assert_eq!(sorted(listed), sorted(made));
    for cursor in ["", "nonsense", "AAAA"] {
        assert_eq!(ada.request("tasks/list", json!({ "cursor": cursor })).await.code(), -32602, "{cursor:?}");
    }
}

#[tokio::test]
async fn what_a_tool_asks_of_its_callers_is_asked_of_those_who_look_at_its_tasks() {
    for version in [CORE, EXTENSION] {
        let secret = tool("secret", || async { "x" }).task(TaskPolicy::optional()).scopes(["secret"]);
        let hidden = tool("hidden", || async { "x" })
            .task(TaskPolicy::optional())
            .visible_to(|who| who.scopes().iter().any(|scope| scope == "hidden"));
        let server = Server::builder("t", "1").tool(secret).tool(hidden).build().unwrap();
        let mut able = of(&server, version, scoped("ada", "secret hidden")).await;
        let secret = start(&mut able, "secret", json!({})).await;
        let hidden = start(&mut able, "hidden", json!({})).await;
        // The same person, whose token allows less by now.
        let mut less = of(&server, version, scoped("ada", "other")).await;
        asked(&mut less, &hidden).await;
        let refused = less.request("tasks/get", id(&secret)).await;
        assert!(refused.is_error() && refused.code() != -32602, "{:?}", refused.message());
        if version == CORE {
            assert_eq!(less.request("tasks/list", json!({})).await.result()["tasks"], json!([]));
            let all = able.request("tasks/list", json!({})).await;
            assert_eq!(all.result()["tasks"].as_array().unwrap().len(), 2);
        }
    }
}
