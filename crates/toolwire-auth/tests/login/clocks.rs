//! Proofs of possession whose date a server refuses, or whose refusal has a wrong date.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::Value;
use toolwire_auth::{client::flow::Dpop, clock::ManualClock};
use toolwire_http::client::authorize::{Attempt, Authorize, Hop, Purpose, Refusal, Verdict};

use super::world::{World, bound};

/// The time by our clock, in seconds since 1970.
const NOW: u64 = 1_800_000_000;
/// The most by which a proof may be dated otherwise.
const LIMIT: u64 = 300;

/// A client with a login whose token is bound to a key.
struct Bound {
    world: World,
    auth: Arc<dyn Authorize>,
}

impl Bound {
    async fn new() -> Self {
        let world = World::new().await;
        let oauth = World::oauth().dpop(Dpop::Always).clock(ManualClock::at(NOW)).build().unwrap();
        let client = Self { auth: bound(&oauth, &world), world };
        let mut first = client.auth.attempt(Purpose::Request);
        client.sent(&mut *first).await;
        client.refused(&mut *first, "", NOW).await;
        assert_eq!((client.sent(&mut *first).await, client.requests()), (NOW, 1));
        client
    }

    /// The number of tokens that were asked for: one is for the login.
    fn requests(&self) -> usize {
        self.world.seen().token_requests
    }

    /// Sends a request, and returns the date of its proof; 0 without one.
    async fn sent(&self, attempt: &mut dyn Attempt) -> u64 {
        let (url, body) = (self.world.server(), Bytes::new());
        let headers = attempt.headers(Hop::new(&Method::POST, &url, &body)).await.unwrap();
        let Some(proof) = headers.get("dpop") else { return 0 };
        let payload = proof.to_str().unwrap().split('.').nth(1).unwrap();
        let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
        claims["iat"].as_u64().unwrap()
    }

    /// Refuses a request in an answer of this date, after which it is sent again.
    async fn refused(&self, attempt: &mut dyn Attempt, error: &str, date: u64) {
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.world.origin());
        let challenge = match error {
            "" => format!("DPoP resource_metadata=\"{place}\""),
            error => format!("DPoP error=\"{error}\", resource_metadata=\"{place}\""),
        };
        let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(date));
        let mut headers = HeaderMap::new();
        headers.insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
        headers.insert(header::DATE, date.parse().unwrap());
        headers.insert("dpop-nonce", "a-nonce".parse().unwrap());
        let (url, body) = (self.world.server(), Bytes::new());
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, headers, Vec::new());
        let verdict = attempt.refused(Hop::new(&Method::POST, &url, &body), refusal).await.unwrap();
        assert_eq!(verdict, Verdict::Again, "{error}");
    }
}

#[tokio::test]
async fn requests_at_once_with_a_wrong_clock_are_all_dated_anew_and_ask_for_no_token() {
    for (ahead, behind) in [(250, 0), (0, 250)] {
        let client = Bound::new().await;
        let mut attempts: Vec<_> = (0..3).map(|_| client.auth.attempt(Purpose::Request)).collect();
        for attempt in &mut attempts {
            assert_eq!(client.sent(&mut **attempt).await, NOW);
        }
        let theirs = NOW + ahead - behind;
        for attempt in &mut attempts {
            client.refused(&mut **attempt, "invalid_dpop_proof", theirs).await;
        }
        for attempt in &mut attempts {
            assert_eq!(client.sent(&mut **attempt).await, theirs);
        }
        assert_eq!(client.requests(), 1, "the token is good");
    }
}

#[tokio::test]
async fn the_time_is_learned_only_from_the_refusal_of_a_proof() {
    for (error, learned) in
        [("", 0), ("invalid_token", 0), ("invalid_dpop_proof", 250), ("use_dpop_nonce", 250)]
    {
        let client = Bound::new().await;
        let mut attempt = client.auth.attempt(Purpose::Request);
        client.sent(&mut *attempt).await;
        client.refused(&mut *attempt, error, NOW + 250).await;
        for attempt in [attempt, client.auth.attempt(Purpose::Request)] {
            let mut attempt = attempt;
            assert_eq!(client.sent(&mut *attempt).await, NOW + learned, "{error}");
        }
    }
}

#[tokio::test]
async fn a_wrong_date_with_the_wish_for_a_nonce_ends_no_login() {
    let client = Bound::new().await;
    let mut attempts: Vec<_> = (0..2).map(|_| client.auth.attempt(Purpose::Request)).collect();
    for attempt in &mut attempts {
        client.sent(&mut **attempt).await;
        client.refused(&mut **attempt, "use_dpop_nonce", NOW + 3600).await;
        assert_eq!(client.sent(&mut **attempt).await, NOW + LIMIT);
    }
    // The clock of the server is ours, and that of a proxy in front of it is wrong.
    for attempt in &mut attempts {
        client.refused(&mut **attempt, "invalid_dpop_proof", NOW + 3600).await;
        assert_eq!(client.sent(&mut **attempt).await, NOW);
    }
    assert_eq!(client.requests(), 1, "the token is good");
    assert_eq!(client.sent(&mut *client.auth.attempt(Purpose::Request)).await, NOW);
}

#[tokio::test]
async fn a_date_that_does_not_help_is_forgotten_and_the_token_is_renewed() {
    let client = Bound::new().await;
    let mut attempt = client.auth.attempt(Purpose::Request);
    assert_eq!(client.sent(&mut *attempt).await, NOW);
    client.refused(&mut *attempt, "invalid_dpop_proof", NOW + 3600).await;
    assert_eq!((client.sent(&mut *attempt).await, client.requests()), (NOW + LIMIT, 1));
    // Neither date is taken: it is not the date that is wrong.
    client.refused(&mut *attempt, "invalid_dpop_proof", NOW + 3600).await;
    assert_eq!((client.sent(&mut *attempt).await, client.requests()), (NOW, 2));
    assert_eq!(client.sent(&mut *client.auth.attempt(Purpose::Request)).await, NOW);
}

#[tokio::test]
async fn the_clock_of_the_server_is_tried_again_with_another_token() {
    let client = Bound::new().await;
    let mut first = client.auth.attempt(Purpose::Request);
    client.sent(&mut *first).await;
    client.refused(&mut *first, "invalid_dpop_proof", NOW + 250).await;
    // This one is refused for another reason at first, and is then dated wrong.
    let mut second = client.auth.attempt(Purpose::Request);
    for (dated, requests) in [(NOW + 250, 1), (NOW, 1), (NOW, 2)] {
        assert_eq!((client.sent(&mut *second).await, client.requests()), (dated, requests));
        client.refused(&mut *second, "invalid_dpop_proof", NOW + 250).await;
    }
    assert_eq!((client.sent(&mut *second).await, client.requests()), (NOW + 250, 2));
}

#[tokio::test]
async fn a_proof_is_never_dated_more_than_five_minutes_from_our_clock() {
    for (date, dated) in [
        (NOW + LIMIT, NOW + LIMIT),
        (NOW + LIMIT + 1, NOW + LIMIT),
        (NOW + 86_400, NOW + LIMIT),
        (NOW - LIMIT - 1, NOW - LIMIT),
        (0, NOW - LIMIT),
    ] {
        let client = Bound::new().await;
        let mut attempt = client.auth.attempt(Purpose::Request);
        client.sent(&mut *attempt).await;
        client.refused(&mut *attempt, "invalid_dpop_proof", date).await;
        assert_eq!(client.sent(&mut *attempt).await, dated, "{date}");
    }
}
