//! The keys of an issuer: attacks 5 and 6, and what happens when the issuer is away.

use http::{HeaderValue, header};

use super::*;

const METADATA: &str = "https://login.example/.well-known/oauth-authorization-server";
const OPENID: &str = "https://login.example/.well-known/openid-configuration";

fn token(key: &PrivateKey, seconds: u64) -> PresentedToken {
    presented(
        &key.sign("at+jwt", &claims(&[("exp", json!(seconds + 300)), ("iat", json!(seconds))])).unwrap(),
    )
}

async fn accepts(jwt: &Jwt, key: &PrivateKey, seconds: u64) -> bool {
    match jwt.verify(&token(key, seconds), at(seconds)).await {
        Ok(_) => true,
        Err(VerifyError::Invalid(_)) => false,
        Err(VerifyError::Unavailable(why)) => panic!("{why}"),
    }
}

async fn unavailable(jwt: &Jwt, key: &PrivateKey, seconds: u64) -> Unavailable {
    match jwt.verify(&token(key, seconds), at(seconds)).await {
        Err(VerifyError::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn kept_for(keys: &Value, seconds: u64) -> Response {
    let mut response = Response::json(StatusCode::OK, keys);
    let value = HeaderValue::from_str(&format!("max-age={seconds}")).unwrap();
    response.headers.insert(header::CACHE_CONTROL, value);
    response
}

#[tokio::test]
async fn keys_are_found_by_the_metadata_of_the_issuer() {
    let key = key();
    let web =
        Web::default().page(OPENID, &json!({ "issuer": ISSUER, "jwks_uri": KEYS })).page(KEYS, &set(&[&key]));
    let jwt = prepared(Jwt::discovered().fetch(web.clone()));
    assert!(accepts(&jwt, &key, NOW).await);
    assert!(accepts(&jwt, &key, NOW).await);
    assert_eq!(web.asked(), [METADATA, OPENID, KEYS], "and then they are kept");
}

#[tokio::test]
async fn an_issuer_that_spells_itself_otherwise_is_named() {
    let key = key();
    let web = Web::default()
        .page(METADATA, &json!({ "issuer": "https://login.example/", "jwks_uri": KEYS }))
        .page(KEYS, &set(&[&key]));
    let jwt = prepared(Jwt::discovered().fetch(web.clone()));
    let why = unavailable(&jwt, &key, NOW).await.to_string();
    assert!(
        why.contains("\"https://login.example/\"") && why.contains("configured as https://login.example,"),
        "{why}"
    );
    assert_eq!(web.times_asked(KEYS), 0, "nothing of that document is used");
}

#[tokio::test]
async fn nobody_is_asked_at_the_addresses_that_a_token_names() {
    let (ours, eve) = (key(), key());
    let web = Web::default().page(KEYS, &set(&[&ours])).page("https://evil.example/keys", &set(&[&eve]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    let token = eve.sign_with_key_inside("at+jwt", &claims(&[])).unwrap();
    let (_, rest) = token.split_once('.').unwrap();
    for extra in ["jku", "x5u"] {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let header =
            json!({ "alg": "ES256", "kid": "one", extra: "https://evil.example/keys", "x5c": ["AAAA"] });
        let token = format!("{}.{rest}", BASE64_URL_SAFE_NO_PAD.encode(header.to_string()));
        reason(jwt.verify(&presented(&token), now()).await);
    }
    reason(jwt.verify(&presented(&token), now()).await);
    assert_eq!(web.asked(), [KEYS]);
}

#[tokio::test]
async fn ten_thousand_unknown_keys_are_one_fetch_in_thirty_seconds() {
    let key = key();
    let web = Web::default().page(KEYS, &set(&[&key]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert!(accepts(&jwt, &key, NOW).await);
    // Signing takes long, and whoever makes them up need not sign.
    let signed = key.sign("at+jwt", &claims(&[])).unwrap();
    let (_, rest) = signed.split_once('.').unwrap();
    let made_up = |number: u32| {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let header = json!({ "alg": "ES256", "kid": format!("../{number}' --\u{0}") }).to_string();
        presented(&format!("{}.{rest}", BASE64_URL_SAFE_NO_PAD.encode(header)))
    };
    for number in 0..10_000 {
        assert_eq!(reason(jwt.verify(&made_up(number), at(NOW + 29)).await), "no key fits the token");
    }
    assert_eq!(web.times_asked(KEYS), 1, "the pause counts from the first fetch");
    for number in 0..10_000 {
        reason(jwt.verify(&made_up(number), at(NOW + 40)).await);
    }
    assert_eq!(web.times_asked(KEYS), 2);
    for number in 0..100 {
        reason(jwt.verify(&made_up(number), at(NOW + 100)).await);
    }
    assert_eq!(web.times_asked(KEYS), 3);
}

#[tokio::test]
async fn a_key_that_was_asked_for_before_its_time_is_found_after_the_pause() {
    let nameless = PrivateKey::generate(Algorithm::Es256).unwrap();
    for new in [key().kid("two"), nameless] {
        let old = key();
        let web = Web::default().page(KEYS, &set(&[&old]));
        let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
        assert!(accepts(&jwt, &old, NOW).await);
        // Anybody can send a token with the name that comes next.
        assert!(!accepts(&jwt, &new, NOW + 40).await);
        web.set(KEYS, Response::json(StatusCode::OK, &set(&[&old, &new])));
        assert!(accepts(&jwt, &new, NOW + 40 + FETCH_PAUSE.as_secs()).await);
    }
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_found() {
    let (old, new) = (key(), key().kid("two"));
    let web = Web::default().page(KEYS, &set(&[&old]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert!(accepts(&jwt, &old, NOW).await);
    web.set(KEYS, Response::json(StatusCode::OK, &set(&[&old, &new])));
    assert!(!accepts(&jwt, &new, NOW + 29).await, "too early to ask again");
    assert!(accepts(&jwt, &new, NOW + 30).await);
    let nameless = PrivateKey::generate(Algorithm::Es256).unwrap();
    web.set(KEYS, Response::json(StatusCode::OK, &set(&[&nameless])));
    assert!(accepts(&jwt, &nameless, NOW + 60).await, "also by a token that names no key");
}

#[tokio::test]
async fn a_key_of_the_right_name_and_the_wrong_type_is_no_reason_to_fetch() {
    let (ec, ed) = (key(), PrivateKey::generate(Algorithm::EdDsa).unwrap().kid("one"));
    let web = Web::default().page(KEYS, &set(&[&ed]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert!(!accepts(&jwt, &ec, NOW).await);
    assert!(!accepts(&jwt, &ec, NOW + 60).await);
    assert_eq!(web.times_asked(KEYS), 1);
}

#[tokio::test]
async fn keys_are_fresh_as_long_as_the_issuer_says() {
    let key = key();
    let web = Web::default();
    web.set(KEYS, kept_for(&set(&[&key]), 3_600));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    for (seconds, times) in [(0, 1), (3_599, 1), (3_600, 2), (7_199, 2)] {
        assert!(accepts(&jwt, &key, NOW + seconds).await);
        assert_eq!(web.times_asked(KEYS), times, "after {seconds} s");
    }
}

#[tokio::test]
async fn a_key_that_was_taken_back_is_refused_when_the_keys_are_renewed() {
    let (old, new) = (key(), key().kid("two"));
    let web = Web::default().page(KEYS, &set(&[&old]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert!(accepts(&jwt, &old, NOW).await);
    web.set(KEYS, Response::json(StatusCode::OK, &set(&[&new])));
    assert!(accepts(&jwt, &old, NOW + 299).await);
    assert!(!accepts(&jwt, &old, NOW + 300).await);
}

#[tokio::test]
async fn stale_keys_serve_a_day_while_the_issuer_is_away() {
    const DAY: u64 = 24 * 60 * 60;
    let key = key();
    let web = Web::default().page(KEYS, &set(&[&key]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert!(accepts(&jwt, &key, NOW).await);
    web.take_down(KEYS);
    let stale = NOW + 300;
    assert!(accepts(&jwt, &key, stale).await);
    assert!(accepts(&jwt, &key, stale + 29).await);
    assert_eq!(web.times_asked(KEYS), 2, "and it is not asked with every request");
    assert!(accepts(&jwt, &key, stale + DAY - 1).await);
    unavailable(&jwt, &key, stale + DAY + 30).await;
    web.set(KEYS, Response::json(StatusCode::OK, &set(&[&key])));
    assert!(accepts(&jwt, &key, stale + DAY + 60).await);
}

#[tokio::test]
async fn an_issuer_that_is_away_makes_no_token_invalid() {
    let key = key();
    let web = Web::default();
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert_eq!(unavailable(&jwt, &key, NOW).await.delay(), Duration::from_secs(30));
    assert_eq!(unavailable(&jwt, &key, NOW + 20).await.delay(), Duration::from_secs(10));
    assert_eq!(web.times_asked(KEYS), 1);
    web.set(KEYS, Response::json(StatusCode::OK, &set(&[&key])));
    assert!(accepts(&jwt, &key, NOW + 30).await);
    // An unknown key, of which only the issuer could say whether it is new.
    web.take_down(KEYS);
    unavailable(&jwt, &self::key().kid("two"), NOW + 60).await;
    assert!(accepts(&jwt, &key, NOW + 61).await, "those that are known still count");
}

#[tokio::test]
async fn answers_that_are_no_keys_are_an_issuer_that_is_away() {
    for (status, body) in [
        (StatusCode::OK, "<html>"),
        (StatusCode::OK, "{}"),
        (StatusCode::OK, r#"{"keys":[]}"#),
        (StatusCode::OK, r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#),
        (StatusCode::NOT_FOUND, r#"{"keys":[]}"#),
        (StatusCode::FOUND, ""),
        (StatusCode::INTERNAL_SERVER_ERROR, ""),
    ] {
        let web = Web::default();
        web.set(KEYS, Response { body: body.into(), ..Response::empty(status) });
        let jwt = prepared(Jwt::at(KEYS).fetch(web));
        unavailable(&jwt, &key(), NOW).await;
    }
}

#[tokio::test]
async fn many_requests_at_once_are_one_fetch() {
    let key = key();
    let web = Web::default().page(KEYS, &set(&[&key]));
    let jwt = Arc::new(prepared(Jwt::at(KEYS).fetch(web.clone())));
    let requests: Vec<_> = (0..50)
        .map(|_| {
            let (jwt, key) = (Arc::clone(&jwt), key.clone());
            tokio::spawn(async move { accepts(&jwt, &key, NOW).await })
        })
        .collect();
    for request in requests {
        assert!(request.await.unwrap());
    }
    assert_eq!(web.times_asked(KEYS), 1);
}

#[tokio::test]
async fn warming_up_gets_the_keys_or_says_why_not() {
    let web = Web::default().page(KEYS, &set(&[&key()]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert_eq!(jwt.warm_up().await, Ok(()));
    assert_eq!(web.times_asked(KEYS), 1);
    let away = prepared(Jwt::at(KEYS).fetch(Web::default()));
    assert_eq!(away.warm_up().await.unwrap_err().to_string(), "nobody answers");
}

#[tokio::test]
async fn an_outage_is_told_once_for_each_try_and_not_for_each_token() {
    let key = key();
    let web = Web::default().page(KEYS, &set(&[&key]));
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    assert!(accepts(&jwt, &key, NOW).await);
    web.take_down(KEYS);
    let warnings = Warnings::default();
    let listening = tracing::subscriber::set_default(warnings.clone());
    let stale = NOW + MIN_FRESH.as_secs();
    for _ in 0..10 {
        assert!(accepts(&jwt, &key, stale).await, "old keys do");
    }
    assert_eq!((warnings.count(), web.times_asked(KEYS)), (1, 2));
    for _ in 0..10 {
        assert!(accepts(&jwt, &key, stale + FETCH_PAUSE.as_secs()).await);
    }
    assert_eq!((warnings.count(), web.times_asked(KEYS)), (2, 3));
    drop(listening);
}
