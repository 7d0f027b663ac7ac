//! `requestState`: what a client may bring back.

use std::time::Duration;

use serde_json::{Map, Value};
use toolwire_protocol::{
    Params, RawJson, Version,
    seal::{Binding, KeyRing, MAX_SEALED_BYTES, RequestState},
};

use crate::{cost::within, schema::halves};

const SECRET: &[u8] = b"a secret of at least thirty-two bytes";

/// Opens whatever comes, and binds two requests: what is bound alike is alike.
pub fn request_state(data: &[u8]) {
    let ring = KeyRing::new([SECRET]).expect("the secret is long enough");
    within(Duration::from_secs(1), "a state", || {
        if let Ok(token) = std::str::from_utf8(data) {
            assert!(ring.open(token, "fuzz", Version::LATEST).is_err(), "{token:?} was not sealed here");
        }
        let sealed = ring.seal([7; 24], "fuzz", Version::LATEST, data);
        if sealed.len() <= MAX_SEALED_BYTES {
            assert_eq!(ring.open(&sealed, "fuzz", Version::LATEST).expect("sealed here").plain, data);
            assert!(ring.open(&sealed, "other", Version::LATEST).is_err());
        }
        let binding = Binding::of("tools/call", &Params::NONE, None).expect("no parameters can be bound");
        let _ = RequestState::from_plain(data, &binding, 0);
        if let Some((one, other)) = halves(data) {
            bound_alike_is_alike(one, other);
        }
    });
}

fn bound_alike_is_alike(one: &[u8], other: &[u8]) {
    let params = |text: &[u8]| {
        let raw = RawJson::parse(std::str::from_utf8(text).ok()?).ok()?;
        Some(Params::from(raw))
    };
    let (Some(one), Some(other)) = (params(one), params(other)) else { return };
    let bind = |params: &Params| Binding::of("tools/call", params, Some(&[7; 32]));
    for params in [&one, &other] {
        assert_eq!(bind(params).is_ok(), params.text().trim_start().starts_with('{'), "{params:?}");
    }
    if let (Ok(first), Ok(second)) = (bind(&one), bind(&other))
        && first == second
    {
        assert_eq!(numbers_as_floats(&fixed(&one)), numbers_as_floats(&fixed(&other)), "{one:?} {other:?}");
    }
}

/// What is bound of the parameters.
fn fixed(params: &Params) -> Value {
    let mut members: Map<String, Value> = params.decode().expect("it was parsed");
    for changing in ["_meta", "inputResponses", "requestState"] {
        members.remove(changing);
    }
    Value::Object(members)
}

/// 1 and 1.0 are bound alike.
fn numbers_as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64()),
        Value::Array(items) => items.iter().map(numbers_as_floats).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, value)| (name.clone(), numbers_as_floats(value))).collect(),
        ),
        other => other.clone(),
    }
}
