//! An issuer that signs, a server that asks for its tokens, and a client that sends them.

use std::{
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use toolwire_auth::{
    challenge::{self, Challenge},
    jose::{Algorithm, PrivateKey},
    server::{Jwt, ResourceGuard, ResourceServer},
};
use toolwire_http::server::{Body, HttpRequest, HttpService};
use toolwire_server::{Context, Principal, Server, tool};
use tower_service::Service as _;

pub(crate) const RESOURCE: &str = "https://files.example/mcp";
pub(crate) const ISSUER: &str = "https://login.example";
pub(crate) const METADATA: &str = "https://files.example/.well-known/oauth-protected-resource/mcp";
pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) static KEY: LazyLock<PrivateKey> = LazyLock::new(|| key("k1"));

pub(crate) fn key(kid: &str) -> PrivateKey {
    PrivateKey::generate(Algorithm::Es256).unwrap().kid(kid)
}

pub(crate) fn jwks(key: &PrivateKey) -> String {
    let mut jwk = key.public_key().to_jwk();
    jwk["kid"] = json!(key.public_key().kid());
    json!({ "keys": [jwk] }).to_string()
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A token of alice, with some of its claims changed; `null` takes one out.
pub(crate) fn token(changes: &[(&str, Value)]) -> String {
    token_by(&KEY, changes)
}

pub(crate) fn token_by(key: &PrivateKey, changes: &[(&str, Value)]) -> String {
    let mut claims = json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "notes", "scope": "files:read",
        "iat": now(), "exp": now() + 300, "jti": "1", "department": "archive",
    });
    let members = claims.as_object_mut().unwrap();
    for (name, value) in changes {
        members.insert((*name).to_owned(), value.clone());
    }
    members.retain(|_, value| !value.is_null());
    key.sign("at+jwt", &claims).unwrap()
}

pub(crate) fn described() -> ResourceServer {
    ResourceServer::new(RESOURCE, ISSUER).verify(Jwt::keys(jwks(&KEY))).scopes(["files:read"]).name("Files")
}

pub(crate) fn server() -> Server {
    let whoami = |cx: Context| async move { cx.principal().map_or("nobody", Principal::subject).to_owned() };
    let search = |request: HttpRequest, cx: Context| async move {
        let claims = cx.principal().map(|who| who.claims::<Value>().unwrap());
        format!("{:?} {:?} {cx:?} {:?} {claims:?}", request.headers, request.extensions, cx.principal())
    };
    Server::builder("files", "1.0")
        .tool(tool("whoami", whoami))
        .tool(tool("search", search))
        .tool(tool("write", || async { "written" }).scopes(["files:write"]))
        .tool(tool("mine", |who: Principal| async move { who.subject().to_owned() }))
        .scope_implies("files:admin", ["files:write", "files:read"])
        .build()
        .unwrap()
}

pub(crate) fn service(guard: &ResourceGuard) -> HttpService {
    HttpService::builder(server()).guard(guard.clone()).without_peer_addresses().build().unwrap()
}

/// A request of 2026-07-28 that calls a tool.
pub(crate) fn request(tool: &str) -> http::request::Builder {
    Request::post("/mcp")
        .header("host", "files.example")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
}

pub(crate) fn message(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

pub(crate) async fn send(
    service: &HttpService,
    request: http::request::Builder,
    body: &Value,
) -> Response<Body> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    service.clone().call(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap()
}

pub(crate) async fn call(service: &HttpService, tool: &str, token: &str) -> Response<Body> {
    send(service, request(tool).header("authorization", format!("Bearer {token}")), &message(tool)).await
}

pub(crate) async fn json_body(response: Response<Body>) -> Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("{bytes:?}"))
}

pub(crate) async fn text(response: Response<Body>) -> String {
    let body = json_body(response).await;
    body["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

/// The one challenge of a response.
pub(crate) fn challenged(response: &Response<Body>) -> Challenge {
    let mut challenges = challenge::parse(response.headers());
    assert_eq!(challenges.len(), 1, "{challenges:?}");
    challenges.remove(0)
}
