//! Who is let in, in which order that is found out, and what those hear who are not.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context as Task, Poll},
};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Frame, SizeHint};
use serde_json::{Value, json};
use toolwire_http::server::{Cors, HttpRequest, HttpService, Principal};
use toolwire_server::{Context, Server, tool};
use tower_service::Service as _;

use crate::{
    guard_kit::{DOCUMENT, Keys, call, challenge, guarded, guarded_by, modern, request, send},
    legacy_kit::{bytes, gist, json_body},
};

fn whoami_server() -> Server {
    let whoami = |cx: Context| async move { cx.principal().map_or("nobody", Principal::subject).to_owned() };
    Server::builder("files", "1.0").tool(tool("whoami", whoami)).build().unwrap()
}

fn service() -> HttpService {
    guarded(whoami_server(), |http| http)
}

#[tokio::test]
async fn only_those_with_a_key_are_let_in_and_known() {
    let service = service();
    for key in ["alice-1", "slow-alice"] {
        let response = call(&service, Some(key), "whoami").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["dpop-nonce"], "fresh");
        assert_eq!(gist(&json_body(response).await), "alice", "{key}");
    }
    for key in [None, Some("mallory")] {
        let response = call(&service, key, "whoami").await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(challenge(&response).starts_with("Key at="));
        assert_eq!(response.headers()["dpop-nonce"], "fresh");
        let error = json_body(response).await;
        assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(-32600)));
    }
}

#[tokio::test]
async fn who_lacks_what_every_request_needs_is_told_so_before_anything_is_read() {
    let response = call(&service(), Some("alice-may-nothing"), "whoami").await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(challenge(&response), "Key scope=\"files:read\", era=\"modern\"");
}

#[tokio::test]
async fn a_principal_that_somebody_in_front_has_left_counts_for_nothing() {
    let service = guarded_by(whoami_server(), Keys::optional());
    let message = crate::bare::enveloped("tools/call", json!({ "name": "whoami", "arguments": {} }));
    let request = request(None, "POST", "/mcp")
        .header("mcp-protocol-version", crate::bare::MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "whoami")
        .extension(Principal::new("root"));
    assert_eq!(gist(&json_body(send(&service, request, &message).await).await), "nobody");
}

#[tokio::test]
async fn nothing_that_a_handler_can_reach_has_the_key() {
    let search = |request: HttpRequest, cx: Context| async move {
        format!("{:?} {:?} {:?} {:?}", request.headers, request.extensions, cx, cx.principal())
    };
    let server = Server::builder("files", "1.0").tool(tool("search", search)).build().unwrap();
    let found = json_body(call(&guarded(server, |http| http), Some("alice-1"), "search").await).await;
    assert!(gist(&found).contains("mcp-name"), "{found}");
    assert!(!found.to_string().contains("alice-1"), "{found}");
    assert!(!gist(&found).to_lowercase().contains("authorization"), "{found}");
}

#[tokio::test]
async fn every_path_that_is_served_is_guarded_and_others_have_nothing_to_guard() {
    let service = guarded(whoami_server(), |http| http.cors(Cors::AllowedOrigins));
    for (method, uri, status) in [
        ("POST", "/mcp", 401),
        ("GET", "/mcp", 401),
        ("DELETE", "/mcp", 401),
        ("PUT", "/mcp", 401),
        ("OPTIONS", "/mcp", 401),
        ("GET", "/elsewhere", 404),
        ("POST", "/elsewhere", 404),
        ("GET", "/.well-known/oauth-authorization-server", 404),
    ] {
        let response = send(&service, request(None, method, uri), &Value::Null).await;
        assert_eq!(response.status().as_u16(), status, "{method} {uri}");
    }
}

