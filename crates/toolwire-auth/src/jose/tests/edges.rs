//! Tokens that somebody has made up.

use serde_json::json;

use super::{super::*, changed, private, unsigned, verify};

/// The order of P-256, and that of Ed25519 (little-endian).
const N: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];
const L: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// A good token, and the same with another signature.
fn resigned(algorithm: Algorithm) -> (PublicKey, Vec<u8>, impl Fn(&[u8]) -> String) {
    let key = private(algorithm);
    let token = key.sign("at+jwt", &json!({ "sub": "ada" })).unwrap();
    assert!(verify(key.public_key(), &token).is_ok());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (signed, signature) = (signed.to_owned(), decode(signature).unwrap());
    (key.public_key().clone(), signature, move |signature| format!("{signed}.{}", encode(signature)))
}

#[test]
fn none_and_its_spellings_are_refused_before_any_key_is_looked_for() {
    for alg in ["none", "None", "NONE", "nOnE", "", "HS256", "HS512", "es256", "ES512", "RS512", "RS1", "dir"]
    {
        let token = unsigned(&format!(r#"{{"alg":"{alg}"}}"#), "{}");
        assert_eq!(Compact::parse(&token).unwrap_err(), JwsError::Algorithm, "{alg}");
    }
    assert_eq!(Compact::parse(&unsigned("{}", "{}")).unwrap_err(), JwsError::Algorithm);
    for alg in ["null", "0", r#"["ES256"]"#, "{}"] {
        let token = unsigned(&format!(r#"{{"alg":{alg}}}"#), "{}");
        assert_eq!(Compact::parse(&token).unwrap_err(), JwsError::Header, "{alg}");
    }
    let empty = format!("{}.{}.", encode(r#"{"alg":"ES256"}"#), encode("{}"));
    assert_eq!(Compact::parse(&empty).unwrap_err(), JwsError::Unsigned);
    let missing = empty.trim_end_matches('.');
    assert_eq!(Compact::parse(missing).unwrap_err(), JwsError::NotCompact);
}

#[test]
fn a_public_key_is_no_secret_of_a_symmetric_algorithm() {
    let rsa = private(Algorithm::Rs256);
    let secret = rsa.public_key().to_jwk()["n"].as_str().unwrap().to_owned();
    let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
    let token = jsonwebtoken::encode(&header, &json!({ "sub": "eve" }), &key).unwrap();
    assert_eq!(verify(rsa.public_key(), &token), Err(JwsError::Algorithm));
    let symmetric = r#"{"keys":[{"kty":"oct","k":"c2VjcmV0","alg":"HS256"}]}"#;
    assert!(KeySet::parse(symmetric).unwrap().is_empty(), "and there are no symmetric keys");
}

#[test]
fn the_type_of_a_key_decides_and_not_its_name() {
    let (ec, rsa) = (private(Algorithm::Es256).kid("k"), private(Algorithm::Rs256).kid("k"));
    let token = ec.sign("at+jwt", &json!({})).unwrap();
    let token = Compact::parse(&token).unwrap();
    assert_eq!(rsa.public_key().verify(&token), Err(JwsError::NoKey));
    assert_eq!(KeySet::of([rsa.public_key().clone()]).verify(&token), Err(JwsError::NoKey));
    assert!(KeySet::of([rsa.public_key().clone(), ec.public_key().clone()]).verify(&token).is_ok());
    // PS256 and RS256 have the same keys, and still are not the same.
    let signed = rsa.sign("at+jwt", &json!({})).unwrap();
    let (_, rest) = signed.split_once('.').unwrap();
    let other = format!("{}.{rest}", encode(r#"{"alg":"PS256","kid":"k"}"#));
    assert_eq!(verify(rsa.public_key(), &other), Err(JwsError::Signature));
}

#[test]
fn what_a_key_is_said_to_be_for_is_kept() {
    let key = private(Algorithm::Rs256);
    let token = key.sign("at+jwt", &json!({})).unwrap();
    let verdict = |changes: &[(&str, serde_json::Value)]| {
        verify(&PublicKey::parse(&changed(key.public_key(), changes)).unwrap(), &token).map(drop)
    };
    assert_eq!(
        verdict(&[("use", json!("sig")), ("alg", json!("RS256")), ("key_ops", json!(["verify"]))]),
        Ok(())
    );
    assert_eq!(verdict(&[("use", json!("enc"))]), Err(JwsError::NoKey));
    assert_eq!(verdict(&[("alg", json!("PS256"))]), Err(JwsError::NoKey));
    assert_eq!(verdict(&[("alg", json!("RSA-OAEP"))]), Err(JwsError::NoKey));
    assert_eq!(verdict(&[("key_ops", json!(["encrypt"]))]), Err(JwsError::NoKey));
}

#[test]
fn keys_that_a_token_brings_along_are_not_looked_at() {
    let (issuer, eve) = (private(Algorithm::Es256), PrivateKey::generate(Algorithm::Es256).unwrap());
    let token = eve.sign_with_key_inside("at+jwt", &json!({ "sub": "eve" })).unwrap();
    assert_eq!(verify(issuer.public_key(), &token), Err(JwsError::Signature));
    assert!(verify(eve.public_key(), &token).is_ok());
}

#[test]
fn the_name_of_a_key_is_bytes_and_nothing_else() {
    let key = private(Algorithm::Es256);
    for kid in ["../../etc/passwd", "' OR 1=1 --", "\u{0}", "a\r\nb", "\u{1F511}", ""] {
        let named = key.clone().kid(kid);
        let token = named.sign("at+jwt", &json!({})).unwrap();
        let token = Compact::parse(&token).unwrap();
        assert!(KeySet::of([named.public_key().clone()]).verify(&token).is_ok(), "{kid:?}");
        let other = key.clone().kid("other").public_key().clone();
        assert_eq!(KeySet::of([other, key.public_key().clone()]).verify(&token), Err(JwsError::NoKey));
    }
    let long = key.clone().kid("k".repeat(1 << 20)).sign("at+jwt", &json!({})).unwrap();
    assert_eq!(Compact::parse(&long).unwrap_err(), JwsError::TooLong);
    let number = unsigned(r#"{"alg":"ES256","kid":7}"#, "{}");
    assert_eq!(Compact::parse(&number).unwrap_err(), JwsError::Header);
}

#[test]
fn at_most_four_keys_are_tried_for_a_token_that_names_none() {
    let others = || (0..4).map(|_| PrivateKey::generate(Algorithm::Es256).unwrap().public_key().clone());
    let key = private(Algorithm::Es256);
    let token = key.sign("at+jwt", &json!({})).unwrap();
    let token = Compact::parse(&token).unwrap();
    let last = others().chain([key.public_key().clone()]);
    assert_eq!(KeySet::of(last).verify(&token), Err(JwsError::Signature));
    let fourth = others().skip(1).chain([key.public_key().clone()]);
    assert!(KeySet::of(fourth).verify(&token).is_ok());
}

#[test]
fn extensions_that_must_be_understood_are_refused() {
    for extension in [
        r#""crit":["exp"],"exp":1"#,
        r#""crit":[]"#,
        r#""crit":null"#,
        r#""b64":false"#,
        r#""crit":["b64"],"b64":false"#,
        r#""zip":"DEF""#,
        r#""enc":"A128GCM""#,
    ] {
        let token = unsigned(&format!(r#"{{"alg":"ES256",{extension}}}"#), "{}");
        assert_eq!(Compact::parse(&token).unwrap_err(), JwsError::Critical, "{extension}");
    }
}

#[test]
fn only_the_strict_compact_form_is_read() {
    let good = private(Algorithm::Es256).sign("at+jwt", &json!({ "a": 1 })).unwrap();
    assert!(Compact::parse(&good).is_ok());
    let (head, tail) = good.split_once('.').unwrap();
    for (token, error) in [
        (format!("{good}="), JwsError::Base64),
        (format!("{good} "), JwsError::Base64),
        (format!(" {good}"), JwsError::Base64),
        (format!("{head}\n.{tail}"), JwsError::Base64),
        (format!("{head}=.{tail}"), JwsError::Base64),
        (good.replacen('.', "..", 1), JwsError::NotCompact),
        (format!("{good}."), JwsError::NotCompact),
        (format!("{good}.a.b"), JwsError::Encrypted),
        (format!(r#"{{"payload":"","signatures":[{{"protected":"{head}"}}]}}"#), JwsError::NotCompact),
        (String::new(), JwsError::NotCompact),
        ("..".to_owned(), JwsError::Unsigned),
        (format!(".{tail}"), JwsError::Header),
        ("a".repeat(MAX_COMPACT_BYTES + 1), JwsError::TooLong),
        // The last character has bits that mean nothing, so that two texts are the same bytes.
        (format!("{}.{}.AB", encode(r#"{"alg":"ES256"}"#), encode("{}")), JwsError::Base64),
        ("\u{fe0f}.\u{fe0f}.\u{fe0f}".to_owned(), JwsError::Base64),
    ] {
        assert_eq!(Compact::parse(&token).unwrap_err(), error, "{token}");
    }
    for header in
        [r#"{"alg":"ES256","alg":"none"}"#, r#"{"alg":"ES256","\u0061lg":"none"}"#, "[]", "null", "{", ""]
    {
        assert_eq!(Compact::parse(&unsigned(header, "{}")).unwrap_err(), JwsError::Header, "{header}");
    }
}

#[test]
fn claims_that_two_readers_may_read_differently_are_refused() {
    // Signed by hand, since nothing here writes such claims.
    let key = private(Algorithm::EdDsa);
    for claims in [r#"{"aud":"a","aud":"b"}"#, r#"{"x":{"y":1,"y":2}}"#, r#"{"exp":1e999}"#, "[]", "1", ""] {
        let head = format!("{}.{}", encode(r#"{"alg":"EdDSA"}"#), encode(claims));
        let token = format!("{head}.{}", encode(key.signature(head.as_bytes()).unwrap()));
        let payload = verify(key.public_key(), &token).unwrap();
        assert_eq!(payload.object(), Err(JwsError::Payload), "{claims}");
    }
}

#[test]
fn signatures_over_p_256_out_of_range_are_refused() {
    let (key, good, token) = resigned(Algorithm::Es256);
    let (r, s) = good.split_at(32);
    let zero = [0; 32];
    let one = {
        let mut one = zero;
        one[31] = 1;
        one
    };
    let joined = |r: &[u8], s: &[u8]| [r, s].concat();
    for signature in [
        joined(&zero, &zero),
        joined(r, &zero),
        joined(&zero, s),
        joined(&N, s),
        joined(r, &N),
        joined(&N, &N),
        joined(&one, &one),
        joined(&[0xff; 32], s),
        joined(s, r),
        good[..63].to_vec(),
        joined(&good, &[0]),
        joined(&[0], &good),
        joined(&good, &good),
        // As DER, in which most libraries write them.
        [&[0x30, 0x44, 2, 32], r, &[2, 32], s].concat(),
        vec![0],
    ] {
        assert_eq!(verify(&key, &token(&signature)), Err(JwsError::Signature), "{signature:02x?}");
    }
}

#[test]
fn signatures_of_ed25519_out_of_range_are_refused() {
    let (key, good, token) = resigned(Algorithm::EdDsa);
    let (r, s) = good.split_at(32);
    let mut carry = 0;
    let shifted: Vec<u8> = s
        .iter()
        .zip(L)
        .map(|(one, other)| {
            let sum = u16::from(*one) + u16::from(other) + carry;
            carry = sum >> 8;
            sum.to_le_bytes()[0]
        })
        .collect();
    for signature in [
        [r, &shifted].concat(),
        vec![0; 64],
        [r, &[0; 32]].concat(),
        [&[0; 32], s].concat(),
        [s, r].concat(),
        good[..63].to_vec(),
        [&good[..], &[0]].concat(),
    ] {
        assert_eq!(verify(&key, &token(&signature)), Err(JwsError::Signature), "{signature:02x?}");
    }
}

#[test]
fn signatures_of_rsa_of_other_lengths_or_out_of_range_are_refused() {
    for algorithm in [Algorithm::Rs256, Algorithm::Ps256] {
        let (key, good, token) = resigned(algorithm);
        let modulus = decode(key.to_jwk()["n"].as_str().unwrap()).unwrap();
        for signature in [
            vec![0; 256],
            vec![0xff; 256],
            modulus,
            good[..255].to_vec(),
            [&[0], &good[..]].concat(),
            [&good[..], &[0]].concat(),
            vec![1],
        ] {
            assert_eq!(verify(&key, &token(&signature)), Err(JwsError::Signature), "{algorithm}");
        }
    }
}

#[test]
fn weak_and_strange_keys_are_refused() {
    let key = private(Algorithm::Rs256).public_key().clone();
    let refused =
        |changes: &[(&str, serde_json::Value)]| PublicKey::parse(&changed(&key, changes)).unwrap_err();
    let odd = |bytes: usize| encode([&vec![0xff; bytes - 1][..], &[1]].concat());
    assert_eq!(refused(&[("n", json!(odd(128)))]), JwkError::TooShort);
    assert_eq!(refused(&[("n", json!(encode([&[0; 128][..], &[0xff; 128]].concat())))]), JwkError::TooShort);
    assert_eq!(refused(&[("n", json!(odd(1025)))]), JwkError::TooLong);
    assert_eq!(refused(&[("n", json!(""))]), JwkError::TooShort);
    assert_eq!(refused(&[("n", json!(encode([0xfe; 256])))]), JwkError::Member("n"));
    for e in ["", "AA", "AQ", "Ag", "AQAA", "____________", "AQAB=", " AQAB"] {
        assert_eq!(refused(&[("e", json!(e))]), JwkError::Member("e"), "{e}");
    }
    assert_eq!(refused(&[("d", json!("AQAB"))]), JwkError::Private);
    assert_eq!(refused(&[("kty", json!("oct"))]), JwkError::UnknownKind);
    assert_eq!(refused(&[("kty", json!(1))]), JwkError::Member("kty"));
    assert_eq!(PublicKey::parse(r#"{"kty":"RSA","kty":"EC"}"#).unwrap_err(), JwkError::Malformed);
    let ec = private(Algorithm::Es256).public_key().clone();
    let refused =
        |changes: &[(&str, serde_json::Value)]| PublicKey::parse(&changed(&ec, changes)).unwrap_err();
    assert_eq!(refused(&[("crv", json!("secp256k1"))]), JwkError::UnknownKind);
    assert_eq!(refused(&[("crv", json!("P-384"))]), JwkError::Member("x"));
    assert_eq!(refused(&[("x", json!(encode([1; 33])))]), JwkError::Member("x"));
    assert_eq!(refused(&[("y", json!(encode([1; 31])))]), JwkError::Member("y"));
    assert_eq!(refused(&[("y", json!(null))]), JwkError::Member("y"));
}

#[test]
fn a_point_beside_its_curve_checks_nothing() {
    let key = private(Algorithm::Es256);
    let token = key.sign("at+jwt", &json!({})).unwrap();
    for (x, y) in [([0; 32], [0; 32]), ([1; 32], [2; 32]), ([0xff; 32], [0xff; 32])] {
        let changes = [("x", json!(encode(x))), ("y", json!(encode(y)))];
        let key = PublicKey::parse(&changed(key.public_key(), &changes)).unwrap();
        assert_eq!(verify(&key, &token), Err(JwsError::Signature));
    }
}

#[test]
fn leading_zeros_of_an_integer_do_not_count() {
    let key = private(Algorithm::Ps256);
    let jwk = key.public_key().to_jwk();
    let zero =
        |name: &str| json!(encode([&[0, 0][..], &decode(jwk[name].as_str().unwrap()).unwrap()].concat()));
    let zeros = PublicKey::parse(&changed(key.public_key(), &[("n", zero("n")), ("e", zero("e"))])).unwrap();
    assert!(verify(&zeros, &key.sign("at+jwt", &json!({})).unwrap()).is_ok());
    assert_eq!(zeros.thumbprint(), key.public_key().thumbprint());
}

#[test]
fn sets_skip_what_they_cannot_use_and_have_an_end() {
    let ec = private(Algorithm::Es256).public_key().to_jwk();
    let weak = json!({ "kty": "RSA", "n": encode([0xff; 128]), "e": "AQAB" });
    let strange = json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "AA" });
    let leaked = json!({ "kty": "OKP", "crv": "Ed25519", "x": encode([1; 32]), "d": encode([1; 32]) });
    let set = KeySet::parse(&json!({ "keys": [ec, weak, strange, leaked, {}] }).to_string()).unwrap();
    assert_eq!((set.keys().len(), set.skipped()), (1, 4));
    let of = |count: usize| KeySet::parse(&json!({ "keys": vec![&ec; count] }).to_string());
    assert_eq!(of(MAX_KEYS).unwrap().keys().len(), MAX_KEYS);
    assert_eq!(of(MAX_KEYS + 1).unwrap_err(), JwkError::Member("keys"));
    for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[1]}"#, r#"{"keys":[],"keys":[]}"#] {
        assert!(KeySet::parse(text).is_err(), "{text}");
    }
    let long = format!(r#"{{"keys":[],"x":"{}"}}"#, "x".repeat(MAX_KEY_SET_BYTES));
    assert_eq!(KeySet::parse(&long).unwrap_err(), JwkError::Malformed);
}

#[test]
fn types_are_compared_as_media_types() {
    let typed = |typ: &str| {
        let token = unsigned(&json!({ "alg": "ES256", "typ": typ }).to_string(), "{}");
        Compact::parse(&token).unwrap().header().is_type("at+jwt")
    };
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt", "Application/at+JWT"] {
        assert!(typed(typ), "{typ}");
    }
    for typ in ["", "JWT", "at+jwt ", "application/", "application/application/at+jwt", "text/at+jwt"] {
        assert!(!typed(typ), "{typ}");
    }
}
