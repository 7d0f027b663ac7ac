//! From the address of a server to the endpoints of its issuer.

pub mod early;
pub mod issuer;
pub mod resource;

use serde_json::{Map, Value};

use super::{AuthError, AuthErrorKind, Step};
use crate::{
    Endpoint, InvalidText, Origins,
    fetch::{FetchError, FetchErrorKind},
};

pub use crate::metadata::MAX_METADATA_BYTES;
pub(crate) use crate::metadata::{object, well_known};

/// A member that is text, or absent; `Err` if it is anything else.
pub(crate) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("\"{name}\" is not a string")),
    }
}

/// A member that is a list of texts, or absent; `Err` if it is anything else.
pub(crate) fn texts<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<Vec<&'a str>>, String> {
    let wrong = || format!("\"{name}\" is not a list of strings");
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => {
            list.iter().map(|item| item.as_str().ok_or_else(wrong)).collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// A member that is `true` or `false`, or absent, which is `false`; `Err` if it is anything else.
pub(crate) fn flag(object: &Map<String, Value>, name: &str) -> Result<bool, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(_) => Err(format!("\"{name}\" is neither true nor false")),
    }
}

/// A member that is an endpoint, or absent.
fn endpoint(object: &Map<String, Value>, name: &str, trusted: &Origins) -> Result<Option<Endpoint>, String> {
    let wrong = |why: InvalidText| format!("\"{name}\" {why}");
    text(object, name)?.map(|text| Endpoint::parse_trusting(text, trusted).map_err(wrong)).transpose()
}

/// Why no answer came, as the failure of a step.
pub(crate) fn unreachable(error: &FetchError, step: Step, url: &Endpoint) -> AuthError {
    let kind = match error.kind {
        FetchErrorKind::Forbidden | FetchErrorKind::TooLarge => AuthErrorKind::MetadataRefused,
        _ => AuthErrorKind::Unavailable,
    };
    AuthError::new(kind, step, error.detail.clone()).at(url)
}
