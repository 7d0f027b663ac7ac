//! Headers that come twice: whoever stands in front may have read the other one, so neither counts.

use serde_json::json;

use crate::{
    bare::{MODERN, Request, ask},
    fixture::Fixture,
};

const LEGACY: &str = "2025-06-18";

async fn open_session(fixture: &Fixture) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" }
    } });
    let response = ask(fixture.address, &Request::post(hello.to_string())).await;
    let session = response.head.get("mcp-session-id").unwrap().to_owned();
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let note = Request::post(note.to_string()).header("Mcp-Session-Id", &session);
    assert_eq!(ask(fixture.address, &note).await.status(), 202);
    session
}

#[tokio::test]
async fn of_two_sessions_none_is_meant() {
    let fixture = Fixture::start().await;
    let (mine, other) = (open_session(&fixture).await, open_session(&fixture).await);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let request = Request::post(list.to_string()).header("MCP-Protocol-Version", LEGACY);
    let request = request.header("Mcp-Session-Id", &mine);
    assert_eq!(ask(fixture.address, &request).await.status(), 200);
    for second in [&mine, &other] {
        assert_eq!(ask(fixture.address, &request.clone().also("Mcp-Session-Id", second)).await.status(), 404);
    }
}

#[tokio::test]
async fn of_two_versions_none_is_meant() {
    let fixture = Fixture::start().await;
    let session = open_session(&fixture).await;
    for method in ["GET", "DELETE"] {
        let request = Request::new(method)
            .header("Accept", "text/event-stream")
            .header("Mcp-Session-Id", &session)
            .header("MCP-Protocol-Version", LEGACY);
        let twice = request.clone().also("MCP-Protocol-Version", LEGACY);
        assert_eq!(ask(fixture.address, &twice).await.status(), 400, "{method}");
        if method == "DELETE" {
            assert_eq!(ask(fixture.address, &request).await.status(), 204);
        }
    }
}

#[tokio::test]
async fn a_version_that_comes_twice_is_refused_by_the_name_of_its_header() {
    let fixture = Fixture::start().await;
    let session = open_session(&fixture).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let legacy = |body: String| Request::post(body).header("Mcp-Session-Id", &session);
    for (request, version, id) in [
        (Request::modern("tools/list", json!({})).without("MCP-Protocol-Version"), MODERN, json!(1)),
        (legacy(list.to_string()), LEGACY, json!(1)),
        (legacy(json!([list]).to_string()), "2025-03-26", json!(null)),
    ] {
        let twice =
            request.clone().also("MCP-Protocol-Version", version).also("MCP-Protocol-Version", version);
        for request in [twice, request.header("MCP-Protocol-Version", "\u{e4}")] {
            let response = ask(fixture.address, &request).await;
            let answer = response.json();
            assert_eq!((response.status(), &answer["id"]), (400, &id), "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(
                message.starts_with("MCP-Protocol-Version is repeated") && !message.contains('\\'),
                "{message}"
            );
        }
    }
}
