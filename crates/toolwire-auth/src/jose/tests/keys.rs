//! Private keys in their forms.

use serde_json::{Value, json};

use super::{super::*, EC, RSA, RSA_PKCS1, private, verify};

#[test]
fn every_algorithm_signs_what_it_can_check() {
    for algorithm in Algorithm::ALL {
        let key = private(algorithm);
        assert_eq!(key.algorithm(), algorithm);
        let token = key.sign("at+jwt", &json!({ "sub": "ada" })).unwrap();
        let parsed = Compact::parse(&token).unwrap();
        assert!(parsed.header().is_type("at+jwt"));
        assert_eq!(key.public_key().verify(&parsed).unwrap().object().unwrap()["sub"], "ada", "{algorithm}");
    }
}

#[test]
fn rsa_keys_may_be_in_pkcs_1() {
    let (one, other) = (PrivateKey::pem(RSA, Algorithm::Ps256), PrivateKey::pem(RSA_PKCS1, Algorithm::Rs256));
    assert_eq!(one.unwrap().public_key().to_jwk(), other.unwrap().public_key().to_jwk());
}

#[test]
fn other_forms_are_refused_with_the_command_that_converts_them() {
    let refused = |pem: &str| PrivateKey::pem(pem, Algorithm::Es256).unwrap_err().to_string();
    let sec1 = refused(include_str!("keys/ec-sec1.pem"));
    assert!(sec1.contains("openssl pkcs8 -topk8 -nocrypt"), "{sec1}");
    for encrypted in [include_str!("keys/ec-encrypted.pem"), include_str!("keys/rsa-encrypted.pem")] {
        assert!(refused(encrypted).contains("openssl pkey"), "{encrypted}");
    }
    for text in ["", "a password", include_str!("keys/certificate.pem")] {
        assert!(refused(text).contains("BEGIN PRIVATE KEY"), "{text}");
    }
    for rsa in [RSA, RSA_PKCS1] {
        assert!(refused(rsa).starts_with("the private key is not one for ES256: "));
    }
}

#[test]
fn rsa_of_1024_bits_does_not_sign() {
    let error = PrivateKey::pem(include_str!("keys/rsa-1024.pem"), Algorithm::Rs256).unwrap_err();
    assert!(error.to_string().starts_with("the private key is not one for RS256: "), "{error}");
}

#[test]
fn a_key_that_was_made_can_be_kept() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa] {
        let kept = PrivateKey::generate_pkcs8(algorithm).unwrap();
        let (one, other) = (PrivateKey::pkcs8(&kept, algorithm), PrivateKey::pkcs8(&kept, algorithm));
        let token = one.unwrap().sign("JWT", &json!({})).unwrap();
        assert!(verify(other.unwrap().public_key(), &token).is_ok());
    }
    let error = PrivateKey::generate(Algorithm::Rs256).unwrap_err();
    assert!(error.to_string().contains("openssl genpkey"));
}

#[test]
fn names_and_certificates_are_in_the_header() {
    let certificate = include_str!("keys/certificate.pem");
    let key = PrivateKey::pem(EC, Algorithm::Es256).unwrap().kid("now").certificate(certificate).unwrap();
    let token = key.sign("JWT", &json!({})).unwrap();
    let header: Value = serde_json::from_slice(&decode(token.split('.').next().unwrap()).unwrap()).unwrap();
    let digest = "825A2636D371CC1502C87E925E6BD9E6340F6FF256616307B6F8275C9D5277F8";
    let digest: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&digest[2 * at..2 * at + 2], 16).unwrap()).collect();
    assert_eq!(header, json!({ "alg": "ES256", "typ": "JWT", "kid": "now", "x5t#S256": encode(digest) }));
    assert!(key.certificate(EC).is_err());
}

#[test]
fn claims_are_an_object() {
    let key = private(Algorithm::Es256);
    assert_eq!(key.sign("JWT", &[1]).unwrap_err().to_string(), "the claims are not an object");
}

#[test]
fn nothing_of_a_key_is_shown() {
    let key = private(Algorithm::EdDsa).kid("now");
    assert_eq!(
        format!("{key:?}"),
        r#"PrivateKey { algorithm: EdDsa, public: PublicKey { kind: "Ed25519", kid: Some("now"), .. }, .. }"#
    );
}
