//! What is told to those who are let in and may not do what they ask for.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{Response, StatusCode};
use serde_json::{Value, json};
use toolwire_http::server::{Body, HttpService};
use toolwire_server::{Context, Log, Principal, Server, State, ToolError, tool};

use crate::{
    guard_kit::{Keys, call, challenge, guarded, guarded_by, request, send},
    legacy_kit::{self, Events, gist, json_body},
};

type Ran = Arc<AtomicUsize>;

async fn read(State(ran): State<Ran>) -> &'static str {
    ran.fetch_add(1, Ordering::Relaxed);
    "read"
}

async fn write(State(ran): State<Ran>) -> &'static str {
    ran.fetch_add(1, Ordering::Relaxed);
    "written"
}

async fn share(cx: Context) -> Result<&'static str, ToolError> {
    cx.require(["files:share"])?;
    Ok("shared")
}

async fn share_later(cx: Context) -> Result<&'static str, ToolError> {
    tokio::task::yield_now().await;
    cx.require(["files:share"])?;
    Ok("shared")
}

async fn talk_and_share(cx: Context, log: Log) -> Result<&'static str, ToolError> {
    log.info("about to share");
    tokio::task::yield_now().await;
    cx.require(["files:share"])?;
    Ok("shared")
}

async fn whoami(who: Principal) -> String {
    who.subject().to_owned()
}

fn server() -> (Server, Ran) {
    let ran = Ran::default();
    let server = Server::builder("files", "1.0")
        .state(Arc::clone(&ran))
        .tool(tool("read", read))
        .tool(tool("write", write).scopes(["files:write"]))
        .tool(tool("share", share))
        .tool(tool("share_later", share_later))
        .tool(tool("talk_and_share", talk_and_share))
        .tool(tool("whoami", whoami))
        .build()
        .unwrap();
    (server, ran)
}

async fn session(service: &HttpService, key: &str, version: &str) -> String {
    let response = send(service, request(Some(key), "POST", "/mcp"), &legacy_kit::initialize(version)).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    legacy(service, key, version, &session, &note).await;
    session
}

async fn legacy(
    service: &HttpService,
    key: &str,
    version: &str,
    session: &str,
    body: &Value,
) -> Response<Body> {
    let request = request(Some(key), "POST", "/mcp")
        .header("mcp-session-id", session)
        .header("mcp-protocol-version", version);
    send(service, request, body).await
}

#[tokio::test]
async fn a_missing_scope_is_a_status_and_a_challenge_in_both_eras() {
    let (server, ran) = server();
    let service = guarded(server, |http| http);
    let refused = call(&service, Some("alice-1"), "write").await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(challenge(&refused), "Key scope=\"files:write\", era=\"modern\"");
    let error = json_body(refused).await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32600)));
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = session(&service, "alice-1", version).await;
        let refused = legacy(&service, "alice-1", version, &session, &legacy_kit::call(7, "write")).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{version}");
        assert_eq!(challenge(&refused), "Key scope=\"files:write\", era=\"legacy\"");
        assert_eq!(json_body(refused).await["id"], 7);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert_eq!(gist(&json_body(call(&service, Some("alice-writes"), "write").await).await), "written");
}

#[tokio::test]
async fn a_scope_that_a_handler_finds_missing_is_a_status_as_long_as_there_is_one() {
    let (server, _) = server();
    let service = guarded(server, |http| http);
    let session = session(&service, "alice-1", "2025-11-25").await;
    for tool in ["share", "share_later"] {
        let modern = call(&service, Some("alice-1"), tool).await;
        assert_eq!(modern.status(), StatusCode::FORBIDDEN, "{tool}");
        assert_eq!(challenge(&modern), "Key scope=\"files:share\", era=\"modern\"");
        let call = legacy_kit::call(1, tool);
        let legacy = legacy(&service, "alice-1", "2025-11-25", &session, &call).await;
        assert_eq!(legacy.status(), StatusCode::FORBIDDEN, "{tool}");
        assert_eq!(challenge(&legacy), "Key scope=\"files:share\", era=\"legacy\"");
    }
}

#[tokio::test]
async fn after_the_first_message_a_missing_scope_is_told_in_the_stream() {
    let (server, _) = server();
    let service = guarded(server, |http| http);
    let session = session(&service, "alice-1", "2025-11-25").await;
    let call = legacy_kit::call(1, "talk_and_share");
    let mut events = Events::of(legacy(&service, "alice-1", "2025-11-25", &session, &call).await);
    assert_eq!(gist(&events.message().await.unwrap()), "about to share");
    let error = events.message().await.unwrap();
    assert_eq!(error["error"]["data"]["scope"], "files:share", "{error}");
    assert_eq!(events.message().await, None);
}

#[tokio::test]
async fn nothing_of_a_batch_runs_if_one_part_of_it_is_forbidden() {
    let (server, ran) = server();
    let service = guarded(server, |http| http);
    let version = "2025-03-26";
    let session = session(&service, "alice-1", version).await;
    let batch =
        json!([legacy_kit::call(1, "read"), legacy_kit::call(2, "write"), legacy_kit::call(3, "read")]);
    let refused = legacy(&service, "alice-1", version, &session, &batch).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(challenge(&refused), "Key scope=\"files:write\", era=\"legacy\"");
    assert_eq!(json_body(refused).await["id"], Value::Null);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    let answered = legacy(&service, "alice-writes", version, &session, &batch).await;
    assert_eq!(json_body(answered).await.as_array().unwrap().len(), 3);
    assert_eq!(ran.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn what_needs_somebody_is_answered_with_401_to_nobody() {
    let (server, ran) = server();
    let service = guarded_by(server, Keys::optional());
    assert_eq!(gist(&json_body(call(&service, None, "read").await).await), "read");
    for tool in ["whoami", "write"] {
        let refused = call(&service, None, tool).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{tool}");
        assert!(challenge(&refused).ends_with("era=\"modern\""), "{}", challenge(&refused));
    }
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[cfg(feature = "sse2024")]
#[tokio::test]
async fn over_a_stream_of_2024_a_missing_scope_is_told_in_the_stream() {
    let (server, ran) = server();
    let service = guarded(server, |http| http.sse2024("/sse", "/messages"));
    let key = Some("alice-1");
    let mut stream = Events::of(send(&service, request(key, "GET", "/sse"), &Value::Null).await);
    let place = stream.next().await.unwrap().data;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    // The scopes are those of whoever has opened the stream, not of whoever posts.
    for (key, message) in [
        ("alice-1", &legacy_kit::initialize("2024-11-05")),
        ("alice-1", &note),
        ("alice-writes", &legacy_kit::call(1, "write")),
    ] {
        let accepted = send(&service, request(Some(key), "POST", &place), message).await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    }
    stream.message().await.unwrap();
    let error = stream.message().await.unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["error"]["data"]["scope"]),
        (&json!(-32600), &json!("files:write"))
    );
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}
