//! Signed tokens, keys and proofs, all of which anybody may send or publish.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use toolwire_auth::{
    dpop::{self, Expected, Target, WINDOW},
    jose::{Algorithm, Compact, KeySet, MAX_COMPACT_BYTES, MAX_KEYS, PrivateKey, PublicKey},
};
use toolwire_protocol::RawJson;

use crate::cost::within;

/// The key that the RFCs sign with in Ed25519. Nothing in the corpus is signed with it.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----";

/// Public keys of all kinds, of which nobody here has the private halves.
const KEYS: &str = r#"{"keys":[
{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"},
{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB"}]}"#;

const NOW: u64 = 1_800_000_000;
const TARGET: &str = "https://files.example/mcp";

fn key() -> PrivateKey {
    PrivateKey::pem(KEY, Algorithm::EdDsa).expect("it is a key")
}

/// A JSON object that every reader understands alike.
fn object(data: &[u8]) -> Option<Map<String, Value>> {
    RawJson::parse(std::str::from_utf8(data).ok()?).ok()?.decode().ok()
}

/// Takes whatever comes apart: nobody has signed it, so nobody accepts it. What is signed here is accepted.
pub fn compact_jws(data: &[u8]) {
    let mut keys = KeySet::parse(KEYS).expect("they are keys").keys().to_vec();
    keys.push(key().public_key().clone());
    let keys = KeySet::of(keys);
    within(Duration::from_millis(500), "a token", || {
        if let Ok(text) = std::str::from_utf8(data)
            && let Ok(token) = Compact::parse(text)
        {
            assert!(text.is_ascii() && text.split('.').count() == 3 && text.len() <= MAX_COMPACT_BYTES);
            let _ = (token.claimed_issuer(), token.header().embedded_key());
            assert!(keys.verify(&token).is_err(), "{text} was signed by nobody");
        }
        if let Some(claims) = object(data) {
            let signed = key().sign("JWT", &claims).expect("an object can be signed");
            if signed.len() <= MAX_COMPACT_BYTES {
                let token = Compact::parse(&signed).expect("it was made here");
                let payload = keys.verify(&token).expect("it was signed here");
                // A text was signed. A number that is written and read again may differ in its last digit.
                let written = serde_json::to_vec(&claims).expect("it is an object");
                assert_eq!(Some(payload.object().expect("it is an object")), object(&written));
            }
        }
    });
}

/// Reads keys, and writes and reads them again.
pub fn jwks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let signed = key().sign("JWT", &Map::new()).expect("an object can be signed");
    within(Duration::from_millis(500), "a set of keys", || {
        let Ok(set) = KeySet::parse(text) else { return };
        assert!(set.keys().len() + set.skipped() <= MAX_KEYS);
        for key in set.keys() {
            let again = PublicKey::parse(&key.to_jwk().to_string()).expect("it was a key");
            assert_eq!(again.thumbprint(), key.thumbprint());
        }
        let token = Compact::parse(&signed).expect("it was made here");
        if set.verify(&token).is_ok() {
            assert!(set.keys().iter().any(|one| one.thumbprint() == key().public_key().thumbprint()));
        }
    });
}

/// Judges whatever comes as a proof, and whatever comes as the claims of one.
pub fn dpop_proof(data: &[u8]) {
    let (key, now) = (key(), UNIX_EPOCH + Duration::from_secs(NOW));
    within(Duration::from_millis(500), "a proof", || {
        if let Ok(text) = std::str::from_utf8(data) {
            assert!(judge(text, &key, now).is_err(), "{text} was signed by nobody");
            if let Some(target) = Target::parse(text) {
                assert!(!text.contains(['?', '#', ' ', '\\']), "{text}");
                // The case of the scheme says nothing.
                let (scheme, rest) = text.split_once(':').expect("it has a scheme");
                assert_eq!(Target::parse(&format!("{}:{rest}", scheme.to_ascii_uppercase())), Some(target));
            }
        }
        let Some(claims) = object(data) else { return };
        let proof = key.sign_with_key_inside("dpop+jwt", &claims).expect("an object can be signed");
        if judge(&proof, &key, now).is_ok() {
            assert_eq!(claims["htm"], "POST");
            assert!(claims["jti"].as_str().is_some_and(|jti| !jti.is_empty()));
            let away = claims["iat"].as_f64().expect("a time") - NOW as f64;
            assert!(away.abs() <= WINDOW.as_secs() as f64, "{claims:?}");
        }
    });
}

fn judge(proof: &str, key: &PrivateKey, now: SystemTime) -> Result<dpop::Proved, dpop::ProofError> {
    let expected = Expected {
        method: "POST",
        target: &Target::parse(TARGET).expect("it is an address"),
        token_digest: &[0; 32],
        bound_to: &key.public_key().thumbprint().to_string(),
        algorithms: &Algorithm::ALL,
        nonces: None,
    };
    dpop::check(proof, &expected, now)
}
