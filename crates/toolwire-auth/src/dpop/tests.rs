use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolwire_protocol::seal::KeyRing;
use url::Url;

use super::*;
use crate::jose::{Algorithm, PrivateKey, PublicKey};

const NOW: u64 = 1_800_000_000;
const TOKEN: &str = "a.bound.token";
const RESOURCE: &str = "https://files.example/mcp";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn url() -> Url {
    RESOURCE.parse().unwrap()
}

fn proof() -> Proof {
    Proof::new("POST", &url(), at(NOW), [7; 16]).access_token(TOKEN)
}

fn key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Es256).unwrap()
}

/// Checks a proof of a request to the resource with the token, which is bound to `bound`.
fn judge(
    proof: &str,
    bound: &PublicKey,
    nonces: Option<&Nonces>,
    now: SystemTime,
) -> Result<Proved, ProofError> {
    let expected = Expected {
        method: "POST",
        target: &Target::parse(RESOURCE).unwrap(),
        token_digest: &Sha256::digest(TOKEN).into(),
        bound_to: &bound.thumbprint().to_string(),
        algorithms: &Algorithm::ALL,
        nonces,
    };
    check(proof, &expected, now)
}

/// What becomes of a proof with other claims. A null takes one away.
fn changed(changes: &[(&str, Value)]) -> Result<Proved, ProofError> {
    let key = key();
    let mut claims = Map::from_iter([
        ("jti".to_owned(), json!("once")),
        ("htm".to_owned(), json!("POST")),
        ("htu".to_owned(), json!(RESOURCE)),
        ("iat".to_owned(), json!(NOW)),
        ("ath".to_owned(), json!(proof::token_hash(&Sha256::digest(TOKEN).into()))),
    ]);
    for (name, value) in changes {
        match value {
            Value::Null => claims.remove(*name),
            value => claims.insert((*name).to_owned(), value.clone()),
        };
    }
    judge(&key.sign_with_key_inside("dpop+jwt", &claims).unwrap(), key.public_key(), None, at(NOW))
}

fn refused(changes: &[(&str, Value)]) -> &'static str {
    match changed(changes) {
        Err(ProofError::Invalid(reason)) => reason,
        other => panic!("{changes:?}: {other:?}"),
    }
}

fn nonces() -> Nonces {
    Nonces::new(KeyRing::new([b"a secret of at least thirty-two bytes"]).unwrap(), RESOURCE)
}

#[test]
fn the_proof_of_rfc_9449_section_7_1_is_accepted() {
    let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";
    let expected = Expected {
        method: "GET",
        target: &Target::parse("https://resource.example.org/protectedresource").unwrap(),
        token_digest: &Sha256::digest("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU").into(),
        bound_to: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I",
        algorithms: &[Algorithm::Es256],
        nonces: None,
    };
    let proved = check(proof, &expected, at(1_562_262_618)).unwrap();
    assert_eq!(proved.thumbprint().to_string(), expected.bound_to);
}

#[test]
fn a_proof_that_was_made_here_is_accepted_here() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa] {
        let key = PrivateKey::generate(algorithm).unwrap();
        let signed = proof().sign(&key).unwrap();
        let proved = judge(&signed, key.public_key(), None, at(NOW)).unwrap();
        assert_eq!(proved.thumbprint(), key.public_key().thumbprint());
        assert!(!proved.wants_nonce());
    }
}

#[test]
fn query_and_fragment_are_left_out_of_a_proof() {
    let url = "https://files.example/mcp?secret=1#part".parse().unwrap();
    let (key, made) = (key(), Proof::new("POST", &url, at(NOW), [7; 16]).access_token(TOKEN));
    assert!(judge(&made.sign(&key).unwrap(), key.public_key(), None, at(NOW)).is_ok());
    assert_eq!(format!("{made:?}"), "Proof(POST https://files.example/mcp)");
}

