//! Which requests are let in, and as whom.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolwire_auth::{
    Secret,
    clock::ManualClock,
    fetch::{BoxFuture, Fetch, FetchError, FetchErrorKind, Reach, Request, Response},
    server::{
        Audience, Expiry, Introspection, Invalid, Jwt, PresentedToken, ResourceServer, Setting, StaticKeys,
        Unavailable, Verified, Verify, VerifyError,
    },
};
use toolwire_http::server::{HttpService, PeerAddr};
use toolwire_server::{Principal, Server, tool};

use crate::kit::*;

#[tokio::test]
async fn a_token_of_the_issuer_for_this_server_opens_it() {
    let service = service(&described().build().unwrap());
    let response = call(&service, "whoami", &token(&[])).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(text(response).await, "alice");
    // Once more, now that it is known.
    assert_eq!(text(call(&service, "whoami", &token(&[])).await).await, "alice");
}

#[tokio::test]
async fn every_other_token_is_refused_and_nobody_is_told_why() {
    let service = service(&described().build().unwrap());
    let other = key("k1");
    for (what, token) in [
        ("another resource", token(&[("aud", json!("https://other.example/mcp"))])),
        ("a part of the resource", token(&[("aud", json!("https://files.example"))])),
        ("more than the resource", token(&[("aud", json!("https://files.example/mcp/"))])),
        ("another case", token(&[("aud", json!("https://FILES.example/mcp"))])),
        ("no audience", token(&[("aud", Value::Null)])),
        ("another issuer", token(&[("iss", json!("https://login.example/"))])),
        ("another key", token_by(&other, &[])),
        ("expired", token(&[("exp", json!(now() - 61))])),
        ("no expiry", token(&[("exp", Value::Null)])),
        ("no token at all", "abc".to_owned()),
    ] {
        let response = call(&service, "whoami", &token).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{what}");
        let challenge = challenged(&response);
        assert_eq!(challenge.error(), Some("invalid_token"), "{what}");
        assert_eq!(challenge.resource_metadata(), Some(METADATA));
        assert_eq!(challenge.get("error_description"), None);
        let body = json_body(response).await;
        assert_eq!((&body["id"], &body["error"]["code"]), (&Value::Null, &json!(-32600)));
        assert_eq!(body["error"]["message"], "the token is not valid here, or not any longer");
    }
    let among = token(&[("aud", json!(["https://other.example", RESOURCE]))]);
    assert_eq!(call(&service, "whoami", &among).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_verifier_that_does_not_care_opens_nothing() {
    let later = || Expiry::At(SystemTime::now() + Duration::from_secs(60));
    let ours = || Audience::is(RESOURCE);
    for (what, found) in [
        ("audience", Verified::new("alice", Audience::is("https://other.example"), later())),
        ("prefix", Verified::new("alice", Audience::is("https://files.example"), later())),
        ("no audience", Verified::new("alice", Audience::Is(Vec::new()), later())),
        ("expiry", Verified::new("alice", ours(), Expiry::At(SystemTime::now() - Duration::from_secs(61)))),
        ("long ago", Verified::new("alice", ours(), Expiry::At(SystemTime::UNIX_EPOCH))),
        ("issuer", Verified::new("alice", ours(), later()).issuer("https://login.example/")),
        ("nobody", Verified::new("", ours(), later())),
        ("scopes", Verified::new("alice", ours(), later()).scopes(["files:read", "two words"])),
    ] {
        let verifier = move |_: PresentedToken| {
            let found = found.clone();
            async move { Ok::<_, Invalid>(found) }
        };
        let guard = ResourceServer::new(RESOURCE, ISSUER).verify(verifier).build().unwrap();
        let response = call(&service(&guard), "whoami", "any").await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{what}");
    }
    let vouched = |_: PresentedToken| async {
        Ok::<_, Invalid>(Verified::new("octocat", Audience::Vouched, Expiry::Unknown))
    };
    let guard = ResourceServer::new(RESOURCE, ISSUER).verify(vouched).build().unwrap();
    assert_eq!(text(call(&service(&guard), "whoami", "any").await).await, "octocat");
}

#[tokio::test]
async fn a_token_anywhere_but_in_one_header_is_refused() {
    let service = service(&described().build().unwrap());
    let token = token(&[]);
    let bearer = format!("Bearer {token}");
    let plain = || request("whoami");
    let refused = [
        (400, plain().header("authorization", &bearer).header("authorization", &bearer)),
        (400, plain().header("authorization", format!("{bearer}, {bearer}"))),
        (400, plain().header("authorization", format!("{bearer},{bearer}"))),
        (400, plain().uri(format!("/mcp?access_token={token}"))),
        (400, plain().uri(format!("/mcp?access_token={token}")).header("authorization", &bearer)),
        (400, plain().header("authorization", "Bearer")),
        (400, plain().header("authorization", format!("Bearer {}", "x".repeat(16 * 1024 + 1)))),
        (401, plain().header("cookie", format!("access_token={token}"))),
        (401, plain().header("x-authorization", &bearer)),
        (401, plain().header("authorization", format!("Basic {token}"))),
    ];
    for (status, request) in refused {
        let response = send(&service, request, &message("whoami")).await;
        assert_eq!(response.status().as_u16(), status);
        let error = challenged(&response).error().map(str::to_owned);
        assert_eq!(error.as_deref(), (status == 400).then_some("invalid_request"));
        let headers = response.headers().clone();
        let shown = format!("{headers:?} {}", json_body(response).await);
        assert!(!shown.contains(&token), "{shown}");
    }
    // In a body it is no token either.
    let form = plain().header("content-type", "application/x-www-form-urlencoded");
    let body = json!(format!("access_token={token}"));
    assert_eq!(send(&service, form, &body).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn no_handler_finds_the_token() {
    let service = service(&described().build().unwrap());
    let token = token(&[]);
    let found = text(call(&service, "search", &token).await).await;
    assert!(found.contains("mcp-name") && found.contains("archive"), "{found}");
    for part in token.split('.') {
        assert!(!found.contains(part), "{found}");
    }
    assert!(!found.to_lowercase().contains("bearer"), "{found}");
}

/// Counts how often it is asked.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Verify for Counting {
    fn verify<'a>(
        &'a self,
        _: &'a PresentedToken,
        now: SystemTime,
    ) -> toolwire_transport::BoxFuture<'a, Result<Verified, VerifyError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let expiry = Expiry::At(now + Duration::from_secs(90));
        Box::pin(async move { Ok(Verified::new("alice", Audience::is(RESOURCE), expiry)) })
    }
}

#[tokio::test]
async fn a_token_is_verified_once_a_minute_and_not_with_every_request() {
    let (verifier, clock) = (Counting::default(), ManualClock::at(1_800_000_000));
    let guard =
        ResourceServer::new(RESOURCE, ISSUER).verify(verifier.clone()).clock(clock.clone()).build().unwrap();
    let service = service(&guard);
    let asked = || verifier.0.load(Ordering::Relaxed);
    for _ in 0..5 {
        call(&service, "whoami", "one").await;
    }
    assert_eq!(asked(), 1);
    call(&service, "whoami", "two").await;
    assert_eq!(asked(), 2);
    clock.advance(Duration::from_secs(61));
    call(&service, "whoami", "one").await;
    assert_eq!(asked(), 3);
}

#[tokio::test]
async fn each_issuer_has_its_own_keys() {
    let (one, two) = (key("same"), key("same"));
    let guard = ResourceServer::new(RESOURCE, ISSUER)
        .verify(Jwt::keys(jwks(&one)))
        .issuer("https://second.example", Jwt::keys(jwks(&two)))
        .build()
        .unwrap();
    let service = service(&guard);
    let second = ("iss", json!("https://second.example"));
    for (token, status) in [
        (token_by(&one, &[]), 200),
        (token_by(&two, std::slice::from_ref(&second)), 200),
        (token_by(&two, &[]), 401),
        (token_by(&one, &[second]), 401),
        (token_by(&one, &[("iss", json!("https://third.example"))]), 401),
    ] {
        assert_eq!(call(&service, "whoami", &token).await.status().as_u16(), status);
    }
}

/// Whoever is asked about a token can use it.
#[tokio::test]
async fn a_token_is_shown_to_nobody_but_the_issuer_that_it_names() {
    let (two, asked) = (key("k2"), Arc::new(Mutex::new(Vec::new())));
    let second = ("iss", json!("https://second.example"));
    let noted = Arc::clone(&asked);
    let function = move |token: PresentedToken| {
        noted.lock().unwrap().push(token.expose().to_owned());
        async { Err::<Verified, _>(Invalid::new("not mine")) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/introspect", listener.local_addr().unwrap());
    let introspection = Introspection::at(url, "files", Secret::from("secret"));
    let first = ResourceServer::new(RESOURCE, ISSUER);
    for described in [first.verify(introspection), ResourceServer::new(RESOURCE, ISSUER).verify(function)] {
        let guard = described.issuer("https://second.example", Jwt::keys(jwks(&two))).build().unwrap();
        let service = service(&guard);
        let good = call(&service, "whoami", &token_by(&two, std::slice::from_ref(&second))).await;
        assert_eq!(good.status(), StatusCode::OK);
        // Neither one that the second issuer refuses.
        let expired = token_by(&two, &[second.clone(), ("exp", json!(1))]);
        assert_eq!(call(&service, "whoami", &expired).await.status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(*asked.lock().unwrap(), [""; 0]);
    let nobody = tokio::time::timeout(Duration::from_millis(1), listener.accept()).await;
    assert!(nobody.is_err(), "the first issuer was asked");
    // One of no issuer that is known here is not shown to one who says whose tokens it knows.
    let introspection = Introspection::at("http://127.0.0.1:1/", "files", Secret::from("secret"));
    let guard = ResourceServer::new(RESOURCE, ISSUER).verify(introspection);
    let guard = guard.issuer("https://second.example", Jwt::keys(jwks(&two))).build().unwrap();
    let third = token_by(&two, &[("iss", json!("https://third.example"))]);
    assert_eq!(call(&service(&guard), "whoami", &third).await.status(), StatusCode::UNAUTHORIZED);
}

/// Notes what it should send, and sends nothing.
#[derive(Clone, Debug, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

impl Fetch for Noted {
    fn fetch<'a>(&'a self, request: Request, _: &'a Reach) -> BoxFuture<'a, Result<Response, FetchError>> {
        self.0.lock().unwrap().push(String::from_utf8_lossy(&request.body).into_owned());
        Box::pin(async { Err(FetchError::new(FetchErrorKind::Network, "nobody answers")) })
    }
}

#[tokio::test]
async fn an_issuer_is_never_asked_about_a_static_key_in_whatever_order_they_were_added() {
    const STATIC: &str = "T1p0q8ZkX3mVYw7bJrK5";
    let (noted, keys) = (Noted::default(), StaticKeys::parse(&format!("alice - {STATIC}")).unwrap());
    let introspection = || {
        let url = "https://login.example/introspect";
        Introspection::at(url, "files", Secret::from("secret")).fetch(noted.clone())
    };
    let first = ResourceServer::new(RESOURCE, ISSUER).verify(introspection());
    let last = ResourceServer::new(RESOURCE, "https://keys.example").verify(keys.clone());
    for described in [first.issuer("https://keys.example", keys), last.issuer(ISSUER, introspection())] {
        let service = service(&described.build().unwrap());
        assert_eq!(text(call(&service, "whoami", STATIC).await).await, "alice");
        assert_eq!(*noted.0.lock().unwrap(), [""; 0]);
        assert_eq!(call(&service, "whoami", "opaque").await.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            std::mem::take(&mut *noted.0.lock().unwrap()),
            ["token=opaque&token_type_hint=access_token"]
        );
    }
}

#[tokio::test]
async fn an_issuer_is_not_asked_about_a_token_that_names_another_though_it_is_the_only_one() {
    let noted = Noted::default();
    let url = "https://login.example/introspect";
    let introspection = Introspection::at(url, "files", Secret::from("secret")).fetch(noted.clone());
    let service = service(&ResourceServer::new(RESOURCE, ISSUER).verify(introspection).build().unwrap());
    let foreign = token(&[("iss", json!("https://partner.example"))]);
    assert_eq!(call(&service, "whoami", &foreign).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(*noted.0.lock().unwrap(), [""; 0]);
}

/// An issuer that knows one token, and never comes to an end with others.
#[derive(Clone, Debug)]
struct Slow;

impl Fetch for Slow {
    fn fetch<'a>(&'a self, request: Request, _: &'a Reach) -> BoxFuture<'a, Result<Response, FetchError>> {
        Box::pin(async move {
            if !request.body.starts_with(b"token=good&") {
                std::future::pending::<()>().await;
            }
            let claims = json!({ "active": true, "sub": "alice", "aud": RESOURCE });
            Ok(Response::json(StatusCode::OK, &claims))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_stranger_with_made_up_tokens_leaves_room_for_those_of_others() {
    let url = "https://login.example/introspect";
    let introspection = Introspection::at(url, "files", Secret::from("secret")).fetch(Slow);
    let service = service(&ResourceServer::new(RESOURCE, ISSUER).verify(introspection).build().unwrap());
    let begun = Arc::new(AtomicUsize::new(0));
    let from = |address: &str, token: String| {
        let (service, peer) = (service.clone(), PeerAddr(format!("{address}:1").parse().unwrap()));
        let begun = Arc::clone(&begun);
        async move {
            begun.fetch_add(1, Ordering::Relaxed);
            let request =
                request("whoami").header("authorization", format!("Bearer {token}")).extension(peer);
            send(&service, request, &message("whoami")).await
        }
    };
    let flood: Vec<_> =
        (0..100).map(|number| tokio::spawn(from("192.0.2.1", format!("junk{number}")))).collect();
    // On one thread, each of them runs until it asks or waits.
    while begun.load(Ordering::Relaxed) < flood.len() {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(from("192.0.2.2", "good".to_owned()).await).await, "alice");
    assert!(flood.iter().all(|asking| !asking.is_finished()));
    flood.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_client_that_stands_for_no_user_is_not_the_user_of_its_name() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let note = move |who: Principal| {
        noted.lock().unwrap().push(who);
        async { "noted" }
    };
    let server = Server::builder("files", "1.0").tool(tool("note", note)).build().unwrap();
    let guard = described().build().unwrap();
    let service = HttpService::builder(server).guard(guard).build().unwrap();
    for subject in [Value::Null, json!("notes")] {
        assert_eq!(text(call(&service, "note", &token(&[("sub", subject)])).await).await, "noted");
    }
    let seen = seen.lock().unwrap();
    let [client, user] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((client.subject(), user.subject()), ("notes", "notes"));
    assert!(client.is_client() && !user.is_client());
    assert_ne!(client.key(), user.key());
}

#[tokio::test]
async fn an_issuer_that_is_away_makes_no_token_invalid() {
    let away = |_: PresentedToken| async { Err::<Verified, _>(Unavailable::new("the issuer is away")) };
    let unknown = |_: PresentedToken| async { Err::<Verified, _>(Invalid::new("not mine")) };
    let first = ResourceServer::new(RESOURCE, ISSUER).verify(away).issuer("https://second.example", unknown);
    let last = ResourceServer::new(RESOURCE, ISSUER).verify(unknown).issuer("https://second.example", away);
    for guard in [first.build().unwrap(), last.build().unwrap()] {
        let response = call(&service(&guard), "whoami", "any").await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()["retry-after"], "5");
        assert!(!response.headers().contains_key("www-authenticate"));
        assert!(guard.warm_up().await.is_ok());
    }
}

#[tokio::test]
async fn keys_in_a_file_serve_small_places() {
    let keys = StaticKeys::parse(
        "alice files:read,files:write T1p0q8ZkX3mVYw7bJrK5\nbob files:read 9uE2sLhQ6nFdGc4aRtMv",
    );
    let guard =
        ResourceServer::new(RESOURCE, ISSUER).verify(keys.unwrap()).scopes(["files:read"]).build().unwrap();
    let service = service(&guard);
    assert_eq!(text(call(&service, "write", "T1p0q8ZkX3mVYw7bJrK5").await).await, "written");
    assert_eq!(call(&service, "write", "9uE2sLhQ6nFdGc4aRtMv").await.status(), StatusCode::FORBIDDEN);
    assert_eq!(call(&service, "write", "9uE2sLhQ6nFdGc4aRtMw").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_scope_that_includes_others_counts_as_them() {
    let service = service(&described().build().unwrap());
    let admin = token(&[("scope", json!("files:admin"))]);
    assert_eq!(text(call(&service, "write", &admin).await).await, "written");
}

#[tokio::test]
async fn where_a_token_is_optional_nobody_is_served_and_a_bad_token_is_refused() {
    let service = service(&described().optional().build().unwrap());
    assert_eq!(text(send(&service, request("whoami"), &message("whoami")).await).await, "nobody");
    assert_eq!(call(&service, "whoami", "bad").await.status(), StatusCode::UNAUTHORIZED);
    for tool in ["mine", "write"] {
        let response = send(&service, request(tool), &message(tool)).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{tool}");
        assert_eq!(challenged(&response).error(), None);
    }
}

/// A verifier that is not for this server.
struct Picky;
impl Verify for Picky {
    fn prepare(&mut self, setting: &Setting) -> Result<(), toolwire_auth::server::SettingError> {
        Err(toolwire_auth::server::SettingError::new(format!("not for {}", setting.resource())))
    }

    fn verify<'a>(
        &'a self,
        _: &'a PresentedToken,
        _: SystemTime,
    ) -> toolwire_transport::BoxFuture<'a, Result<Verified, VerifyError>> {
        Box::pin(async { Err(Invalid::new("").into()) })
    }
}

#[test]
fn what_cannot_be_guarded_is_not_built() {
    let refused = |server: ResourceServer| server.build().unwrap_err().to_string();
    let verifier = || Jwt::keys(jwks(&KEY));
    for (resource, part) in [
        ("http://files.example/mcp", "plain http"),
        ("https://files.example/mcp#part", "fragment"),
        ("files.example/mcp", "absolute"),
        ("api://files", "https"),
    ] {
        let error = refused(ResourceServer::new(resource, ISSUER).verify(verifier()));
        assert!(error.contains(part) && error.contains(resource), "{error}");
    }
    assert!(ResourceServer::new("http://127.0.0.1:8000/mcp", ISSUER).verify(verifier()).build().is_ok());
    assert!(refused(ResourceServer::new(RESOURCE, "login.example").verify(verifier())).contains("issuer"));
    assert!(refused(ResourceServer::new(RESOURCE, ISSUER)).contains("verify(..)"));
    assert!(refused(described().issuer(ISSUER, verifier())).contains("named twice"));
    assert!(refused(described().scopes(["a b"])).contains("character"));
    assert!(refused(described().scopes(["offline_access"])).contains("offline_access"));
    let never = |_: PresentedToken| async { Err::<Verified, _>(Invalid::new("")) };
    assert!(ResourceServer::new(RESOURCE, ISSUER).verify(never).build().is_ok());
    assert!(
        refused(ResourceServer::new(RESOURCE, ISSUER).verify(Picky))
            .contains("not for https://files.example")
    );
}

#[tokio::test]
async fn nothing_of_a_token_is_in_what_is_shown_of_a_guard() {
    let guard = described().build().unwrap();
    let service: HttpService = service(&guard);
    let token = token(&[]);
    call(&service, "whoami", &token).await;
    let shown = format!("{guard:?} {service:?} {:?}", described());
    assert!(shown.contains(RESOURCE));
    for part in token.split('.') {
        assert!(!shown.contains(part), "{shown}");
    }
}
