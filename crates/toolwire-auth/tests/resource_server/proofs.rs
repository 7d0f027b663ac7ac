//! Tokens that are bound to a key.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::SystemTime,
};

use http::{Response, StatusCode};
use serde_json::json;
use toolwire_auth::{
    challenge,
    dpop::Proof,
    jose::PrivateKey,
    server::{Dpop, ResourceServer},
};
use toolwire_http::server::{Body, HttpService};
use toolwire_server::{CallerKey, MemoryNonces, NonceError, NonceStore};
use toolwire_transport::BoxFuture;

use crate::kit::*;

fn bound(key: &PrivateKey) -> String {
    bound_of("alice", "notes", key)
}

fn bound_of(subject: &str, client: &str, key: &PrivateKey) -> String {
    let jkt = key.public_key().thumbprint().to_string();
    token(&[("cnf", json!({ "jkt": jkt })), ("sub", json!(subject)), ("client_id", json!(client))])
}

fn proof(key: &PrivateKey, token: &str, nonce: Option<&str>) -> String {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let entropy = [NEXT.fetch_add(1, Ordering::Relaxed); 16];
    let mut proof =
        Proof::new("POST", &RESOURCE.parse().unwrap(), SystemTime::now(), entropy).access_token(token);
    if let Some(nonce) = nonce {
        proof = proof.nonce(nonce);
    }
    proof.sign(key).unwrap()
}

async fn show(service: &HttpService, scheme: &str, token: &str, proof: Option<&str>) -> Response<Body> {
    let mut request = request("whoami").header("authorization", format!("{scheme} {token}"));
    if let Some(proof) = proof {
        request = request.header("dpop", proof);
    }
    send(service, request, &message("whoami")).await
}

fn error(response: &Response<Body>, scheme: &str) -> Option<String> {
    let challenges = challenge::parse(response.headers());
    let found = challenges.iter().find(|challenge| challenge.is(scheme))?;
    found.error().map(str::to_owned)
}

fn guarded(describe: impl FnOnce(ResourceServer) -> ResourceServer) -> HttpService {
    service(&describe(described()).build().unwrap())
}

#[tokio::test]
async fn a_bound_token_counts_with_a_fresh_proof_of_its_key_and_in_no_other_way() {
    let service = guarded(|server| server.dpop(Dpop::accepted()));
    let (mine, other) = (key("c"), key("c"));
    let token = bound(&mine);
    let good = proof(&mine, &token, None);
    let response = show(&service, "DPoP", &token, Some(&good)).await;
    assert_eq!(response.status(), StatusCode::OK);
    for (what, scheme, proof) in [
        ("used before", "DPoP", Some(good)),
        ("of another key", "DPoP", Some(proof(&other, &token, None))),
        ("for another token", "DPoP", Some(proof(&mine, "other", None))),
        ("none", "DPoP", None),
    ] {
        let response = show(&service, scheme, &token, proof.as_deref()).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{what}");
        assert_eq!(error(&response, "DPoP").as_deref(), Some("invalid_dpop_proof"), "{what}");
    }
    let as_bearer = show(&service, "Bearer", &token, Some(&proof(&mine, &token, None))).await;
    assert_eq!(as_bearer.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(error(&as_bearer, "Bearer").as_deref(), Some("invalid_token"));
    // A token that is bound to nothing is taken here, but not as if it were.
    assert_eq!(call(&service, "whoami", &crate::kit::token(&[])).await.status(), StatusCode::OK);
    let unbound = crate::kit::token(&[]);
    let pretended = show(&service, "DPoP", &unbound, Some(&proof(&mine, &unbound, None))).await;
    assert_eq!(pretended.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn where_nobody_checks_proofs_a_bound_token_is_refused() {
    let service = guarded(|server| server);
    let mine = key("c");
    let token = bound(&mine);
    for scheme in ["Bearer", "DPoP"] {
        let response = show(&service, scheme, &token, Some(&proof(&mine, &token, None))).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{scheme}");
    }
}

#[tokio::test]
async fn where_proofs_are_required_nothing_else_is_offered() {
    let service = guarded(|server| server.dpop(Dpop::required()));
    let response = send(&service, request("whoami"), &message("whoami")).await;
    let challenge = challenged(&response);
    assert!(challenge.is("DPoP"));
    assert!(challenge.get("algs").unwrap().contains("ES256"));
    assert_eq!(call(&service, "whoami", &token(&[])).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_nonce_is_asked_for_once_and_given_with_every_answer() {
    let service = guarded(|server| server.dpop(Dpop::required().nonces([[7; 32]]).unwrap()));
    let mine = key("c");
    let token = bound(&mine);
    let first = show(&service, "DPoP", &token, Some(&proof(&mine, &token, None))).await;
    assert_eq!(first.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(error(&first, "DPoP").as_deref(), Some("use_dpop_nonce"));
    let nonce = first.headers()["dpop-nonce"].to_str().unwrap().to_owned();
    let second = show(&service, "DPoP", &token, Some(&proof(&mine, &token, Some(&nonce)))).await;
    assert_eq!(second.status(), StatusCode::OK);
    assert!(second.headers().contains_key("dpop-nonce"));
    let made_up = show(&service, "DPoP", &token, Some(&proof(&mine, &token, Some("made-up")))).await;
    assert_eq!(error(&made_up, "DPoP").as_deref(), Some("use_dpop_nonce"));
}

/// Not 401: a client that is told that its proof is not valid would renew its token, and again be refused.
fn is_told_to_come_back(response: &Response<Body>) {
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    assert!(!response.headers().contains_key("www-authenticate"));
}

#[tokio::test]
async fn one_account_with_many_keys_and_clients_does_not_lock_out_another() {
    let store = MemoryNonces::new(64).limit_per_caller(4);
    let service = guarded(|server| server.dpop(Dpop::required().store(store)));
    let uses = async |subject: &str, client: &str| {
        let key = key("c");
        let token = bound_of(subject, client, &key);
        show(&service, "DPoP", &token, Some(&proof(&key, &token, None))).await
    };
    for client in ["one", "two", "three", "four"] {
        assert_eq!(uses("eve", client).await.status(), StatusCode::OK);
    }
    is_told_to_come_back(&uses("eve", "five").await);
    assert_eq!(uses("alice", "one").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_full_table_of_proofs_is_no_fault_of_a_token() {
    let service = guarded(|server| server.dpop(Dpop::required().store(MemoryNonces::new(1))));
    let key = key("c");
    let token = bound(&key);
    let first = proof(&key, &token, None);
    assert_eq!(show(&service, "DPoP", &token, Some(&first)).await.status(), StatusCode::OK);
    is_told_to_come_back(&show(&service, "DPoP", &token, Some(&proof(&key, &token, None))).await);
    let again = show(&service, "DPoP", &token, Some(&first)).await;
    assert_eq!(error(&again, "DPoP").as_deref(), Some("invalid_dpop_proof"), "that one was used");
}

/// A store that is away.
struct Away;

impl NonceStore for Away {
    fn consume<'a>(
        &'a self,
        _: Option<&'a CallerKey>,
        _: [u8; 24],
        _: SystemTime,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<(), NonceError>> {
        Box::pin(async { Err(NonceError::Unavailable) })
    }
}

#[tokio::test]
async fn a_store_of_proofs_that_is_away_lets_nobody_in_and_makes_no_token_invalid() {
    let service = guarded(|server| server.dpop(Dpop::required().store(Away)));
    let key = key("c");
    let token = bound(&key);
    is_told_to_come_back(&show(&service, "DPoP", &token, Some(&proof(&key, &token, None))).await);
}
