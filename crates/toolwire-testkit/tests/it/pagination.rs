//! Lists in pages, with cursors that only the server understands.

use serde_json::{Value, json};
use toolwire_server::{Limits, Server, prompt, resource, template, tool};
use toolwire_testkit::{Wire, each};

use crate::names;

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

fn server() -> Server {
    let mut builder = Server::builder("pages", "1.0").limits(Limits { page_items: 3, ..Limits::default() });
    for number in 0..7 {
        builder = builder
            .tool(tool(format!("tool-{number}"), || async { "" }))
            .prompt(prompt(format!("prompt-{number}"), || async { "" }))
            .resource(resource(format!("r://{number}"), || async { "" }))
            .template(template(format!("t{number}://{{x}}"), || async { "" }));
    }
    builder.build().unwrap()
}

async fn pages(wire: &mut Wire, method: &str, member: &str, key: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let reply = wire.request(method, params).await;
        pages.push(names(&reply.result()[member], key));
        assert!(pages.len() < 100, "the pages have no end");
        match reply.result().get("nextCursor") {
            Some(Value::String(cursor)) => params = json!({ "cursor": cursor }),
            Some(other) => panic!("not a cursor: {other}"),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn gives_every_item_once_and_in_order() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for (method, member, key) in LISTS {
            let pages = pages(&mut wire, method, member, key).await;
            assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1], "{method}");
            let all = pages.concat();
            assert!(all.is_sorted() && all.len() == 7, "{method}: {all:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn refuses_cursors_it_did_not_give() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for (method, ..) in LISTS {
            for cursor in [json!(""), json!("bm9uc2Vuc2U"), json!("no base64!"), json!(7)] {
                let reply = wire.request(method, json!({ "cursor": cursor })).await;
                assert_eq!(reply.code(), -32602, "{method} {cursor}: {}", reply.message());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_cursor_survives_what_is_added_and_removed_around_it() {
    each(async |setup| {
        let server = server();
        let mut wire = setup.wire(&server).await;
        let first = wire.request("tools/list", json!({})).await;
        let cursor = first.result()["nextCursor"].clone();
        server.remove_tool("tool-0");
        server.remove_tool("tool-3");
        server.add_tool(tool("tool-7", || async { "" })).unwrap();
        let second = wire.request("tools/list", json!({ "cursor": cursor })).await;
        assert_eq!(names(&second.result()["tools"], "name"), ["tool-4", "tool-5", "tool-6"]);
    })
    .await;
}

#[tokio::test]
async fn a_full_last_page_has_no_cursor() {
    let server = Server::builder("pages", "1.0")
        .limits(Limits { page_items: 2, ..Limits::default() })
        .tool(tool("a", || async { "" }))
        .tool(tool("b", || async { "" }))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let reply = wire.request("tools/list", json!({})).await;
        assert_eq!(reply.result()["tools"].as_array().map(Vec::len), Some(2));
        assert!(reply.result().get("nextCursor").is_none());
    })
    .await;
}
