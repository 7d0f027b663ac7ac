//! Modern requests: the checks from the envelope on, the two forms of a response, and cancellation.

use std::time::Duration;

use serde_json::{Value, json};
use toolwire_http::server::HttpLimits;

use crate::{
    bare::{Connection, MODERN, Request, ask, enveloped},
    fixture::Fixture,
};

#[tokio::test]
async fn a_quick_answer_is_json() {
    let fixture = Fixture::start().await;
    let response = ask(fixture.address, &Request::call("add", json!({ "a": 1, "b": 2 }))).await;
    assert_eq!(response.status(), 200);
    let message = response.json();
    assert_eq!(message["id"], 1);
    assert_eq!(message["result"]["content"][0]["text"], "3");
    assert_eq!(message["result"]["resultType"], "complete");
    assert_eq!(response.head.get("mcp-session-id"), None);
}

#[tokio::test]
async fn a_connection_serves_many_requests_and_ids_keep_their_type() {
    let fixture = Fixture::start().await;
    let mut connection = Connection::open(fixture.address).await;
    for id in [json!(1), json!("1"), json!(-7), json!("")] {
        let request =
            Request::modern("tools/list", json!({})).id(id.clone()).header("Mcp-Session-Id", "stale");
        let response = connection.ask(&request).await;
        assert_eq!(response.json()["id"], id);
        assert_eq!(response.head.get("mcp-session-id"), None, "never echoed");
    }
}

#[tokio::test]
async fn the_envelope_must_be_complete() {
    let fixture = Fixture::start().await;
    for params in [
        json!({}),
        json!({ "_meta": {} }),
        json!({ "_meta": { "io.modelcontextprotocol/clientCapabilities": {} } }),
        json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": MODERN } }),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": "x", "method": "server/discover", "params": params });
        let request = Request::post(body.to_string())
            .header("MCP-Protocol-Version", MODERN)
            .header("Mcp-Method", "server/discover");
        let response = ask(fixture.address, &request).await;
        assert_eq!((response.status(), response.code()), (400, -32602), "{body}");
        assert_eq!(response.json()["id"], "x");
    }
}

#[tokio::test]
async fn version_method_and_name_headers_must_agree() {
    let fixture = Fixture::start().await;
    let list = Request::modern("tools/list", json!({}));
    let call = Request::call("add", json!({ "a": 1, "b": 2 }));
    for (request, status, code) in [
        (list.clone().without("MCP-Protocol-Version"), 400, -32020),
        (list.clone().header("MCP-Protocol-Version", "2025-11-25"), 400, -32020),
        (list.clone().meta("io.modelcontextprotocol/protocolVersion", json!("v999.0.0")), 400, -32020),
        (
            list.clone()
                .meta("io.modelcontextprotocol/protocolVersion", json!("v999.0.0"))
                .header("MCP-Protocol-Version", "v999.0.0"),
            400,
            -32022,
        ),
        (list.clone().header("Mcp-Method", "prompts/list"), 400, -32020),
        (list.clone().header("Mcp-Method", "TOOLS/LIST"), 400, -32020),
        (list.clone().without("Mcp-Method"), 400, -32020),
        (list.clone().also("Mcp-Method", "tools/list"), 400, -32020),
        (call.clone().header("Mcp-Name", "wrong"), 400, -32020),
        (call.clone().header("Mcp-Name", "ädd"), 400, -32020),
        (call.clone().without("Mcp-Name"), 400, -32020),
    ] {
        let response = ask(fixture.address, &request).await;
        assert_eq!((response.status(), response.code()), (status, code), "{request:?}");
        assert_eq!(response.json()["id"], 1);
    }
    for request in [
        list.clone().without("Mcp-Method").header("MCP-METHOD", "tools/list"),
        call.clone().header("Mcp-Name", "  add  "),
        call.clone().header("Mcp-Name", "=?base64?YWRk?="),
    ] {
        let response = ask(fixture.address, &request).await;
        assert_eq!(response.status(), 200, "{request:?}");
        assert!(response.json().get("result").is_some());
    }
}

#[tokio::test]
async fn methods_that_are_not_offered() {
    let fixture = Fixture::start().await;
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"] {
        let response = ask(fixture.address, &Request::modern(method, json!({}))).await;
        assert_eq!((response.status(), response.code()), (404, -32601), "{method}");
        assert_eq!(response.json()["id"], 1);
    }
}

