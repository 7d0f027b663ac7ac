//! The checks before a message is one: hosts, methods, media types, sizes, shapes.

use serde_json::json;
use toolwire_http::server::{HttpLimits, Legacy};

use crate::{
    bare::{Connection, MODERN, Request, ask, enveloped},
    fixture::Fixture,
};

fn discover() -> Request {
    Request::modern("server/discover", json!({}))
}

#[tokio::test]
async fn hosts_and_origins() {
    let fixture = Fixture::start().await;
    let port = fixture.address.port();
    for (host, origin, status) in [
        ("localhost".to_owned(), None, 200),
        (format!("127.0.0.1:{port}"), Some(format!("http://127.0.0.1:{port}")), 200),
        (format!("localhost:{port}"), Some("http://localhost:5173".to_owned()), 200),
        ("evil.example.com".to_owned(), Some("http://evil.example.com".to_owned()), 403),
        ("evil.example.com".to_owned(), None, 403),
        ("localhost".to_owned(), Some("http://evil.example.com".to_owned()), 403),
        ("localhost".to_owned(), Some("null".to_owned()), 403),
    ] {
        let mut request = discover().header("Host", &host);
        if let Some(origin) = &origin {
            request = request.header("Origin", origin);
        }
        let response = ask(fixture.address, &request).await;
        assert_eq!(response.status(), status, "{host} {origin:?}");
        if status == 403 {
            let message = response.json();
            assert_eq!(message["error"]["code"], -32600);
            assert!(message.get("id").is_none(), "{message}");
        }
    }
}

#[tokio::test]
async fn host_the_refusal_says_what_to_change() {
    let fixture = Fixture::start().await;
    let host = ask(fixture.address, &discover().header("Host", "evil.example.com")).await.json();
    let text = host["error"]["message"].as_str().unwrap();
    assert!(text.contains("evil.example.com") && text.contains("public_url"), "{text}");
    let origin = ask(fixture.address, &discover().header("Origin", "http://evil.example.com")).await.json();
    let text = origin["error"]["message"].as_str().unwrap();
    assert!(text.contains("evil.example.com") && text.contains("allow_origins"), "{text}");
}

#[tokio::test]
async fn host_can_be_changed() {
    let fixture = Fixture::with(|http| {
        http.public_url("https://mcp.example/mcp")
            .allow_hosts(["inside"])
            .allow_origins(["https://app.example"])
    })
    .await;
    for (host, origin, status) in [
        ("mcp.example", "https://mcp.example", 200),
        ("inside:8080", "https://app.example", 200),
        ("localhost", "http://localhost", 403),
        ("outside", "https://app.example", 403),
    ] {
        let request = discover().header("Host", host).header("Origin", origin);
        // A page of the very host that is named is always trusted, so "localhost" takes another port.
        let request = if host == "localhost" { request.header("Host", "localhost:81") } else { request };
        assert_eq!(ask(fixture.address, &request).await.status(), status, "{host} {origin}");
    }
}

#[tokio::test]
async fn methods() {
    let fixture = Fixture::start().await;
    for method in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"] {
        let request = Request::new(method).header("MCP-Protocol-Version", MODERN);
        let response = ask(fixture.address, &request).await;
        assert_eq!(response.status(), 405, "{method}");
        assert_eq!(response.head.get("allow"), Some("POST"), "{method}");
    }
    let response = ask(fixture.address, &Request::new("PUT")).await;
    assert_eq!((response.status(), response.head.get("allow")), (405, Some("GET, POST, DELETE")));
    for legacy in [Legacy::Off, Legacy::Stateless] {
        let fixture = Fixture::with(|http| http.legacy(legacy)).await;
        for method in ["GET", "DELETE"] {
            let request = Request::new(method).header("Accept", "text/event-stream");
            let response = ask(fixture.address, &request).await;
            assert_eq!((response.status(), response.head.get("allow")), (405, Some("POST")), "{method}");
        }
    }
}

