//! A shallow second pass over `params`: only what routing needs, nothing decoded twice.
//!
//! Wrong types are remembered, not thrown: which of them matters, and with which answer, is for the
//! ladder in [`classify`](crate::classify) to say.

use std::fmt;

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    Params, ProgressToken, Version,
    envelope::Text,
    wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION},
};

/// What routing needs to know of a message's parameters.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Peek {
    /// `_meta`
    pub meta: Option<MetaPeek>,
    /// `name`
    pub name: Option<Box<str>>,
    /// `uri`
    pub uri: Option<Box<str>>,
    /// `taskId`
    pub task_id: Option<Box<str>>,
    /// `cursor`; the empty string is a cursor too.
    pub cursor: Option<Box<str>>,
    /// `requestState`
    pub request_state: Option<Box<str>>,
    /// `arguments`, raw.
    pub arguments: Option<Bytes>,
    /// `inputResponses`, raw.
    pub input_responses: Option<Bytes>,
    /// The first member that does not have its type, or stands twice.
    pub fault: Option<PeekFault>,
}

/// What routing needs to know of `_meta`.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct MetaPeek {
    /// The whole object, raw.
    pub raw: Bytes,
    /// `io.modelcontextprotocol/protocolVersion`
    pub version: Option<VersionField>,
    /// `io.modelcontextprotocol/clientCapabilities`, raw.
    pub client_capabilities: Option<Bytes>,
    /// `io.modelcontextprotocol/clientInfo`, raw.
    pub client_info: Option<Bytes>,
    /// `io.modelcontextprotocol/logLevel`
    pub log_level: Option<Box<str>>,
    /// `progressToken`
    pub progress_token: Option<ProgressToken>,
    /// The first key that does not have its type, or stands twice.
    pub fault: Option<PeekFault>,
}

/// The version a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a version is known or it is not")]
pub enum VersionField {
    /// One of ours.
    Known(Version),
    /// Any other string.
    Unknown(Box<str>),
}

impl VersionField {
    /// Reads a version string.
    pub fn of(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Unknown(text.into()), Self::Known)
    }

    /// The version as it stood.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(version) => version.as_str(),
            Self::Unknown(text) => text,
        }
    }

    /// Whether it names a revision of the modern era.
    pub fn is_modern(&self) -> bool {
        matches!(self, Self::Known(version) if version.is_modern())
    }
}

/// A member of `params` or `_meta` that is not what it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekFault {
    /// Which member.
    pub member: &'static str,
    /// What it has to be, or `None` when it stands twice.
    pub expected: Option<&'static str>,
}

impl fmt::Display for PeekFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expected {
            Some(expected) => write!(f, "{:?} must be {expected}", self.member),
            None => write!(f, "{:?} stands twice", self.member),
        }
    }
}

impl Peek {
    /// Looks at `params`.
    pub fn of(params: &Params) -> Self {
        let Some(bytes) = params.bytes() else { return Self::default() };
        let mut peek = Self::default();
        let done = serde_json::Deserializer::from_slice(bytes)
            .deserialize_map(ParamsVisitor { bytes, peek: &mut peek });
        // The envelope has parsed these bytes already; only invalid UTF-8 inside a string is left.
        if done.is_err() && peek.fault.is_none() {
            peek.fault = Some(PeekFault { member: "params", expected: Some("valid UTF-8") });
        }
        peek
    }

    /// Whether `_meta` names a protocol version, which makes the request a modern one.
    pub fn version(&self) -> Option<&VersionField> {
        self.meta.as_ref()?.version.as_ref()
    }

    /// The progress token, if the caller wants progress.
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.meta.as_ref()?.progress_token.as_ref()
    }
}

/// Stores a value, and notes a second one or a wrong type.
fn put<T>(
    slot: &mut Option<T>,
    fault: &mut Option<PeekFault>,
    member: &'static str,
    expected: &'static str,
    value: Option<T>,
) {
    let problem = match (&slot, value) {
        (Some(_), _) => Some(None),
        (None, None) => Some(Some(expected)),
        (None, value) => {
            *slot = value;
            None
        }
    };
    if let (Some(expected), None) = (problem, &fault) {
        *fault = Some(PeekFault { member, expected });
    }
}