#[tokio::test]
async fn faults_of_the_parameters_are_answers() {
    let fixture = Fixture::start().await;
    let unknown = ask(fixture.address, &Request::call("no_such_tool", json!({}))).await;
    assert_eq!((unknown.status(), unknown.code()), (200, -32602));
    let level =
        Request::modern("tools/list", json!({})).meta("io.modelcontextprotocol/logLevel", json!("loud"));
    let level = ask(fixture.address, &level).await;
    assert_eq!((level.status(), level.code()), (200, -32602));
}

#[tokio::test]
async fn mirrored_arguments_must_agree() {
    let fixture = Fixture::start().await;
    let call = |value: &str| Request::call("mirrored", json!({ "value": value }));
    for (request, good) in [
        (call("Hello").header("Mcp-Param-Value", "Hello"), true),
        (call("Hello").header("MCP-PARAM-VALUE", "=?base64?SGVsbG8=?="), true),
        (call("Hello").header("Mcp-Param-Value", "=?base64?SGVsbG8?="), false),
        (call("Hello").header("Mcp-Param-Value", "=?base64?SGVs!!!bG8=?="), false),
        (call("SGVsbG8=").header("Mcp-Param-Value", "SGVsbG8="), true),
        (call("=?base64?SGVsbG8=").header("Mcp-Param-Value", "=?base64?SGVsbG8="), true),
        (call("Hello"), false),
        (call("Hello").header("Mcp-Param-Value", "hello"), false),
        (call("Hello").header("Mcp-Param-Value", "Hello").also("Mcp-Param-Value", "Hello"), false),
        (call("Hello").header("Mcp-Param-Value", "Hello").header("Mcp-Param-Count", "1"), false),
        (Request::call("mirrored", json!({})), true),
        (Request::call("mirrored", json!({ "value": null })), true),
        (Request::call("mirrored", json!({ "count": 7 })).header("Mcp-Param-Count", "7.0"), true),
        (Request::call("mirrored", json!({ "count": 7 })).header("Mcp-Param-Count", "8"), false),
        (call("Hello").header("Mcp-Param-Value", "Hello").header("Mcp-Param-Other", "x"), true),
    ] {
        let response = ask(fixture.address, &request).await;
        if good {
            assert_eq!(response.status(), 200, "{request:?}");
            assert!(response.json().get("result").is_some(), "{request:?}");
        } else {
            assert_eq!((response.status(), response.code()), (400, -32020), "{request:?}");
            assert_eq!(response.json()["id"], 1);
        }
    }
}

#[tokio::test]
async fn a_missing_client_capability_has_its_status() {
    let fixture = Fixture::start().await;
    let response = ask(fixture.address, &Request::call("needy", json!({}))).await;
    assert_eq!((response.status(), response.code()), (400, -32021));
    assert_eq!(response.json()["error"]["data"]["requiredCapabilities"], json!({ "sampling": {} }));
    // A code that a handler relays from elsewhere is no fault of this exchange.
    let response = ask(fixture.address, &Request::call("relays", json!({}))).await;
    assert_eq!((response.status(), response.code()), (200, -32020));
    let response = ask(fixture.address, &Request::call("panics", json!({}))).await;
    assert_eq!((response.status(), response.code()), (200, -32603));
}

#[tokio::test]
async fn notifications_are_accepted() {
    let fixture = Fixture::start().await;
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let response =
        ask(fixture.address, &Request::post(cancelled.to_string()).header("MCP-Protocol-Version", MODERN))
            .await;
    assert_eq!((response.status(), response.body.len()), (202, 0));
}

#[tokio::test]
async fn handlers_can_see_the_http_request() {
    let fixture = Fixture::start().await;
    let request = Request::call("agent", json!({})).header("User-Agent", "tester/1");
    let response = ask(fixture.address, &request).await;
    assert_eq!(response.json()["result"]["content"][0]["text"], "tester/1");
}

#[tokio::test]
async fn a_message_turns_the_response_into_a_stream() {
    let fixture = Fixture::start().await;
    let mut connection = Connection::open(fixture.address).await;
    connection.send(&Request::call("steps", json!({})).meta("progressToken", json!("t"))).await;
    let head = connection.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.get("content-type"), Some("text/event-stream"));
    assert_eq!(head.get("cache-control"), Some("no-store"));
    assert_eq!(head.get("x-accel-buffering"), Some("no"));
    let first = connection.message().await.unwrap();
    assert_eq!(first["method"], "notifications/progress");
    assert_eq!(first["params"]["progressToken"], "t");
    assert_eq!(first["params"]["progress"], 0.0);
    fixture.go.notify_one();
    assert_eq!(connection.message().await.unwrap()["params"]["progress"], 50.0);
    assert_eq!(connection.message().await.unwrap()["params"]["progress"], 100.0);
    assert_eq!(connection.message().await.unwrap()["result"]["content"][0]["text"], "done");
    assert_eq!(connection.message().await, None, "the stream ends after the answer");
    // And the connection is good for another request.
    let response = connection.ask(&Request::call("add", json!({ "a": 1, "b": 1 }))).await;
    assert_eq!(response.json()["result"]["content"][0]["text"], "2");
}

