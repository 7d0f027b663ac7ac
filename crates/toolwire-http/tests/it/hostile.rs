//! Whatever comes in, a well-formed answer goes out and the next request is served.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolwire_server::{Server, tool};
use tower_service::Service as _;

use crate::{
    bare::{Connection, MODERN, Request, ask, enveloped},
    fixture::Fixture,
};

#[tokio::test]
async fn hostile_bodies() {
    let fixture = Fixture::start().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = enveloped("tools/call", json!({ "name": "add", "arguments": {} })).to_string().replace(
        "\"arguments\":{}",
        &format!("\"arguments\":{}{}", "{\"a\":".repeat(5000), "1".to_owned() + &"}".repeat(5000)),
    );
    let bodies: Vec<Vec<u8>> = vec![
        vec![0xff; 64],
        vec![0; 64],
        b"\xef\xbb\xbf{}".to_vec(),
        deep.into_bytes(),
        nested.into_bytes(),
        br#"{"jsonrpc":"2.0","id":99999999999999999999999999,"method":"tools/list"}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":["2026-07-28"]}}}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":{}}}"#.to_vec(),
    ];
    for body in bodies {
        for version in [MODERN, "2025-06-18", "\u{7f}", ""] {
            let request = Request::post(body.clone()).header("MCP-Protocol-Version", version);
            let response = ask(fixture.address, &request).await;
            assert!((200..500).contains(&response.status()), "{:?}", String::from_utf8_lossy(&body));
        }
    }
    assert_eq!(ask(fixture.address, &Request::modern("tools/list", json!({}))).await.status(), 200);
}

#[tokio::test]
async fn hostile_bytes_on_the_socket() {
    let fixture = Fixture::start().await;
    for bytes in [
        &b"\0\0\0\0\0\0\0\0\r\n\r\n"[..],
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let mut connection = Connection::open(fixture.address).await;
        connection.write(bytes).await;
        drop(connection);
    }
    assert_eq!(ask(fixture.address, &Request::modern("tools/list", json!({}))).await.status(), 200);
}

/// Sends a body to the service itself and checks that what comes back is a response one can read.
fn answer(body: Vec<u8>, headers: &[(&str, String)]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::builder("t", "1").tool(tool("t", || async { "" })).build().unwrap();
        let mut request = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let Ok(request) = request.body(Full::<Bytes>::from(body)) else { return };
        let response = crate::unaddressed(server).call(request).await.unwrap();
        let status = response.status().as_u16();
        assert!((200..500).contains(&status), "{status}");
        let content_type = response.headers().get("content-type").cloned();
        // A listen stream goes on for ever, so only what ends is read.
        if content_type.is_some_and(|value| value == "application/json") {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let message: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            assert!(message.get("id").is_none_or(|id| !id.is_null()));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(body in proptest::collection::vec(any::<u8>(), 0..512)) {
        answer(body, &[]);
    }

    #[test]
    fn any_text_in_a_header_gets_an_answer(version in "\\PC{0,12}", method in "\\PC{0,12}", name in "\\PC{0,12}") {
        let body = enveloped("tools/call", json!({ "name": "t" })).to_string().into_bytes();
        answer(body, &[
            ("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name),
        ]);
    }

    #[test]
    fn a_request_cut_or_changed_anywhere_gets_an_answer(cut in 0_usize..220, byte in any::<u8>()) {
        let headers =
            [("mcp-protocol-version", MODERN.to_owned()), ("mcp-method", "tools/call".to_owned()), ("mcp-name", "t".to_owned())];
        let body = enveloped("tools/call", json!({ "name": "t" })).to_string().into_bytes();
        answer(body.iter().copied().take(cut).collect(), &headers);
        let mut changed = body;
        if let Some(place) = changed.get_mut(cut) {
            *place = byte;
        }
        answer(changed, &headers);
    }
}
