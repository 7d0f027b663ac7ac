//! Arguments that travel in headers.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value};
use toolwire_protocol::headers::{HeaderPlan, MAX_PLAN_HEADERS, MismatchReason, decode_value, encode_value};

use crate::{cost::within, schema::halves};

/// Compiles a plan, writes the headers of some arguments, and reads them back.
pub fn header_plan(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        assert_eq!(decode_value(&encode_value(text)).as_deref(), Ok(text));
        let _ = decode_value(text);
    }
    let (schema, arguments) = halves(data).unwrap_or((data, b"{}"));
    let Ok(schema) = serde_json::from_slice::<Map<String, Value>>(schema) else { return };
    let Ok(arguments) = serde_json::from_slice::<Map<String, Value>>(arguments) else { return };
    within(Duration::from_secs(1), "a plan", || match HeaderPlan::compile(&schema) {
        Ok(plan) => {
            assert!(plan.names().count() <= MAX_PLAN_HEADERS);
            let headers: BTreeMap<String, String> = plan.headers(&arguments).into_iter().collect();
            let checked = plan.check(&arguments, |name| headers.get(name).map(String::as_str));
            // What does not agree is an argument of a wrong type, which has no header, or a number beyond 53 bits.
            if let Err(mismatch) = &checked {
                let reasons = [MismatchReason::Missing, MismatchReason::OutOfRange];
                assert!(reasons.contains(&mismatch.reason), "{mismatch}");
            }
            if checked.is_ok() {
                for name in headers.keys() {
                    let without = plan.check(&arguments, |other| {
                        headers.get(other).filter(|_| other != name).map(String::as_str)
                    });
                    assert!(without.is_err(), "{name}");
                }
            }
        }
        Err(error) => assert!(error.to_string().len() < 50_000),
    });
}