#[test]
fn a_proof_for_another_method_or_address_is_refused() {
    for method in [json!("GET"), json!("post"), json!(null), json!(1)] {
        assert_eq!(refused(&[("htm", method)]), "the proof is for another method");
    }
    for address in [
        "https://files.example/mc",
        "https://files.example/mcp/",
        "https://files.example/MCP",
        "https://files.example:8443/mcp",
        "http://files.example/mcp",
        "https://files.example.evil/mcp",
        "https://evil@files.example/mcp",
        "https://files.example/mcp?a=1",
        "https://files.example/mcp?",
        "https://files.example/mcp#a",
        " https://files.example/mcp",
        "https://files.example/m\tcp",
        "https:\\\\files.example\\mcp",
        "https:files.example/mcp",
        "//files.example/mcp",
        "/mcp",
        "",
    ] {
        assert_eq!(refused(&[("htu", json!(address))]), "the proof is for another address", "{address}");
    }
    assert_eq!(refused(&[("htu", json!(null))]), "the proof is for another address");
    for address in ["HTTPS://files.example/mcp", "https://FILES.example:443/mcp"] {
        assert!(changed(&[("htu", json!(address))]).is_ok(), "{address}");
    }
    let root = Target::parse("https://files.example");
    assert!(root.is_some() && root == Target::parse("https://files.example/"));
}

#[test]
fn an_old_or_future_proof_is_refused() {
    for time in [json!(NOW - 60), json!(NOW + 60), json!(NOW), json!(1.8e9)] {
        assert!(changed(&[("iat", time.clone())]).is_ok(), "{time}");
    }
    for time in [json!(NOW - 61), json!(NOW + 61), json!(0), json!(-1), json!(1e300)] {
        assert_eq!(refused(&[("iat", time)]), "the proof is too old, or from the future");
    }
    for time in [json!(NOW.to_string()), json!(null), json!([NOW])] {
        assert_eq!(refused(&[("iat", time)]), "the proof has no time");
    }
}

#[test]
fn a_proof_for_another_token_is_refused() {
    for hash in [json!(null), json!(""), json!(TOKEN), json!(proof::token_hash(&[0; 32]))] {
        assert_eq!(refused(&[("ath", hash)]), "the proof is for another token");
    }
}

#[test]
fn a_proof_with_another_key_than_that_of_the_token_is_refused() {
    let (ours, theirs) = (key(), key());
    let signed = proof().sign(&theirs).unwrap();
    assert_eq!(
        judge(&signed, ours.public_key(), None, at(NOW)),
        Err(ProofError::Invalid("the token is bound to another key"))
    );
}

#[test]
fn a_proof_without_a_jti_is_refused() {
    for jti in [json!(null), json!(""), json!(7)] {
        assert_eq!(refused(&[("jti", jti)]), "the proof has no jti");
    }
}

