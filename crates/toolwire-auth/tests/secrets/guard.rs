//! The guard, met by tokens of all kinds.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};
use toolwire_auth::{
    Secret,
    clock::ManualClock,
    server::{
        Audience, Downstream, Dpop, Expiry, Introspection, Invalid, Jwt, PresentedToken, ResourceGuard,
        ResourceServer, StaticKeys, Verified,
    },
};
use toolwire_http::{
    client::fetch::{Fetch, Fetcher},
    server::{HttpRequest, HttpService, Tls},
};
use toolwire_server::{Context, Principal, Server, State, ToolError, tool};

use super::{
    issuer::{Fault, Issuer},
    marks::{learn, secret},
    recorder::{fail, say, show},
};

/// Tells tokens of one run apart.
static COUNT: AtomicU8 = AtomicU8::new(0);

pub(crate) const CERTIFICATE: &[u8] = include_bytes!("../../../toolwire-http/tests/it/tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../toolwire-http/tests/it/tls/key.pem");
const MODERN: &str = "2026-07-28";

/// A server behind a guard.
pub(crate) struct Place {
    pub(crate) url: String,
    guard: ResourceGuard,
    serving: AbortHandle,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A clock that begins now.
pub(crate) fn clock() -> ManualClock {
    ManualClock::at(toolwire_auth::clock::unix_seconds(std::time::SystemTime::now()))
}

fn server(downstream: Option<Arc<Downstream>>) -> Server {
    let search = |request: HttpRequest, cx: Context| async move {
        // Whatever a handler can see is shown to somebody.
        let found = format!("{:?} {:?} {cx:?} {:?}", request.headers, request.extensions, cx.principal());
        say("a handler", &found);
        show("a handler", &request);
        found
    };
    let ask = |who: Principal, State(downstream): State<Option<Arc<Downstream>>>| async move {
        let Some(downstream) = downstream else { return Err(ToolError::message("there is nobody to ask")) };
        show("an exchange", &downstream);
        match downstream.token_for(&who, "https://calendar.example", ["events:read"]).await {
            Ok(token) => show("a token", &token),
            Err(error) => {
                fail("an exchange", &error);
                return Err(ToolError::message(error.to_string()));
            }
        }
        Ok("asked")
    };
    Server::builder("files", "1.0")
        .state(downstream)
        .tool(tool("whoami", |who: Principal| async move { who.subject().to_owned() }))
        .tool(tool("write", || async { "written" }).scopes(["files:write"]))
        .tool(tool("search", search))
        .tool(tool("ask", ask))
        .tool(tool("fails", |who: Principal| async move {
            if who.subject().is_empty() { Ok::<_, ToolError>("") } else { panic!("the tool has broken") }
        }))
        .build()
        .unwrap()
}

impl Place {
    /// One whose tokens say for themselves what they are.
    pub(crate) async fn signed(issuer: &Issuer) -> Self {
        Self::new(issuer, false, |server| server.verify(Jwt::at(format!("{}/jwks", issuer.url)))).await
    }

    /// One whose tokens have to be bound to a key, behind TLS.
    pub(crate) async fn bound(issuer: &Issuer) -> Self {
        let dpop = Dpop::required().nonces([secret("nonces")]).unwrap();
        show("proofs", &dpop);
        Self::new(issuer, true, |server| server.verify(Jwt::discovered()).dpop(dpop)).await
    }

    /// One that knows all kinds of tokens.
    async fn opaque(issuer: &Issuer) -> Self {
        let asks = Introspection::at(
            format!("{}/introspect", issuer.url),
            "files",
            Secret::from(secret("introspection")),
        );
        show("a verifier", &asks);
        let keys = StaticKeys::parse(&format!("bob files:read {}", secret("static"))).unwrap();
        show("a verifier", &keys);
        let panics = |token: PresentedToken| {
            assert!(!token.expose().contains("panics-at-once"), "the verifier has broken");
            async move {
                assert!(!token.expose().contains("panics-later"), "the verifier has broken");
                show("a token", &token);
                Err::<Verified, _>(Invalid::new("it is none of mine"))
            }
        };
        Self::new(issuer, false, |server| {
            server
                .verify(asks)
                .issuer("https://keys.example", keys)
                .issuer("https://panics.example", panics)
                .dpop(Dpop::accepted())
        })
        .await
    }

    async fn new(
        issuer: &Issuer,
        with_tls: bool,
        describe: impl FnOnce(ResourceServer) -> ResourceServer,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = if with_tls {
            format!("https://localhost:{port}/mcp")
        } else {
            format!("http://127.0.0.1:{port}/mcp")
        };
        issuer.inner().resource.clone_from(&url);
        let described = describe(ResourceServer::new(&url, &issuer.url).scopes(["files:read"]));
        show("a description", &described);
        let guard = described.build().unwrap();
        show("a guard", &guard);
        let endpoint = format!("{}/exchange", issuer.url);
        let downstream =
            Downstream::new(&guard, &issuer.url, &endpoint, "files", Secret::from(secret("downstream")))
                .unwrap();
        let downstream = (!with_tls).then(|| Arc::new(downstream));
        let service =
            HttpService::builder(server(downstream)).guard(guard.clone()).websocket(true).build().unwrap();
        show("a service", &service);
        let serving = service.serve(listener);
        let serving = if with_tls { serving.tls(Tls::from_pem(CERTIFICATE, KEY).unwrap()) } else { serving };
        let serving = tokio::spawn(serving.into_future()).abort_handle();
        Self { url, guard, serving }
    }

