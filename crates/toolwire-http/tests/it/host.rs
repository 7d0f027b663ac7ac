//! Requests that do not name their host, or name it in more than one way (RFC 9112, 3.2; RFC 9113, 8.3.1).

use serde_json::json;
use toolwire_http::server::HttpBuilder;

use crate::{
    bare::{Request, ask},
    fixture::Fixture,
};

#[tokio::test]
async fn a_request_names_its_host_once() {
    let call = Request::call("add", json!({ "a": 1, "b": 2 }));
    let url = "http://localhost/mcp";
    // Nothing of this depends on which hosts are allowed.
    for fixture in [Fixture::start().await, Fixture::with(HttpBuilder::allow_any_host).await] {
        for (request, status) in [
            (call.clone(), 200),
            (call.clone().without("Host"), 400),
            (call.clone().also("Host", "localhost"), 400),
            (call.clone().also("Host", "evil.example"), 400),
            (call.clone().header("Host", ""), 400),
            (call.clone().header("Host", "local host"), 400),
            // What a URL in the request line names is the host, and a Host is needed all the same.
            (call.clone().path(url), 200),
            (call.clone().path(url).header("Host", "other.example"), 200),
            (call.clone().path(url).without("Host"), 400),
            (call.clone().path(url).also("Host", "localhost"), 400),
            // This version knew no Host.
            (call.clone().version("HTTP/1.0").without("Host"), 200),
            (call.clone().version("HTTP/1.0"), 200),
            (call.clone().version("HTTP/1.0").also("Host", "localhost"), 400),
        ] {
            let response = ask(fixture.address, &request).await;
            assert_eq!(response.status(), status, "{request:?}");
            if status == 400 {
                assert_eq!(response.code(), -32600);
                let text = response.json()["error"]["message"].as_str().unwrap().to_owned();
                assert!(text.to_lowercase().contains("host"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_url_in_the_request_line_is_judged_like_a_host() {
    let fixture = Fixture::start().await;
    let request = Request::call("add", json!({ "a": 1, "b": 2 })).path("http://evil.example/mcp");
    assert_eq!(ask(fixture.address, &request).await.status(), 403);
}