#[tokio::test]
async fn other_paths_are_not_found() {
    let fixture = Fixture::start().await;
    for path in ["/", "/mcp/", "/mcpp", "/mcp/x"] {
        assert_eq!(ask(fixture.address, &discover().path(path)).await.status(), 404, "{path}");
    }
    assert_eq!(ask(fixture.address, &discover().path("/mcp?x=1")).await.status(), 200);
}

#[tokio::test]
async fn media_types() {
    let fixture = Fixture::start().await;
    for (request, status) in [
        (discover().header("Content-Type", "application/json; charset=utf-8"), 200),
        (discover().header("Content-Type", "text/plain"), 415),
        (discover().without("Content-Type"), 415),
        (discover().header("Content-Encoding", "gzip"), 415),
        (discover().header("Accept", "text/html"), 406),
        (discover().header("Accept", "*/*"), 200),
        (discover().header("Accept", "application/json"), 200),
        (discover().without("Accept"), 200),
    ] {
        let response = ask(fixture.address, &request).await;
        assert_eq!(response.status(), status, "{request:?}");
        if status != 200 {
            assert_eq!(response.code(), -32600);
        }
    }
}

#[tokio::test]
async fn sizes() {
    let limits = HttpLimits { body_bytes: 1000, ..HttpLimits::default() };
    let fixture = Fixture::with(|http| http.limits(limits)).await;
    let long = Request::post(vec![b' '; 1001]);
    let response = ask(fixture.address, &long).await;
    assert_eq!((response.status(), response.code()), (413, -32600));
    // A body that does not say its length is cut off as soon as it is too long.
    let mut connection = Connection::open(fixture.address).await;
    connection
        .write(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
              Transfer-Encoding: chunked\r\n\r\n",
        )
        .await;
    connection.write(&[&b"3e9\r\n"[..], &[b' '; 1001], b"\r\n"].concat()).await;
    assert_eq!(connection.response().await.status(), 413);
}

#[tokio::test]
async fn json_and_response_shapes() {
    let fixture = Fixture::start().await;
    for (body, code, id) in [
        (r"{", -32700, None),
        ("", -32700, None),
        (r"[]", -32600, None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, None),
        ("3", -32600, None),
        (r#"{"id":1,"method":"ping"}"#, -32600, Some(1)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, -32600, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600, None),
    ] {
        for version in [None, Some(MODERN)] {
            let mut request = Request::post(body);
            if let Some(version) = version {
                request = request.header("MCP-Protocol-Version", version);
            }
            let response = ask(fixture.address, &request).await;
            assert_eq!((response.status(), response.code()), (400, code), "{body}");
            assert_eq!(response.json().get("id"), id.map(|id| json!(id)).as_ref(), "{body}");
        }
    }
}

#[tokio::test]
async fn a_server_without_legacy_names_what_it_serves() {
    let fixture = Fixture::with(|http| http.legacy(Legacy::Off)).await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let response = ask(fixture.address, &Request::post(initialize.to_string())).await;
    assert_eq!((response.status(), response.code()), (400, -32022));
    assert_eq!(response.json()["error"]["data"]["supported"], json!([MODERN]));
    let discovered = ask(fixture.address, &Request::modern("server/discover", json!({}))).await;
    assert_eq!(discovered.json()["result"]["supportedVersions"], json!([MODERN]));
    let mut unknown = enveloped("tools/list", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "v9".into();
    let request = Request::post(unknown.to_string()).header("MCP-Protocol-Version", "v9");
    let response = ask(fixture.address, &request.header("Mcp-Method", "tools/list")).await;
    assert_eq!(response.json()["error"]["data"], json!({ "supported": [MODERN], "requested": "v9" }));
}

#[tokio::test]
async fn an_array_is_no_modern_message_whatever_session_it_names() {
    let fixture = Fixture::start().await;
    let request = Request::post(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Session-Id", "stale");
    let response = ask(fixture.address, &request).await;
    assert_eq!((response.status(), response.code()), (400, -32600));
    let response = ask(fixture.address, &request.without("MCP-Protocol-Version")).await;
    assert_eq!((response.status(), response.code()), (404, -32600));
}
