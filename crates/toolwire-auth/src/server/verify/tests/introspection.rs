//! Asking the issuer.

use http::header;

use super::*;
use crate::Secret;

const URL: &str = "https://login.example/introspect";

fn introspection(web: &Web) -> Introspection {
    Introspection::at(URL, "files", Secret::from("s3cret:+")).fetch(web.clone())
}

async fn verdict(answer: &Value) -> Result<Verified, VerifyError> {
    let web = Web::default().page(URL, answer);
    prepared(introspection(&web)).verify(&presented("opaque"), now()).await
}

/// What the issuer says about a good token, with some of it changed.
fn active(changes: &[(&str, Value)]) -> Value {
    let mut answer = claims(changes);
    answer.entry("active").or_insert(json!(true));
    Value::Object(answer)
}

#[tokio::test]
async fn the_issuer_is_asked_with_the_credentials_of_the_server() {
    let web = Web::default().page(URL, &active(&[]));
    let verified = prepared(introspection(&web)).verify(&presented("opaque&x=1"), now()).await.unwrap();
    assert_eq!(verified.subject, "ada");
    assert_eq!(verified.scopes, ["files:read", "files:write"]);
    assert_eq!(verified.expiry, Expiry::At(at(NOW + 300)));
    let request = web.last();
    assert_eq!(&request.body[..], b"token=opaque%26x%3D1&token_type_hint=access_token");
    // files:s3cret%3A%2B
    assert_eq!(request.headers[header::AUTHORIZATION], "Basic ZmlsZXM6czNjcmV0JTNBJTJC");
    assert!(request.headers[header::AUTHORIZATION].is_sensitive());
}

#[tokio::test]
async fn only_active_tokens_of_the_issuer_for_this_server_are_accepted() {
    assert!(verdict(&active(&[])).await.is_ok());
    for changes in [
        ("active", json!(false)),
        ("active", json!("true")),
        ("active", json!(1)),
        ("iss", json!("https://login.example/")),
        ("aud", json!("https://other.example")),
        ("aud", json!(null)),
        ("exp", json!(NOW - 60)),
        ("exp", json!("2100000000")),
        ("nbf", json!(NOW + 61)),
        ("token_type", json!("refresh_token")),
        ("token_use", json!("refresh")),
        ("typ", json!("Refresh")),
        ("cnf", json!({ "x5t#S256": "x" })),
        ("sub", json!(7)),
    ] {
        reason(verdict(&active(&[changes])).await);
    }
    reason(verdict(&json!({})).await);
    assert!(verdict(&active(&[("iss", json!(null)), ("token_type", json!("bearer"))])).await.is_ok());
    let unknown = verdict(&active(&[("exp", json!(null))])).await.unwrap();
    assert_eq!(unknown.expiry, Expiry::Unknown);
    let bound =
        verdict(&active(&[("cnf", json!({ "jkt": "x" })), ("token_type", json!("DPoP"))])).await.unwrap();
    assert_eq!(bound.key.as_deref(), Some("x"));
    let client = verdict(&active(&[("sub", json!(null))])).await.unwrap();
    assert_eq!((client.subject.as_str(), client.is_client), ("notes", true));
    assert!(!verdict(&active(&[])).await.unwrap().is_client);
}

#[tokio::test]
async fn an_audience_can_be_configured_or_vouched_for() {
    let other = Web::default().page(URL, &active(&[("aud", json!("api://files"))]));
    let configured = prepared(introspection(&other).audience("api://files"));
    assert!(configured.verify(&presented("opaque"), now()).await.is_ok());
    let vouched = prepared(introspection(&other).dangerous().audience_vouched());
    reason(vouched.verify(&presented("opaque"), now()).await);
    let none = Web::default().page(URL, &active(&[("aud", json!(null))]));
    let vouched = prepared(introspection(&none).dangerous().audience_vouched());
    assert_eq!(vouched.verify(&presented("opaque"), now()).await.unwrap().audience, Audience::Vouched);
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_makes_no_token_invalid() {
    let twice = r#"{"active":true,"active":false}"#;
    for (status, body) in [
        (StatusCode::OK, "<html>"),
        (StatusCode::OK, "[]"),
        (StatusCode::OK, twice),
        (StatusCode::UNAUTHORIZED, r#"{"active":true}"#),
        (StatusCode::FOUND, ""),
        (StatusCode::INTERNAL_SERVER_ERROR, ""),
    ] {
        let web = Web::default();
        web.set(URL, Response { body: body.into(), ..Response::empty(status) });
        let verdict = prepared(introspection(&web)).verify(&presented("opaque"), now()).await;
        assert!(matches!(verdict, Err(VerifyError::Unavailable(_))), "{status} {body}: {verdict:?}");
    }
    let away = prepared(introspection(&Web::default())).verify(&presented("opaque"), now()).await;
    assert!(matches!(away, Err(VerifyError::Unavailable(_))));
}

#[tokio::test]
async fn refusals_are_remembered_for_five_seconds_and_nothing_else_is() {
    let web = Web::default().page(URL, &json!({ "active": false }));
    let verifier = prepared(introspection(&web));
    for seconds in [0, 1, 4] {
        reason(verifier.verify(&presented("opaque"), at(NOW + seconds)).await);
    }
    assert_eq!(web.times_asked(URL), 1);
    reason(verifier.verify(&presented("another"), now()).await);
    assert_eq!(web.times_asked(URL), 2);
    reason(verifier.verify(&presented("opaque"), at(NOW + 5)).await);
    assert_eq!(web.times_asked(URL), 3);
    web.take_down(URL);
    let away = verifier.verify(&presented("third"), now()).await;
    assert!(matches!(away, Err(VerifyError::Unavailable(_))));
    web.set(URL, Response::json(StatusCode::OK, &active(&[])));
    assert!(verifier.verify(&presented("third"), now()).await.is_ok(), "no refusal was remembered");
}

#[test]
fn an_address_that_may_not_be_asked_is_told_when_the_guard_is_built() {
    let mut plain = Introspection::at("http://login.example/introspect", "files", Secret::from("x"));
    let error = plain.prepare(&Setting::new(RESOURCE, ISSUER)).unwrap_err();
    assert_eq!(error.to_string(), "the address for introspection is plain http and not on this machine");
    let mut trusted = plain.dangerous().trust_origin("http://login.example");
    assert!(trusted.prepare(&Setting::new(RESOURCE, ISSUER)).is_ok());
    assert_eq!(format!("{trusted:?}"), "Introspection { client_id: \"files\", .. }");
}

/// An issuer that takes every question and answers none.
#[derive(Debug)]
struct Silent;

impl Fetch for Silent {
    fn fetch<'a>(&'a self, _: Request, _: &'a Reach) -> FetchFuture<'a, Result<Response, FetchError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_behind_those_who_ask_too_much() {
    let verifier = Introspection::at(URL, "files", Secret::from("s3cret")).fetch(Silent);
    let verifier = Arc::new(prepared(verifier));
    let flood: Vec<_> = (0..500)
        .map(|number| {
            let verifier = Arc::clone(&verifier);
            tokio::spawn(async move { verifier.verify(&presented(&format!("junk{number}")), now()).await })
        })
        .collect();
    // All of them come before it, and have asked or wait.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let limit = Duration::from_secs(60);
    let waited = tokio::time::timeout(limit, verifier.verify(&presented("opaque"), now())).await;
    assert!(matches!(waited, Ok(Err(VerifyError::Unavailable(_)))), "{waited:?}");
    flood.iter().for_each(tokio::task::JoinHandle::abort);
}