#[tokio::test]
async fn messages_sent_in_one_go_with_the_answer_precede_it() {
    let fixture = Fixture::start().await;
    let request = Request::call("quick_steps", json!({})).meta("progressToken", json!(7));
    let events = ask(fixture.address, &request).await.events();
    let done: Vec<&Value> = events.iter().map(|event| &event["params"]["progress"]).collect();
    assert_eq!(done, [&json!(1.0), &json!(2.0), &Value::Null]);
    assert_eq!(events[2]["id"], 1);
    // Without a token nothing is sent, so there is no stream.
    let response = ask(fixture.address, &Request::call("quick_steps", json!({}))).await;
    assert!(response.json().get("result").is_some());
}

#[tokio::test]
async fn logs_come_only_when_asked_for() {
    let fixture = Fixture::start().await;
    let response = ask(fixture.address, &Request::call("chatty", json!({}))).await;
    assert!(response.json().get("result").is_some());
    for (level, count) in [("debug", 3), ("info", 2), ("error", 1)] {
        let request =
            Request::call("chatty", json!({})).meta("io.modelcontextprotocol/logLevel", json!(level));
        let response = ask(fixture.address, &request).await;
        if count == 1 {
            assert!(response.json().get("result").is_some(), "{level}");
        } else {
            let events = response.events();
            assert_eq!(events.len(), count, "{level}");
            assert_eq!(events[0]["method"], "notifications/message");
        }
    }
}

#[tokio::test]
async fn a_client_that_takes_no_stream_gets_its_answer_alone() {
    let fixture = Fixture::start().await;
    let request = Request::call("quick_steps", json!({})).meta("progressToken", json!(7));
    let response = ask(fixture.address, &request.header("Accept", "application/json")).await;
    assert_eq!(response.json()["result"]["content"][0]["text"], "done");
    let only_events = Request::call("add", json!({ "a": 1, "b": 2 })).header("Accept", "text/event-stream");
    let events = ask(fixture.address, &only_events).await.events();
    assert_eq!(events[0]["result"]["content"][0]["text"], "3");
}

#[tokio::test]
async fn a_slow_answer_becomes_a_stream_that_stays_alive() {
    let limits = HttpLimits { keep_alive: Duration::from_millis(20), ..HttpLimits::default() };
    let mut fixture = Fixture::with(|http| http.limits(limits)).await;
    let mut connection = Connection::open(fixture.address).await;
    connection.send(&Request::call("wait", json!({}))).await;
    fixture.hears("started").await;
    let head = connection.head().await;
    assert_eq!(head.get("content-type"), Some("text/event-stream"));
    for _ in 0..3 {
        assert_eq!(connection.event().await.unwrap(), ": keep-alive");
    }
    fixture.go.notify_one();
    let answer = connection.message().await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    assert_eq!(connection.message().await, None);
}

#[tokio::test]
async fn a_handler_has_its_time() {
    let limits = toolwire_server::Limits {
        handler_timeout: Duration::from_millis(20),
        ..toolwire_server::Limits::default()
    };
    let mut fixture = Fixture::with_limits(limits, |http| http).await;
    let response = ask(fixture.address, &Request::call("hang", json!({}))).await;
    assert_eq!((response.status(), response.code()), (200, -32603));
    fixture.hears("started").await;
    fixture.hears_the_end().await;
}

#[tokio::test]
async fn closing_the_connection_cancels() {
    for streaming in [false, true] {
        let keep_alive = Duration::from_millis(if streaming { 5 } else { 5000 });
        let limits = HttpLimits { keep_alive, ..HttpLimits::default() };
        let mut fixture = Fixture::with(|http| http.limits(limits)).await;
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&Request::call("hang", json!({}))).await;
        fixture.hears("started").await;
        if streaming {
            assert_eq!(connection.head().await.status, 200);
            connection.event().await.unwrap();
        }
        drop(connection);
        fixture.hears_the_end().await;
    }
}

#[tokio::test]
async fn discover_says_what_is_served() {
    let fixture = Fixture::start().await;
    let body = enveloped("server/discover", json!({}));
    let request = Request::post(body.to_string())
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", "server/discover");
    let message = ask(fixture.address, &request).await.json();
    assert_eq!(message["result"]["supportedVersions"][0], MODERN);
    assert_eq!(message["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "fixture");
}
