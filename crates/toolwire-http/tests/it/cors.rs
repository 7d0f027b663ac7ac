//! Browsers.

use serde_json::json;
use toolwire_http::server::{Cors, HttpBuilder};

use crate::{
    bare::{Request, ask},
    fixture::Fixture,
};

const APP: &str = "https://app.example";

fn allowed(http: HttpBuilder) -> HttpBuilder {
    http.allow_origins([APP]).cors(Cors::AllowedOrigins)
}

fn preflight() -> Request {
    Request::new("OPTIONS")
        .header("Origin", APP)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "content-type,mcp-method,mcp-param-region")
}

#[tokio::test]
async fn a_preflight_is_answered_for_allowed_origins() {
    let fixture = Fixture::with(allowed).await;
    let response = ask(fixture.address, &preflight()).await;
    assert_eq!(response.status(), 204);
    assert_eq!(response.head.get("access-control-allow-origin"), Some(APP));
    assert_eq!(response.head.get("access-control-allow-methods"), Some("GET, POST, DELETE"));
    assert_eq!(
        response.head.get("access-control-allow-headers"),
        Some("content-type,mcp-method,mcp-param-region")
    );
    assert_eq!(response.head.get("vary"), Some("origin"));
    let response = ask(fixture.address, &preflight().header("Origin", "https://evil.example")).await;
    assert_eq!(response.status(), 403);
    assert_eq!(response.head.get("access-control-allow-origin"), None);
}

#[tokio::test]
async fn responses_can_be_read_errors_too() {
    let fixture = Fixture::with(allowed).await;
    let good = Request::modern("tools/list", json!({})).header("Origin", APP);
    for request in [good.clone(), good.without("Mcp-Method")] {
        let response = ask(fixture.address, &request).await;
        assert_eq!(response.head.get("access-control-allow-origin"), Some(APP));
        let exposed = response.head.get("access-control-expose-headers").unwrap();
        assert!(exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"));
    }
    let response = ask(fixture.address, &Request::modern("tools/list", json!({}))).await;
    assert_eq!(response.head.get("access-control-allow-origin"), None);
}

#[tokio::test]
async fn off_is_the_default() {
    let fixture = Fixture::with(|http| http.allow_origins([APP])).await;
    assert_eq!(ask(fixture.address, &preflight()).await.status(), 405);
    let request = Request::modern("tools/list", json!({})).header("Origin", APP);
    let response = ask(fixture.address, &request).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.head.get("access-control-allow-origin"), None);
}
