//! Another implementation as a second opinion.

use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation, jwk::Jwk};
use proptest::prelude::*;
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};
use serde_json::{Map, Value, json};

use super::{super::*, EC, ED25519, RSA_PKCS1, private, verify};

const SHARED: [Algorithm; 4] = [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Rs256, Algorithm::Ps256];

fn name(algorithm: Algorithm) -> jsonwebtoken::Algorithm {
    algorithm.name().parse().unwrap()
}

fn their_key(algorithm: Algorithm) -> EncodingKey {
    let der = |pem: &str| PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap().secret_der().to_vec();
    match algorithm {
        Algorithm::Es256 | Algorithm::Es384 => EncodingKey::from_ec_der(&der(EC)),
        Algorithm::EdDsa => EncodingKey::from_ed_der(&der(ED25519)),
        Algorithm::Rs256 | Algorithm::Ps256 => EncodingKey::from_rsa_der(&der(RSA_PKCS1)),
    }
}

fn they_accept(key: &PublicKey, algorithm: Algorithm, token: &str) -> Option<Map<String, Value>> {
    let jwk: Jwk = serde_json::from_value(key.to_jwk()).unwrap();
    let mut validation = Validation::new(name(algorithm));
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    let key = DecodingKey::from_jwk(&jwk).unwrap();
    jsonwebtoken::decode::<Map<String, Value>>(token, &key, &validation).ok().map(|data| data.claims)
}

fn claims() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        proptest::collection::vec("[a-z]{0,8}", 0..4).prop_map(Value::from),
    ];
    proptest::collection::btree_map("[a-z]{1,6}", value, 0..6).prop_map(|claims| {
        Value::Object(claims.into_iter().map(|(name, value)| (format!("x_{name}"), value)).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_one_signs_the_other_accepts(claims in claims(), kid in any::<Option<String>>(), which in 0..SHARED.len()) {
        let algorithm = SHARED[which];
        let key = private(algorithm);
        let ours = key.sign("JWT", &claims).unwrap();
        prop_assert_eq!(they_accept(key.public_key(), algorithm, &ours).map(Value::Object), Some(claims.clone()));
        let header = Header { kid, ..Header::new(name(algorithm)) };
        let theirs = jsonwebtoken::encode(&header, &claims, &their_key(algorithm)).unwrap();
        let parsed = Compact::parse(&theirs).unwrap();
        prop_assert_eq!(parsed.header().kid(), header.kid.as_deref());
        prop_assert_eq!(key.public_key().verify(&parsed).unwrap().object().map(Value::Object), Ok(claims));
    }

    #[test]
    fn what_was_changed_is_refused(at in any::<prop::sample::Index>(), byte in any::<u8>(), which in 0..SHARED.len()) {
        let key = private(SHARED[which]);
        let token = key.sign("JWT", &json!({ "sub": "ada" })).unwrap();
        let mut changed = token.clone().into_bytes();
        changed[at.index(token.len())] = byte;
        if let Ok(changed) = String::from_utf8(changed) && changed != token {
            prop_assert!(verify(key.public_key(), &changed).is_err(), "{}", changed);
        }
    }

    #[test]
    fn whatever_comes_is_refused_without_a_panic(token in ".{0,200}", parts in proptest::collection::vec(any::<Vec<u8>>(), 3)) {
        let key = private(Algorithm::Es256);
        prop_assert!(verify(key.public_key(), &token).is_err());
        let parts: Vec<String> = parts.iter().map(encode).collect();
        prop_assert!(verify(key.public_key(), &parts.join(".")).is_err());
    }
}
