//! A small guard with a handful of keys, and a client that shows them.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use serde_json::{Value, json};
use toolwire_http::server::{Admission, Body, Denied, Guard, HttpBuilder, HttpService, Lacking, Principal};
use toolwire_server::{Scopes, Server};
use tower_service::Service as _;

use crate::bare::{MODERN, enveloped};

pub(crate) const RESOURCE: &str = "https://files.example/mcp";
pub(crate) const DOCUMENT: &str = "/.well-known/oauth-protected-resource/mcp";

/// Knows its callers by their keys.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) optional: bool,
    scopes: Scopes,
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self { optional: false, scopes: Scopes::of(["files:read"]).unwrap() }
    }

    pub(crate) fn optional() -> Self {
        Self { optional: true, ..Self::new() }
    }

    fn principal(key: &str) -> Option<Principal> {
        let (subject, client, scopes, seconds) = match key {
            "alice-1" | "alice-2" | "slow-alice" => ("alice", "notes", "files:read", Some(600)),
            "alice-of-mail" => ("alice", "mail", "files:read", Some(600)),
            "alice-brief" => ("alice", "notes", "files:read", Some(30)),
            "alice-for-ever" => ("alice", "notes", "files:read", None),
            "alice-writes" => ("alice", "notes", "files:read files:write", Some(600)),
            "alice-may-nothing" => ("alice", "notes", "mail:read", Some(600)),
            "bob-1" => ("bob", "notes", "files:read", Some(600)),
            _ => return None,
        };
        let mut principal = Principal::builder(subject)
            .issuer("https://login.example")
            .client_id(client)
            .scopes(scopes.parse().unwrap());
        if let Some(seconds) = seconds {
            principal = principal.expires_at(SystemTime::now() + Duration::from_secs(seconds));
        }
        Some(principal.build())
    }

    fn denied(status: StatusCode, challenge: &str) -> Denied {
        let mut denied = Denied::new(status, "no");
        denied.headers.insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
        denied
    }

    fn find(&self, key: Option<&HeaderValue>) -> Result<Option<Principal>, Box<Denied>> {
        let key = key.map(|key| key.to_str().unwrap().trim_start_matches("Bearer "));
        match key.map(Self::principal) {
            Some(Some(principal)) => Ok(Some(principal)),
            None if self.optional => Ok(None),
            _ => Err(Box::new(Self::denied(StatusCode::UNAUTHORIZED, &format!("Key at=\"{RESOURCE}\"")))),
        }
    }
}

impl Guard for Keys {
    fn resource(&self) -> &str {
        RESOURCE
    }

    fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    fn document(&self, path: &str) -> Option<Response<Bytes>> {
        (path == DOCUMENT).then(|| Response::new(Bytes::from_static(b"{\"public\":true}")))
    }

    fn admit<'a>(&'a self, parts: &mut Parts) -> Admission<'a> {
        let key = parts.headers.remove(header::AUTHORIZATION);
        if key.as_ref().is_some_and(|key| key == "Bearer slow-alice") {
            return Admission::Pending(Box::pin(async move {
                tokio::task::yield_now().await;
                self.find(key.as_ref())
            }));
        }
        Admission::Known(self.find(key.as_ref()))
    }

    fn challenge(&self, lacking: &Lacking<'_>) -> Denied {
        let status =
            if lacking.principal.is_some() { StatusCode::FORBIDDEN } else { StatusCode::UNAUTHORIZED };
        let era = if lacking.names_all { "legacy" } else { "modern" };
        Self::denied(status, &format!("Key scope=\"{}\", era=\"{era}\"", lacking.lack.needs()))
    }

    fn answered(&self, headers: &mut HeaderMap) {
        headers.insert("dpop-nonce", HeaderValue::from_static("fresh"));
    }
}

pub(crate) fn guarded(server: Server, configure: impl FnOnce(HttpBuilder) -> HttpBuilder) -> HttpService {
    configure(HttpService::builder(server).guard(Keys::new())).build().unwrap()
}

/// An endpoint behind a guard that lets in anonymous requests, which have no address here.
pub(crate) fn guarded_by(server: Server, guard: Keys) -> HttpService {
    HttpService::builder(server).guard(guard).without_peer_addresses().build().unwrap()
}

/// A request with a key, or without one.
pub(crate) fn request(key: Option<&str>, method: &str, uri: &str) -> http::request::Builder {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "files.example")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    match key {
        Some(key) => request.header("authorization", format!("Bearer {key}")),
        None => request,
    }
}

pub(crate) async fn send(
    service: &HttpService,
    request: http::request::Builder,
    body: &Value,
) -> Response<Body> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    service.clone().call(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap()
}

/// A modern request.
pub(crate) async fn modern(
    service: &HttpService,
    key: Option<&str>,
    method: &str,
    params: Value,
) -> Response<Body> {
    let mut request =
        request(key, "POST", "/mcp").header("mcp-protocol-version", MODERN).header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    send(service, request, &enveloped(method, params)).await
}

pub(crate) async fn call(service: &HttpService, key: Option<&str>, tool: &str) -> Response<Body> {
    modern(service, key, "tools/call", json!({ "name": tool, "arguments": {} })).await
}

pub(crate) fn challenge(response: &Response<Body>) -> &str {
    response.headers().get("www-authenticate").map_or("", |value| value.to_str().unwrap())
}
