//! What a server offers, while it changes and while it is asked for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, mpsc},
};

use serde_json::{Value, json};
use toolwire_protocol::{ServerCapability, wire::Resource};
use toolwire_server::{
    Context, Listed, PageAt, Server, TemplateRoute, Uri, blocking, resource, template, tool,
};

use crate::wire::{PATIENCE, Wire, modern, request};

fn numbers(scheme: &'static str, count: usize) -> TemplateRoute {
    type Number = BTreeMap<String, usize>;
    template(
        format!("{scheme}://{{number}}"),
        |Uri(number): Uri<Number>| async move { format!("{number:?}") },
    )
    .list(move |_: Context, page: PageAt| async move {
        let first: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
        let last = count.min(first + 2);
        let items = (first..last).map(|number| Resource::at(format!("{scheme}://{number}")).named("number"));
        Ok(Listed::new(items).next((last < count).then(|| last.to_string())))
    })
}

async fn listed(wire: &mut Wire, cursor: Option<&Value>) -> Value {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    wire.ask(&request("list", "resources/list", params)).await
}

/// The URIs of all pages, page by page.
async fn pages(wire: &mut Wire) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = None;
    loop {
        let answer = listed(wire, cursor.as_ref()).await;
        let items = answer["result"]["resources"].as_array().unwrap_or_else(|| panic!("{answer}"));
        pages.push(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect());
        assert!(pages.len() < 100, "the pages have no end");
        cursor = answer["result"].get("nextCursor").cloned();
        if cursor.is_none() {
            return pages;
        }
    }
}

#[tokio::test]
async fn listings_come_after_what_is_fixed() {
    let server =
        Server::builder("test", "1.0").template(numbers("a", 3)).template(numbers("b", 1)).build().unwrap();
    let mut wire = Wire::legacy(&server, "2025-11-25").await;
    assert_eq!(pages(&mut wire).await, [vec!["a://0", "a://1"], vec!["a://2"], vec!["b://0"]]);

    server.add_resource(resource("fixed://one", || async { "" })).unwrap();
    assert_eq!(wire.receive().await["method"], "notifications/resources/list_changed");
    let all = pages(&mut wire).await;
    assert_eq!(all, [vec!["fixed://one"], vec!["a://0", "a://1"], vec!["a://2"], vec!["b://0"]]);
    // With the listings gone, the page that pointed to them is another one.
    server.remove_template("a://{number}");
    assert_eq!(wire.receive().await["method"], "notifications/resources/list_changed");
    assert_eq!(pages(&mut wire).await, [vec!["fixed://one"], vec!["b://0"]]);
    for cursor in ["l9.", "l1.2", "lx.", "l0.many", "????"] {
        let answer = listed(&mut wire, Some(&cursor.into())).await;
        assert!(answer["error"]["code"].is_number(), "{cursor}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_has_its_bounds() {
    let large = template("large://{number}", || async { "" }).list(|_: Context, page: PageAt| async move {
        assert_eq!((page.cursor, page.limit), (None, 100));
        Ok(Listed::new((0..101).map(|number| Resource::at(format!("large://{number}")))))
    });
    let slow = template("slow://{number}", || async { "" })
        .list(|_: Context, _: PageAt| async move { std::future::pending().await });
    for (route, said) in [(large, "too many resources"), (slow, "took more than 5s")] {
        let server = Server::builder("test", "1.0").template(route).build().unwrap();
        let mut wire = Wire::legacy(&server, "2025-11-25").await;
        let answer = listed(&mut wire, None).await;
        assert!(answer["error"]["message"].as_str().unwrap().contains(said), "{answer}");
    }
}

#[tokio::test]
async fn an_edit_is_seen_at_once_and_told_once() {
    let server = Server::builder("test", "1.0")
        .tool(tool("old", || async { "" }))
        .resource(resource("r://0", || async { "" }))
        .build()
        .unwrap();
    let mut wire = Wire::legacy(&server, "2025-11-25").await;
    // An answer tells that the end of the handshake has been read.
    wire.ask(&request(0, "ping", json!({}))).await;
    let edited = server.edit(|edit| {
        assert!(edit.remove_tool("old") && !edit.remove_tool("never"));
        for number in 0..100 {
            edit.add_tool(tool(format!("new{number}"), || async { "" }))?;
        }
        edit.add_resource(resource("r://1", || async { "" }))?;
        Ok("done")
    });
    assert_eq!(edited.unwrap(), "done");
    let told = [wire.receive().await, wire.receive().await].map(|message| message["method"].clone());
    assert!(told.contains(&"notifications/tools/list_changed".into()), "{told:?}");
    assert!(told.contains(&"notifications/resources/list_changed".into()), "{told:?}");

    // What fails leaves everything as it was, and is told to nobody.
    let failed = server.edit(|edit| {
        edit.remove_tool("new0");
        edit.add_tool(tool("new1", || async { "" }))
    });
    assert_eq!(failed.unwrap_err().to_string(), "tool \"new1\" is registered twice");
    let answer = wire.ask(&request(1, "tools/call", json!({ "name": "new0" }))).await;
    assert_eq!(answer["id"], 1, "{answer}");
    assert!(answer.get("result").is_some(), "{answer}");
}

#[tokio::test]
async fn tasks_are_announced_as_each_revision_does() {
    let server = Server::builder("test", "1.0").advertise(ServerCapability::Tasks).build().unwrap();
    let params = |version: &str| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut announced = Vec::new();
    for version in ["2025-06-18", "2025-11-25"] {
        let answer = Wire::connect(&server).ask(&request(1, "initialize", params(version))).await;
        announced.push(answer["result"]["capabilities"].clone());
    }
    let answer = Wire::connect(&server).ask(&modern(1, "server/discover", json!({}))).await;
    announced.push(answer["result"]["capabilities"].clone());
    // Whoever is at the other end of a pipe can be told apart from others, and may see a list.
    let core = json!({"tasks": {"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}}});
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    assert_eq!(announced, [json!({}), core, extension]);
}

#[tokio::test]
async fn what_blocks_holds_up_nobody() {
    let (go, wait) = mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    // Shorter than the timeout for the answer, which then has the reason.
    let block = move || wait.lock().unwrap().recv_timeout(PATIENCE / 2).map_or("timed out", |()| "went on");
    let quick = move || {
        let _ = go.send(());
        async { "quick" }
    };
    let server = Server::builder("test", "1.0")
        .tool(tool("block", blocking(block)))
        .tool(tool("quick", quick))
        .tool(tool("panic", blocking(|| assert!(std::hint::black_box(false), "on purpose"))))
        .build()
        .unwrap();
    let mut wire = Wire::legacy(&server, "2025-11-25").await;
    wire.send(&request("block", "tools/call", json!({ "name": "block" }))).await;
    wire.send(&request("quick", "tools/call", json!({ "name": "quick" }))).await;
    let mut said = BTreeMap::new();
    for _ in 0..2 {
        let answer = wire.receive().await;
        said.insert(answer["id"].to_string(), answer["result"]["content"][0]["text"].clone());
    }
    assert_eq!(said[r#""block""#], "went on");
    assert_eq!(said[r#""quick""#], "quick");
    let answer = wire.ask(&request(3, "tools/call", json!({ "name": "panic" }))).await;
    assert_eq!(answer["error"]["message"], "the handler panicked", "{answer}");
}