#[test]
fn what_is_no_proof_is_refused() {
    let key = key();
    let verdict = |text: &str| match judge(text, key.public_key(), None, at(NOW)) {
        Err(ProofError::Invalid(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let good = proof().sign(&key).unwrap();
    assert_eq!(verdict(""), "the proof is not a signed token");
    assert_eq!(verdict(&format!("{good},{good}")), "the proof is not a signed token");
    assert_eq!(verdict(&"a".repeat(MAX_PROOF_BYTES + 1)), "the proof is too long");
    assert_eq!(
        verdict(&key.sign_with_key_inside("at+jwt", &json!({})).unwrap()),
        "the proof has another type"
    );
    assert_eq!(verdict(&key.sign("dpop+jwt", &json!({})).unwrap()), "there is no key in the proof");
    let (_, rest) = good.split_once('.').unwrap();
    let with = |jwk: &Value| {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": jwk }).to_string();
        format!("{}.{rest}", BASE64_URL_SAFE_NO_PAD.encode(header))
    };
    let mut private = key.public_key().to_jwk();
    private["d"] = json!("AAAA");
    let unusable = "the key in the proof cannot be used, or is a private one";
    assert_eq!(verdict(&with(&private)), unusable);
    assert_eq!(verdict(&with(&json!({ "kty": "oct", "k": "AAAA" }))), unusable);
    let other = PrivateKey::generate(Algorithm::Es256).unwrap().public_key().to_jwk();
    assert_eq!(verdict(&with(&other)), "the signature of the proof is not valid");
}

#[test]
fn algorithms_that_were_not_offered_are_refused() {
    let key = PrivateKey::generate(Algorithm::EdDsa).unwrap();
    let expected = Expected {
        method: "POST",
        target: &Target::parse(RESOURCE).unwrap(),
        token_digest: &Sha256::digest(TOKEN).into(),
        bound_to: &key.public_key().thumbprint().to_string(),
        algorithms: &[Algorithm::Es256],
        nonces: None,
    };
    let verdict = check(&proof().sign(&key).unwrap(), &expected, at(NOW));
    assert_eq!(verdict, Err(ProofError::Invalid("the algorithm of the proof is not accepted")));
}

#[test]
fn a_request_has_exactly_one_proof() {
    let mut headers = HeaderMap::new();
    assert_eq!(single(&headers), Err(ProofError::Invalid("there is no proof")));
    headers.append(PROOF_HEADER, HeaderValue::from_static("a.b.c"));
    assert_eq!(single(&headers), Ok("a.b.c"));
    headers.append(PROOF_HEADER, HeaderValue::from_static("a.b.c"));
    assert_eq!(single(&headers), Err(ProofError::Invalid("there is more than one proof")));
    headers.insert(PROOF_HEADER, HeaderValue::from_bytes(b"\xff").unwrap());
    assert_eq!(single(&headers), Err(ProofError::Invalid("the proof is not text")));
}

#[test]
fn nonces_are_asked_for_and_get_old() {
    let (nonces, key) = (nonces(), key());
    let verdict = |proof: Proof, now| judge(&proof.sign(&key).unwrap(), key.public_key(), Some(&nonces), now);
    assert_eq!(verdict(proof(), at(NOW)), Err(ProofError::UseNonce));
    for strange in ["", "x", "\u{0}", &"A".repeat(10_000)] {
        let refused =
            judge(&proof().nonce(strange).sign(&key).unwrap(), key.public_key(), Some(&nonces), at(NOW));
        assert!(refused.is_err(), "{strange}");
    }
    // The period begins at a multiple of its length.
    let start = NOW - NOW % NONCE_PERIOD.as_secs();
    let nonce = nonces.issue(at(start), [1; 24]);
    let with = |now: u64| {
        let proof = Proof::new("POST", &url(), at(now), [7; 16]).access_token(TOKEN).nonce(&nonce);
        verdict(proof, at(now)).map(|proved| proved.wants_nonce())
    };
    assert_eq!(with(start), Ok(false));
    assert_eq!(with(start + 299), Ok(false));
    assert_eq!(with(start + 300), Ok(true), "accepted for another period, and to be replaced");
    assert_eq!(with(start + 599), Ok(true));
    assert_eq!(with(start + 600), Err(ProofError::UseNonce));
    assert_eq!(with(start - 1), Err(ProofError::UseNonce), "from a clock that is ahead");
    assert_eq!(
        (ProofError::UseNonce.code(), ProofError::Invalid("").code()),
        ("use_dpop_nonce", "invalid_dpop_proof")
    );
}

#[test]
fn a_nonce_is_asked_for_before_the_time_is_judged_and_does_not_stand_for_it() {
    let (nonces, key) = (nonces(), key());
    let verdict = |proof: Proof| judge(&proof.sign(&key).unwrap(), key.public_key(), Some(&nonces), at(NOW));
    let late = || Proof::new("POST", &url(), at(NOW - 600), [7; 16]).access_token(TOKEN);
    assert_eq!(verdict(late()), Err(ProofError::UseNonce));
    let with_nonce = late().nonce(&nonces.issue(at(NOW), [1; 24]));
    assert_eq!(verdict(with_nonce), Err(ProofError::Invalid("the proof is too old, or from the future")));
    // A proof that fails otherwise is not answered with a nonce.
    let other = Proof::new("GET", &url(), at(NOW), [7; 16]).access_token(TOKEN);
    assert_eq!(verdict(other), Err(ProofError::Invalid("the proof is for another method")));
}

#[test]
fn replicas_accept_the_nonces_of_each_other_and_of_no_other_server() {
    let nonce = nonces().issue(at(NOW), [1; 24]);
    assert!(nonces().accepts(&nonce, at(NOW)));
    let ring = || KeyRing::new([b"a secret of at least thirty-two bytes"]).unwrap();
    assert!(!Nonces::new(ring(), "https://other.example").accepts(&nonce, at(NOW)));
    let other = KeyRing::new([b"another secret of at least 32 bytes."]).unwrap();
    assert!(!Nonces::new(other, RESOURCE).accepts(&nonce, at(NOW)));
    let mut forged = nonce.into_bytes();
    forged[50] ^= 1;
    assert!(!nonces().accepts(std::str::from_utf8(&forged).unwrap(), at(NOW)));
}

#[cfg(feature = "server")]
mod replay {
    use toolwire_server::{CallerKey, MemoryNonces, NonceError, Principal};

    use super::*;

    fn holder(name: &str) -> CallerKey {
        CallerKey::principal(Principal::new(name).key())
    }

    /// A proof that was made at this second, and judged at that one.
    fn proved(key: &PrivateKey, number: u8, made: u64, now: u64) -> Result<Proved, ProofError> {
        let proof = Proof::new("POST", &url(), at(made), [number; 16]).access_token(TOKEN);
        judge(&proof.sign(key).unwrap(), key.public_key(), None, at(now))
    }

    #[tokio::test]
    async fn a_proof_is_taken_once() {
        let (store, key, ada) = (MemoryNonces::default(), key(), holder("ada"));
        let take = async |key: &PrivateKey, number| {
            proved(key, number, NOW, NOW).unwrap().take(&store, &ada, at(NOW)).await
        };
        assert_eq!(take(&key, 1).await, Ok(key.public_key().thumbprint()));
        assert_eq!(take(&key, 1).await, Err(NonceError::Used), "signed anew with the same jti");
        assert!(take(&key, 2).await.is_ok());
        assert!(take(&super::key(), 1).await.is_ok(), "of another key");
        let again = proved(&key, 2, NOW, NOW).unwrap();
        assert_eq!(
            again.take(&store, &holder("eve"), at(NOW)).await,
            Err(NonceError::Used),
            "by another holder"
        );
    }

    #[tokio::test]
    async fn a_proof_is_remembered_for_as_long_as_it_is_accepted_and_not_much_longer() {
        let (key, ada) = (key(), holder("ada"));
        for made in [NOW - 60, NOW, NOW + 60] {
            let store = MemoryNonces::new(1);
            assert!(proved(&key, 1, made, NOW).unwrap().take(&store, &ada, at(NOW)).await.is_ok());
            let last = proved(&key, 1, made, made + 60).unwrap();
            let end = at(made + 61) - Duration::from_nanos(1);
            assert_eq!(last.take(&store, &ada, end).await, Err(NonceError::Used), "{made}");
            assert!(proved(&key, 1, made, made + 61).is_err(), "{made}");
            let late = made + 61 + 16;
            assert!(
                proved(&key, 2, late, late).unwrap().take(&store, &ada, at(late)).await.is_ok(),
                "{made}"
            );
        }
    }

    #[tokio::test]
    async fn one_holder_of_many_keys_leaves_room_for_the_others() {
        let (store, eve, ada) = (MemoryNonces::new(100).limit_per_caller(3), holder("eve"), holder("ada"));
        let take =
            async |who| proved(&key(), 1, NOW, NOW).unwrap().take(&store, who, at(NOW)).await.map(drop);
        for _ in 0..3 {
            assert_eq!(take(&eve).await, Ok(()));
        }
        assert_eq!(take(&eve).await, Err(NonceError::Full), "and not waved through");
        assert_eq!(take(&ada).await, Ok(()));
    }
}