struct ParamsVisitor<'a> {
    bytes: &'a Bytes,
    peek: &'a mut Peek,
}

impl<'de> Visitor<'de> for ParamsVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { bytes, peek } = self;
        let fault = &mut peek.fault;
        while let Some(key) = map.next_key::<ParamsKey>()? {
            match key {
                ParamsKey::Meta => {
                    let meta = object(bytes, map.next_value()?).map(MetaPeek::of);
                    put(&mut peek.meta, fault, "_meta", "an object", meta);
                }
                ParamsKey::Name => put(&mut peek.name, fault, "name", "a string", string(map.next_value()?)),
                ParamsKey::Uri => put(&mut peek.uri, fault, "uri", "a string", string(map.next_value()?)),
                ParamsKey::TaskId => {
                    put(&mut peek.task_id, fault, "taskId", "a string", string(map.next_value()?));
                }
                ParamsKey::Cursor => {
                    if let Some(text) = nullable(map.next_value()?) {
                        put(&mut peek.cursor, fault, "cursor", "a string", string(text));
                    }
                }
                ParamsKey::RequestState => {
                    put(
                        &mut peek.request_state,
                        fault,
                        "requestState",
                        "a string",
                        string(map.next_value()?),
                    );
                }
                ParamsKey::Arguments => {
                    if let Some(raw) = nullable(map.next_value()?) {
                        put(&mut peek.arguments, fault, "arguments", "an object", object(bytes, raw));
                    }
                }
                ParamsKey::InputResponses => {
                    let responses = object(bytes, map.next_value()?);
                    put(&mut peek.input_responses, fault, "inputResponses", "an object", responses);
                }
                ParamsKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl MetaPeek {
    fn of(raw: Bytes) -> Self {
        let mut meta = Self::default();
        let visitor = MetaVisitor { bytes: &raw, meta: &mut meta };
        let done = serde_json::Deserializer::from_slice(&raw).deserialize_map(visitor);
        if done.is_err() && meta.fault.is_none() {
            meta.fault = Some(PeekFault { member: "_meta", expected: Some("valid UTF-8") });
        }
        meta.raw = raw;
        meta
    }
}

struct MetaVisitor<'a> {
    bytes: &'a Bytes,
    meta: &'a mut MetaPeek,
}

impl<'de> Visitor<'de> for MetaVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { bytes, meta } = self;
        let fault = &mut meta.fault;
        while let Some(key) = map.next_key::<MetaKey>()? {
            match key {
                MetaKey::Version => {
                    let version = text(map.next_value()?).as_deref().map(VersionField::of);
                    put(&mut meta.version, fault, PROTOCOL_VERSION, "a string", version);
                }
                MetaKey::Capabilities => {
                    let raw = object(bytes, map.next_value()?);
                    put(&mut meta.client_capabilities, fault, CLIENT_CAPABILITIES, "an object", raw);
                }
                MetaKey::Info => {
                    let raw = object(bytes, map.next_value()?);
                    put(&mut meta.client_info, fault, CLIENT_INFO, "an object", raw);
                }
                MetaKey::LogLevel => {
                    put(&mut meta.log_level, fault, LOG_LEVEL, "a string", string(map.next_value()?));
                }
                MetaKey::ProgressToken => {
                    if let Some(raw) = nullable(map.next_value()?) {
                        let token = serde_json::from_str(raw.get()).ok();
                        put(
                            &mut meta.progress_token,
                            fault,
                            PROGRESS_TOKEN,
                            "a string or a whole number",
                            token,
                        );
                    }
                }
                MetaKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

fn object(bytes: &Bytes, raw: &RawValue) -> Option<Bytes> {
    raw.get().starts_with('{').then(|| bytes.slice_ref(raw.get().as_bytes()))
}

fn nullable(raw: &RawValue) -> Option<&RawValue> {
    (raw.get() != "null").then_some(raw)
}

fn text(raw: &RawValue) -> Option<std::borrow::Cow<'_, str>> {
    Text::of(raw).0
}

fn string(raw: &RawValue) -> Option<Box<str>> {
    text(raw).map(Into::into)
}

/// A key enum that is read from its name, every other name being `Other`.
macro_rules! keys {
    ($name:ident { $($variant:ident = $text:expr),+ $(,)? }) => {
        enum $name { $($variant,)+ Other }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct KeyVisitor;
                impl Visitor<'_> for KeyVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a key")
                    }
                    fn visit_str<E>(self, key: &str) -> Result<$name, E> {
                        $( if key == $text { return Ok($name::$variant); } )+
                        Ok($name::Other)
                    }
                }
                deserializer.deserialize_str(KeyVisitor)
            }
        }
    };
}

