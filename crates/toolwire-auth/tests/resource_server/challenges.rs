//! What clients are told: where to log in, and what to ask for.

use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use toolwire_auth::server::{Dpop, Jwt, ResourceServer};
use toolwire_http::server::HttpService;
use tower_service::Service as _;

use crate::kit::*;

async fn legacy_call(
    service: &HttpService,
    token: &str,
    tool: &str,
) -> http::Response<toolwire_http::server::Body> {
    let post = |session: Option<&str>| {
        let request = Request::post("/mcp")
            .header("host", "files.example")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", format!("Bearer {token}"));
        match session {
            Some(session) => {
                request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
            }
            None => request,
        }
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let response = send(service, post(None), &initialize).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send(service, post(Some(&session)), &note).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    send(service, post(Some(&session)), &call).await
}

#[tokio::test]
async fn nobody_is_told_where_to_log_in_and_that_nothing_was_wrong_with_a_token() {
    let service = service(&described().build().unwrap());
    let response = send(&service, request("whoami"), &message("whoami")).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let challenge = challenged(&response);
    assert!(challenge.is("Bearer"));
    assert_eq!(challenge.resource_metadata(), Some(METADATA));
    assert_eq!((challenge.scope(), challenge.error()), (Some("files:read"), None));
}

#[tokio::test]
async fn a_missing_scope_is_named_with_everything_that_the_operation_needs() {
    let service = service(&described().build().unwrap());
    let alice = token(&[("scope", json!("files:read mail:read"))]);
    let modern = call(&service, "write", &alice).await;
    assert_eq!(modern.status(), StatusCode::FORBIDDEN);
    let challenge = challenged(&modern);
    assert_eq!(challenge.error(), Some("insufficient_scope"));
    assert_eq!(challenge.scope(), Some("files:read files:write"));
    assert_eq!(challenge.resource_metadata(), Some(METADATA));
    // Clients of older revisions ask for no more than they are told, and would lose what they have.
    let legacy = legacy_call(&service, &alice, "write").await;
    assert_eq!(legacy.status(), StatusCode::FORBIDDEN);
    assert_eq!(challenged(&legacy).scope(), Some("files:read files:write mail:read"));
    let nothing = token(&[("scope", json!("mail:read"))]);
    let refused = call(&service, "whoami", &nothing).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(challenged(&refused).scope(), Some("files:read"));
}

#[tokio::test]
async fn scopes_are_named_as_clients_have_to_ask_for_them() {
    let guard = ResourceServer::new(RESOURCE, ISSUER)
        .verify(Jwt::keys(jwks(&KEY)).scope_prefix("api://files/"))
        .scopes(["read"])
        .build()
        .unwrap();
    let service = service(&guard);
    let response = send(&service, request("whoami"), &message("whoami")).await;
    assert_eq!(challenged(&response).scope(), Some("api://files/read"));
    let alice = token(&[("scope", json!("read"))]);
    assert_eq!(call(&service, "whoami", &alice).await.status(), StatusCode::OK);
}

async fn metadata(
    service: &HttpService,
    path: &str,
    host: &str,
) -> http::Response<toolwire_http::server::Body> {
    let request = Request::get(path).header("host", host).header("origin", "https://page.example");
    send(service, request, &Value::Null).await
}

#[tokio::test]
async fn the_metadata_are_for_everybody_and_the_same_whatever_a_request_says_of_its_host() {
    let guard = described()
        .issuer("https://second.example", Jwt::keys(jwks(&KEY)))
        .dpop(Dpop::accepted())
        .build()
        .unwrap();
    let service = service(&guard);
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let response = metadata(&service, path, "files.example").await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert_eq!(response.headers()["cache-control"], "public, max-age=3600");
        let document = json_body(response).await;
        assert_eq!(document["resource"], RESOURCE);
        assert_eq!(document["authorization_servers"], json!([ISSUER, "https://second.example"]));
        assert_eq!(document["scopes_supported"], json!(["files:read"]));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
        assert_eq!(document["resource_name"], "Files");
        assert_eq!(document["dpop_bound_access_tokens_required"], false);
        assert!(document["dpop_signing_alg_values_supported"].as_array().unwrap().contains(&json!("ES256")));
        assert_eq!(metadata(&service, path, "evil.example").await.status(), StatusCode::FORBIDDEN);
        let request =
            Request::get(path).header("host", "files.example").header("x-forwarded-host", "evil.example");
        assert_eq!(json_body(send(&service, request, &Value::Null).await).await, document);
    }
}

#[tokio::test]
async fn below_a_router_the_metadata_are_mounted_beside_the_endpoint() {
    let guard = described().build().unwrap();
    let mcp = HttpService::builder(server()).guard(guard.clone()).path("/").build().unwrap();
    let mut app = axum::Router::new().nest_service("/mcp", mcp);
    for (path, documents) in guard.metadata_routes() {
        app = app.route_service(&path, documents);
    }
    let mut ask = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).header("host", "files.example");
        let request = request.body(axum::body::Body::new(Full::<bytes::Bytes>::default())).unwrap();
        app.call(request).await.unwrap().status().as_u16()
    };
    assert_eq!(ask("GET", "/.well-known/oauth-protected-resource/mcp").await, 200);
    assert_eq!(ask("GET", "/.well-known/oauth-protected-resource").await, 200);
    assert_eq!(ask("POST", "/mcp").await, 401);
    assert_eq!(ask("GET", "/.well-known/other").await, 404);
}
