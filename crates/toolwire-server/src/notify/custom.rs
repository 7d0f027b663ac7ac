//! Notifications of one's own.

use std::{collections::VecDeque, error::Error, fmt};

use bytes::Bytes;
use serde::Serialize;
use toolwire_protocol::{
    Method, MethodName, RawJson,
    envelope::write_notification,
    wire::{JsonObject, Meta},
};

/// How many notifications of its own a server keeps for one subscriber who has not read them yet. Further ones are not
/// kept for it.
pub(super) const WAITING: usize = 64;

/// How many bytes they may have together.
pub(super) const WAITING_BYTES: usize = 256 * 1024;

/// A notification that cannot be sent, whoever listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotifyError {
    /// The name is the protocol's, or could become one of it. Names of one's own begin with a vendor: `acme/step`.
    Reserved(String),
    /// The parameters are not an object, or cannot be serialised; says why.
    Params(String),
}

impl fmt::Display for NotifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved(name) => {
                write!(
                    f,
                    "{name:?} is a name of the protocol; begin with a name of your own, as in \"acme/step\""
                )
            }
            Self::Params(why) => write!(f, "the parameters of a notification must be an object: {why}"),
        }
    }
}

impl Error for NotifyError {}

/// A notification of one's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Custom {
    method: Box<str>,
    params: Box<str>,
}

impl Custom {
    pub(crate) fn new<P: Serialize + ?Sized>(method: &str, params: &P) -> Result<Self, NotifyError> {
        if Method::is_reserved(method) {
            return Err(NotifyError::Reserved(method.to_owned()));
        }
        let params = RawJson::of(params).map_err(|error| NotifyError::Params(error.to_string()))?;
        // Checked as a peer would check it, so that nobody is sent what it has to refuse.
        let params = RawJson::parse(params.text()).map_err(|error| NotifyError::Params(error.to_string()))?;
        if !params.text().starts_with('{') {
            return Err(NotifyError::Params(format!("found {}", kind(params.text()))));
        }
        Ok(Self { method: method.into(), params: params.text().into() })
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    fn bytes(&self) -> usize {
        self.method.len() + self.params.len()
    }

    /// The message. What `meta` has is added to the `_meta` of the parameters, and wins.
    pub(crate) fn message(&self, meta: Option<Meta>) -> serde_json::Result<Bytes> {
        let mut params: JsonObject = serde_json::from_str(&self.params)?;
        if let Some(meta) = meta {
            let added: JsonObject = serde_json::from_value(serde_json::to_value(meta)?)?;
            let own = params.entry("_meta").or_insert_with(|| JsonObject::new().into());
            match own {
                serde_json::Value::Object(own) => own.extend(added),
                other => *other = added.into(),
            }
        }
        write_notification(&MethodName::from(&*self.method), &params)
    }
}

fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        _ => "a number",
    }
}

/// What waits for one subscriber, in order.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: VecDeque<Custom>,
    bytes: usize,
}

impl Waiting {
    /// Says whether there was room.
    pub(super) fn push(&mut self, custom: &Custom) -> bool {
        let bytes = self.bytes + custom.bytes();
        let room = self.queue.len() < WAITING && bytes <= WAITING_BYTES;
        if room {
            self.bytes = bytes;
            self.queue.push_back(custom.clone());
        }
        room
    }

    pub(super) fn pop(&mut self) -> Option<Custom> {
        let custom = self.queue.pop_front()?;
        self.bytes -= custom.bytes();
        Some(custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_the_protocol_are_refused() {
        for name in [
            "notifications/message",
            "notifications/acme",
            "tools/call",
            "tools/x",
            "ping",
            "step",
            "rpc.x/y",
            "/x",
            "acme/",
            "",
        ] {
            assert_eq!(Custom::new(name, &json!({})), Err(NotifyError::Reserved(name.to_owned())));
        }
        assert!(Custom::new("acme/step", &json!({})).is_ok());
        assert!(Custom::new("com.acme/step/done", &json!({})).is_ok());
    }

    #[test]
    fn parameters_are_an_object() {
        for (params, found) in [(json!([1]), "an array"), (json!(null), "null"), (json!("x"), "a string")] {
            let error = Custom::new("acme/step", &params).unwrap_err().to_string();
            assert!(error.ends_with(found), "{error}");
        }
        let twice = RawJson::of(&Twice).unwrap();
        assert!(Custom::new("acme/step", &twice).is_err(), "two members of one name");
    }

    struct Twice;

    impl Serialize for Twice {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeMap;
            let mut map = serializer.serialize_map(Some(2))?;
            map.serialize_entry("a", &1)?;
            map.serialize_entry("a", &2)?;
            map.end()
        }
    }

    #[test]
    fn what_waits_is_bounded_by_number_and_by_bytes() {
        let mut waiting = Waiting::default();
        let small = Custom::new("acme/step", &json!({})).unwrap();
        assert_eq!((0..1000).filter(|_| waiting.push(&small)).count(), WAITING);
        let mut waiting = Waiting::default();
        let large = Custom::new("acme/step", &json!({"text": "x".repeat(WAITING_BYTES / 4)})).unwrap();
        assert_eq!((0..1000).filter(|_| waiting.push(&large)).count(), 3);
        assert!(waiting.pop().is_some() && waiting.push(&large));
        while waiting.pop().is_some() {}
        assert_eq!(waiting.bytes, 0);
    }
}