keys!(ParamsKey {
    Meta = "_meta",
    Name = "name",
    Arguments = "arguments",
    Uri = "uri",
    Cursor = "cursor",
    TaskId = "taskId",
    RequestState = "requestState",
    InputResponses = "inputResponses",
});

keys!(MetaKey {
    Version = PROTOCOL_VERSION,
    Capabilities = CLIENT_CAPABILITIES,
    Info = CLIENT_INFO,
    LogLevel = LOG_LEVEL,
    ProgressToken = PROGRESS_TOKEN,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn peek(text: &str) -> Peek {
        Peek::of(&Params::trusted(Bytes::copy_from_slice(text.as_bytes())))
    }

    #[test]
    fn a_modern_call_is_seen_through() {
        let peek = peek(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientCapabilities":{"roots":{}},
                "io.modelcontextprotocol/clientInfo":{"name":"n","version":"v"},
                "io.modelcontextprotocol/logLevel":"info","progressToken":"t","other":1},
                "name":"ad\u0064","arguments":{"a":1},"requestState":"s","inputResponses":{}, "x":[]}"#,
        );
        assert_eq!(peek.fault, None);
        assert_eq!(peek.version(), Some(&VersionField::Known(Version::V2026_07_28)));
        assert_eq!(peek.progress_token(), Some(&"t".into()));
        assert_eq!(peek.name.as_deref(), Some("add"));
        assert_eq!(peek.arguments.as_deref(), Some(&br#"{"a":1}"#[..]));
        assert_eq!(peek.request_state.as_deref(), Some("s"));
        assert_eq!(peek.input_responses.as_deref(), Some(&b"{}"[..]));
        let meta = peek.meta.unwrap();
        assert_eq!(meta.client_capabilities.as_deref(), Some(&br#"{"roots":{}}"#[..]));
        assert_eq!(meta.log_level.as_deref(), Some("info"));
        assert_eq!(meta.fault, None);
    }

    #[test]
    fn wrong_types_and_doubles_are_remembered() {
        for (text, message) in [
            (r#"{"name":1}"#, "\"name\" must be a string"),
            (r#"{"name":"a","name":"b"}"#, "\"name\" stands twice"),
            (r#"{"arguments":[]}"#, "\"arguments\" must be an object"),
            (r#"{"_meta":7}"#, "\"_meta\" must be an object"),
            (r#"{"cursor":7}"#, "\"cursor\" must be a string"),
            (r#"{"uri":{}}"#, "\"uri\" must be a string"),
            (r#"{"requestState":null}"#, "\"requestState\" must be a string"),
            (r#"{"inputResponses":12345}"#, "\"inputResponses\" must be an object"),
        ] {
            assert_eq!(peek(text).fault.unwrap().to_string(), message, "{text}");
        }
        let meta = peek(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#).meta.unwrap();
        assert_eq!(meta.fault.unwrap().member, PROTOCOL_VERSION);
        let meta = peek(r#"{"_meta":{"progressToken":1.5}}"#).meta.unwrap();
        assert_eq!(meta.fault.unwrap().member, PROGRESS_TOKEN);
    }

    #[test]
    fn null_arguments_and_cursor_are_absent_and_an_empty_cursor_is_not() {
        let seen = peek(r#"{"arguments":null,"cursor":null}"#);
        assert!(seen.arguments.is_none() && seen.cursor.is_none() && seen.fault.is_none());
        assert_eq!(peek(r#"{"cursor":""}"#).cursor.as_deref(), Some(""));
    }
}