#[cfg(feature = "sse2024")]
#[tokio::test]
async fn the_paths_of_2024_are_guarded_as_well() {
    let service = guarded(whoami_server(), |http| http.sse2024("/sse", "/messages"));
    for (method, uri) in [("GET", "/sse"), ("POST", "/messages?session=x"), ("POST", "/sse")] {
        let response = send(&service, request(None, method, uri), &Value::Null).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{method} {uri}");
    }
    let response = send(&service, request(Some("alice-1"), "GET", "/sse"), &Value::Null).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_host_of_a_request_decides_nothing_but_whether_it_is_served() {
    let service = service();
    let evil = |method: &str, uri: &str| {
        http::Request::builder().method(method).uri(uri).header("content-type", "application/json")
    };
    for (method, uri) in [("POST", "/mcp"), ("GET", DOCUMENT)] {
        let response = send(&service, evil(method, uri).header("host", "evil.example"), &Value::Null).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{method} {uri}");
        assert_eq!(challenge(&response), "");
    }
    let plain = call(&service, None, "whoami").await;
    let forwarded = request(None, "POST", "/mcp")
        .header("x-forwarded-host", "evil.example")
        .header("forwarded", "host=evil.example");
    let forwarded = send(&service, forwarded, &Value::Null).await;
    assert_eq!(challenge(&plain), challenge(&forwarded));
}

#[tokio::test]
async fn documents_are_for_every_page_and_everything_else_is_not() {
    let service = guarded(whoami_server(), |http| http.cors(Cors::AllowedOrigins));
    let from = |method: &str, uri: &str| request(None, method, uri).header("origin", "https://other.example");
    let response = send(&service, from("GET", DOCUMENT), &Value::Null).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert_eq!(bytes(response).await, "{\"public\":true}");
    let asked = from("OPTIONS", DOCUMENT)
        .header("access-control-request-method", "GET")
        .header("access-control-request-headers", "mcp-protocol-version");
    let response = send(&service, asked, &Value::Null).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert_eq!(response.headers()["access-control-allow-headers"], "mcp-protocol-version");
    for (method, uri) in [("POST", DOCUMENT), ("GET", "/mcp"), ("POST", "/mcp")] {
        let response = send(&service, from(method, uri), &Value::Null).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{method} {uri}");
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_are_asked_beforehand_without_a_key_and_can_read_why_they_were_refused() {
    let service = guarded(whoami_server(), |http| http.cors(Cors::AllowedOrigins));
    let origin = "https://files.example";
    let asked = request(None, "OPTIONS", "/mcp")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization");
    let response = send(&service, asked, &Value::Null).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(response.headers()["access-control-allow-origin"], origin);
    for (key, status) in [(None, 401), (Some("alice-may-nothing"), 403)] {
        let refused =
            send(&service, request(key, "POST", "/mcp").header("origin", origin), &Value::Null).await;
        assert_eq!(refused.status().as_u16(), status);
        assert_eq!(refused.headers()["access-control-allow-origin"], origin);
        let exposed = refused.headers()["access-control-expose-headers"].to_str().unwrap();
        assert!(exposed.contains("www-authenticate") && exposed.contains("dpop-nonce"), "{exposed}");
    }
}

/// A body without an end that counts what is read of it.
struct Endless(Arc<AtomicUsize>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Task<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.fetch_add(1024, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 1024])))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[tokio::test]
async fn what_a_refused_request_sends_is_read_a_little_so_that_the_answer_arrives() {
    let service = service();
    for (expects, most) in [(false, 64 * 1024), (true, 0)] {
        let read = Arc::new(AtomicUsize::new(0));
        let mut request = request(None, "POST", "/mcp");
        if expects {
            request = request.header("expect", "100-continue");
        }
        let request = request.body(Endless(Arc::clone(&read))).unwrap();
        let response = service.clone().call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(read.load(Ordering::Relaxed), most);
    }
}

/// A body that never comes.
struct Silent;

impl http_body::Body for Silent {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Task<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_that_sends_nothing_is_answered_all_the_same() {
    let request = request(None, "POST", "/mcp").body(Silent).unwrap();
    let started = tokio::time::Instant::now();
    let response = service().call(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(started.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn a_list_is_asked_for_by_nobody_but_those_with_a_key() {
    let service = guarded_by(whoami_server(), Keys::optional());
    assert_eq!(modern(&service, None, "tools/list", json!({})).await.status(), StatusCode::OK);
    assert_eq!(modern(&service, Some("x"), "tools/list", json!({})).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn settings_follow_the_resource_unless_they_are_set() {
    let elsewhere = guarded(whoami_server(), |http| http.path("/nested").allow_hosts(["inside.example"]));
    for (host, uri, status) in [
        ("files.example", "/nested", 401),
        ("inside.example", "/nested", 401),
        ("files.example", "/mcp", 404),
        ("evil.example", "/nested", 403),
    ] {
        let request = http::Request::post(uri).header("host", host);
        assert_eq!(send(&elsewhere, request, &Value::Null).await.status().as_u16(), status, "{host} {uri}");
    }
}
