use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{Params, RawJson, Version};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const OTHER: &[u8] = b"another secret, also long enough";

fn ring(secrets: &[&[u8]]) -> KeyRing {
    KeyRing::new(secrets).unwrap()
}

fn params(text: &str) -> Params {
    Params::trusted(Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn a_rotated_key_still_opens_but_no_longer_seals() {
    let old = ring(&[SECRET]).seal([1; 24], "s", Version::LATEST, b"x");
    let rotated = ring(&[OTHER, SECRET]);
    assert_eq!(rotated.open(&old, "s", Version::LATEST).unwrap().plain, b"x");
    let new = rotated.seal([2; 24], "s", Version::LATEST, b"x");
    assert_eq!(ring(&[SECRET]).open(&new, "s", Version::LATEST), Err(Unsealable::UnknownKey));
}

#[test]
fn secrets_must_be_long_and_present() {
    assert_eq!(KeyRing::new([b"short"]).unwrap_err(), KeyError::TooShort { bytes: 5 });
    assert_eq!(KeyRing::new(Vec::<Vec<u8>>::new()).unwrap_err(), KeyError::NoSecret);
}

#[test]
fn a_state_is_for_one_server_and_version() {
    let sealed = ring(&[SECRET]).seal([1; 24], "s", Version::V2026_07_28, b"x");
    assert_eq!(ring(&[SECRET]).open(&sealed, "t", Version::V2026_07_28), Err(Unsealable::Forged));
    assert_eq!(ring(&[SECRET]).open(&sealed, "s", Version::V2025_11_25), Err(Unsealable::Forged));
}

#[test]
fn what_we_did_not_make_is_refused() {
    for (token, reason) in [
        ("", Unsealable::Malformed),
        ("AAAA", Unsealable::Malformed),
        ("not base64!", Unsealable::Malformed),
        (&"A".repeat(MAX_SEALED_BYTES + 1), Unsealable::TooLong),
        (&"A".repeat(100), Unsealable::Malformed),
    ] {
        assert_eq!(ring(&[SECRET]).open(token, "s", Version::LATEST), Err(reason));
    }
}

#[test]
fn the_binding_covers_the_request_and_the_caller() {
    let bind = |text: &str, who| Binding::of("tools/call", &params(text), who).unwrap();
    let base = bind(r#"{"name":"a","arguments":{"x":1,"y":2}}"#, None);
    for same in [
        r#"{"arguments":{"y":2,"x":1.0},"name":"a"}"#,
        r#"{"name":"a","arguments":{"x":1,"y":2},"_meta":{"k":1},"inputResponses":{},"requestState":"s"}"#,
    ] {
        assert_eq!(bind(same, None), base, "{same}");
    }
    assert_ne!(bind(r#"{"name":"b","arguments":{"x":1,"y":2}}"#, None), base);
    assert_ne!(bind(r#"{"name":"a","arguments":{"x":1,"y":3}}"#, None), base);
    assert_ne!(bind(r#"{"name":"a","arguments":{"x":1,"y":2}}"#, Some(&[0; 32])), base);
    let (one, other) = (bind("{}", Some(&[1; 32])), bind("{}", Some(&[2; 32])));
    assert_ne!(one, other);
    let arguments = params(r#"{"name":"a","arguments":{"x":1,"y":2}}"#);
    assert_ne!(Binding::of("prompts/get", &arguments, None).unwrap(), base);
    // A handler can take these for different numbers, although a `Value` cannot.
    let large =
        |digit| bind(&format!(r#"{{"name":"a","arguments":{{"x":1844674407370955161{digit}}}}}"#), None);
    assert_ne!(large(7), large(8));
}

#[test]
fn parameters_that_cannot_be_decoded_have_no_binding() {
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for text in
        [r#"{"name":"a","x":1e999}"#, r#"{"x":"\ud800"}"#, r#"{"name":"a","name":"b"}"#, "[]", "7", "", &deep]
    {
        let refused = Binding::of("tools/call", &params(text), None).unwrap_err();
        assert_eq!(refused.code, crate::ErrorCode::INVALID_PARAMS, "{text}");
    }
}

#[test]
fn a_state_ends_and_belongs_to_its_request() {
    let binding = Binding::of("tools/call", &params("{}"), None).unwrap();
    let mut memory = Memory::default();
    memory.answers.insert("k".into(), RawJson::parse(r#"{"b": 1.50}"#).unwrap());
    let state = RequestState::new(&binding, 100, memory);
    let plain = state.to_plain().unwrap();
    assert_eq!(RequestState::from_plain(&plain, &binding, 99), Ok(state));
    assert_eq!(RequestState::from_plain(&plain, &binding, 100), Err(Unsealable::Expired));
    let other = Binding::of("tools/call", &params("{}"), Some(&[1; 32])).unwrap();
    assert_eq!(RequestState::from_plain(&plain, &other, 99), Err(Unsealable::Foreign));
    assert_eq!(RequestState::from_plain(b"{}", &binding, 99), Err(Unsealable::Malformed));
}

#[test]
fn the_next_run_keeps_answers_and_steps_and_asks_anew() {
    let raw = |text: &str| RawJson::parse(text).unwrap();
    let mut memory = Memory { round: 2, call: "c".into(), user: Some(raw("1")), ..Memory::default() };
    memory.asked.insert("k".into(), "digest".into());
    memory.answers.insert("k".into(), raw("true"));
    memory.steps.insert("s".into(), raw("7"));
    memory.asked_twice.insert("k".into());
    let next = memory.for_next_run();
    let left = Memory { round: 3, asked: [].into(), user: None, ..memory };
    assert_eq!(next, left);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_flipped_bit_is_noticed(plain: Vec<u8>, nonce: [u8; 24], at: prop::sample::Index, bit in 0..8_u8) {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let ring = ring(&[SECRET]);
        let sealed = ring.seal(nonce, "s", Version::LATEST, &plain);
        prop_assert_eq!(&ring.open(&sealed, "s", Version::LATEST).unwrap().plain, &plain);
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(ring.open(&BASE64_URL_SAFE_NO_PAD.encode(&bytes), "s", Version::LATEST).is_err());
    }

    #[test]
    fn no_token_panics(token: String) {
        let _ = ring(&[SECRET]).open(&token, "s", Version::LATEST);
    }
}

#[test]
fn a_sealed_state_has_at_most_16_kib() {
    let ring = KeyRing::new([[7; 32]]).unwrap();
    let open = |characters| ring.open(&"A".repeat(characters), "a", Version::V2026_07_28).map(|_| ());
    assert_eq!(open(16 * 1024), Err(Unsealable::Malformed));
    assert_eq!(open(16 * 1024 + 1), Err(Unsealable::TooLong));
}

#[test]
fn a_question_has_a_digest_of_its_own() {
    let digest = |text: &str| Memory::digest(&RawJson::parse(text).unwrap());
    assert_eq!(digest(r#"{"a":1}"#), digest(r#"{"a":1}"#));
    assert_ne!(digest(r#"{"a":1}"#), digest(r#"{"a":2}"#));
    assert_eq!(digest("1").len(), 16);
}

#[test]
fn an_idempotency_key_is_that_of_its_call_and_label() {
    let key = Memory::idempotency_key;
    assert_eq!(key("call", "pay"), key("call", "pay"));
    // The two cannot run into each other.
    let keys = [key("call", "pay"), key("call", "ship"), key("cal", "lpay"), key("", "callpay")];
    assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len());
}

#[test]
fn secrets_are_not_shown_and_reasons_are() {
    let ring = KeyRing::new([b"a secret that nobody may ever see"]).unwrap();
    assert_eq!(format!("{ring:?}"), "KeyRing(1 keys)");
    let short = KeyRing::new([b"short"]).unwrap_err().to_string();
    assert!(short.contains("at least 32 bytes") && short.contains("has 5"), "{short}");
    let reasons = [
        Unsealable::TooLong,
        Unsealable::Malformed,
        Unsealable::UnknownKey,
        Unsealable::Forged,
        Unsealable::Expired,
        Unsealable::Foreign,
        Unsealable::Replayed,
    ];
    let texts: std::collections::BTreeSet<String> = reasons.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), reasons.len());
    assert!(texts.iter().all(|text| text.starts_with("the state ")), "{texts:?}");
}