    /// Sends a call, and shows everything that comes back.
    async fn call(&self, tool: &str, query: &str, headers: &[(&str, &str)]) -> StatusCode {
        let params = json!({ "name": tool, "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let mut map = http::HeaderMap::new();
        let fixed = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", MODERN),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        for (name, value) in fixed.iter().chain(headers) {
            map.append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let request = Fetch::new(Method::POST, &format!("{}{query}", self.url))
            .headers(&map)
            .body(Bytes::from(message.to_string()));
        show("a request", &request);
        let answer = Fetcher::new().no_proxy().fetch(request).await.unwrap();
        say("an answer", &format!("{:?} {:?}", answer.headers, answer.body));
        show("an answer", &answer);
        show("the guard", &self.guard);
        answer.status
    }
}

pub(crate) async fn refuses(issuer: &Issuer) {
    let place = Place::opaque(issuer).await;
    let token = secret("access");
    let bearer = format!("Bearer {token}");
    for headers in [
        vec![("authorization", bearer.clone()), ("authorization", bearer.clone())],
        vec![("authorization", format!("{bearer}, {bearer}"))],
        vec![("authorization", format!("Basic {token}"))],
        vec![("authorization", format!("{token} x"))],
        vec![("authorization", format!("Bearer {}", token.repeat(1_000)))],
        vec![("authorization", format!("DPoP {token}"))],
        vec![("authorization", format!("DPoP {token}")), ("dpop", secret("proof"))],
        vec![("authorization", format!("DPoP {token}")), ("dpop", secret("a")), ("dpop", secret("b"))],
        vec![("authorization", bearer.clone()), ("dpop", format!("{0}.{0}.{0}", secret("proof")))],
        vec![("authorization", format!("Bearer e30.{}.x", secret("jwt")))],
        vec![("authorization", format!("Bearer {}", secret("unknown")))],
        vec![("cookie", format!("access_token={token}"))],
        vec![("x-api-key", token.clone())],
    ] {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for tool in ["whoami", "search", "write"] {
            place.call(tool, "", &headers).await;
        }
    }
    let encoded: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
    assert_eq!(place.call("whoami", &format!("?access_token={encoded}"), &[]).await, 400);
    assert_eq!(
        place.call("whoami", "", &[("authorization", &format!("Bearer {}", secret("static")))]).await,
        200
    );
    panicking(&place).await;
    for fault in [Fault::Status(500), Fault::Html, Fault::Refuses("invalid_client"), Fault::None] {
        issuer.set(fault);
        // One that is not remembered from before.
        let token = secret(&format!("access-{}-", COUNT.fetch_add(1, Ordering::Relaxed)));
        let status = place.call("whoami", "", &[("authorization", &format!("Bearer {token}"))]).await;
        assert_eq!(status, if fault == Fault::None { 200 } else { 503 }, "{fault:?}");
    }
}

/// A verifier that panics disturbs nobody: whoever asked is told to come back, and the next one is served.
async fn panicking(place: &Place) {
    for when in ["panics-at-once", "panics-later"] {
        let status =
            place.call("whoami", "", &[("authorization", &format!("Bearer {}", secret(when)))]).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{when}");
    }
    let token = format!("Bearer {}", secret("static"));
    assert_eq!(place.call("whoami", "", &[("authorization", &token)]).await, StatusCode::OK);
}

pub(crate) async fn exchanges(issuer: &Issuer) {
    for fault in
        [Fault::None, Fault::Refuses("invalid_target"), Fault::RefusesKindly, Fault::Status(503), Fault::Html]
    {
        let place = Place::opaque(issuer).await;
        let token = secret(&format!("access-{fault:?}-").replace(['(', ')', '"'], ""));
        let headers = [("authorization", format!("Bearer {token}"))];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        issuer.set(Fault::None);
        assert_eq!(place.call("whoami", "", &headers).await, 200);
        issuer.inner().opaque = true;
        issuer.set(fault);
        place.call("ask", "", &headers).await;
        issuer.inner().opaque = false;
        issuer.set(Fault::None);
    }
}

/// What a verifier of somebody else's says.
pub(crate) fn verdicts() {
    let verified = Verified::new("alice", Audience::Vouched, Expiry::Unknown).scopes(["files:read"]);
    show("a verdict", &verified);
    let presented = PresentedToken::new(toolwire_auth::server::Scheme::Bearer, secret("presented"));
    show("a token", &presented);
    let jwks: Value = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "d": secret("d") }] });
    learn(&secret("d"));
    if let Err(error) = ResourceServer::new("https://files.example/mcp", "https://login.example")
        .verify(Jwt::keys(jwks.to_string()))
        .build()
    {
        fail("a guard", &error);
    }
}
