//! How a client writes its requests.
//!
//! A legacy request is its parameters and nothing else: who is calling was settled by `initialize`. A modern
//! one says so every time, in `_meta`. What is the same in all requests of a connection is serialised once,
//! in [`RequestEnvelope`], and copied behind the parameters of each.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use memchr::memchr2_iter;
use serde::{
    Deserializer as _, Serialize,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    MethodName, ProgressToken, RequestId, Version,
    wire::{
        ClientCapabilities, Implementation, LoggingLevel, Meta,
        meta::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION},
    },
};

/// What all requests of one connection have in common.
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::{Method, Version, codec::{RequestEnvelope, RequestMeta}};
///
/// let legacy = RequestEnvelope::legacy(Version::V2025_11_25);
/// let meta = RequestMeta { progress_token: Some(&7.into()), ..RequestMeta::default() };
/// let request = legacy.write(&7.into(), &Method::ListTools.into(), &json!({}), &meta).unwrap();
/// assert_eq!(
///     request,
///     r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"progressToken":7}}}"#
/// );
/// ```
#[derive(Clone, Debug)]
pub struct RequestEnvelope {
    version: Version,
    /// The members of `_meta` that every request carries, separated by commas, without the braces.
    common: Arc<[u8]>,
}

/// What one request says in `_meta` beside what all of them say.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it is a list of arguments with names")]
pub struct RequestMeta<'a> {
    /// Asks for progress, under this token.
    pub progress_token: Option<&'a ProgressToken>,
    /// Asks for log messages of at least this level. Legacy requests have no such key, so they leave it out.
    pub log_level: Option<LoggingLevel>,
    /// The caller's own entries. Keys of the protocol among them give way to what the envelope says.
    pub own: Option<&'a Meta>,
}

impl RequestEnvelope {
    /// Requests of a legacy revision.
    pub fn legacy(version: Version) -> Self {
        Self { version, common: Arc::default() }
    }

    /// Requests of a modern revision, which say each time who is calling and what it can do.
    ///
    /// # Errors
    /// When one of the two cannot be serialised.
    pub fn modern(
        version: Version,
        client: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> serde_json::Result<Self> {
        let mut common = Vec::new();
        let mut members = Members { first: true, out: &mut common };
        members.add(PROTOCOL_VERSION, &version)?;
        members.add(CLIENT_INFO, client)?;
        members.add(CLIENT_CAPABILITIES, capabilities)?;
        Ok(Self { version, common: common.into() })
    }

    /// The revision that the requests are written in.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Writes a request. Parameters that serialise to `null` count as none.
    ///
    /// # Errors
    /// When `params` cannot be serialised, or are neither an object nor `null`.
    pub fn write<P: Serialize + ?Sized>(
        &self,
        id: &RequestId,
        method: &MethodName,
        params: &P,
        meta: &RequestMeta<'_>,
    ) -> serde_json::Result<Bytes> {
        let mut out = Vec::with_capacity(TYPICAL_BYTES + self.common.len());
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        serde_json::to_writer(&mut out, id)?;
        out.extend_from_slice(br#","method":"#);
        serde_json::to_writer(&mut out, method.as_str())?;
        out.extend_from_slice(br#","params":"#);
        self.write_params(&mut out, params, meta)?;
        out.push(b'}');
        Ok(out.into())
    }

    /// Appends the parameters to `out` and the metadata to the parameters, without moving a byte twice.
    fn write_params<P: Serialize + ?Sized>(
        &self,
        out: &mut Vec<u8>,
        params: &P,
        meta: &RequestMeta<'_>,
    ) -> serde_json::Result<()> {
        let start = out.len();
        serde_json::to_writer(&mut *out, params)?;
        let written = out.get(start..).unwrap_or_default();
        if written == b"null" {
            out.truncate(start);
            out.extend_from_slice(b"{}");
        } else if written.first() != Some(&b'{') {
            return Err(serde_json::Error::custom("the parameters of a request must be a JSON object"));
        } else if may_have_meta(written) {
            let written = out.split_off(start);
            return self.merge(out, &written, meta);
        }
        out.pop();
        let first = out.last() == Some(&b'{');
        self.write_meta(out, first, meta, None)?;
        out.push(b'}');
        Ok(())
    }

    /// Writes `params` again, with its own `_meta` and ours made one.
    fn merge(&self, out: &mut Vec<u8>, params: &[u8], meta: &RequestMeta<'_>) -> serde_json::Result<()> {
        let (rest, own) = serde_json::Deserializer::from_slice(params).deserialize_map(SplitVisitor)?;
        out.push(b'{');
        let mut members = Members { first: true, out };
        for (key, value) in rest {
            members.add(&key, value)?;
        }
        let Members { first, out } = members;
        self.write_meta(out, first, meta, own.as_ref())?;
        out.push(b'}');
        Ok(())
    }

    /// Writes the member `_meta`, unless it would be empty: what is ours, then the entries that the parameters
    /// brought, then those of the caller.
    fn write_meta(
        &self,
        out: &mut Vec<u8>,
        first: bool,
        meta: &RequestMeta<'_>,
        in_params: Option<&Meta>,
    ) -> serde_json::Result<()> {
        let before = out.len();
        out.extend_from_slice(if first { br#""_meta":{"# } else { br#","_meta":{"# });
        let start = out.len();
        out.extend_from_slice(&self.common);
        let mut members = Members { first: self.common.is_empty(), out };
        self.add_entries(&mut members, meta, in_params)?;
        if out.len() == start {
            out.truncate(before);
        } else {
            out.push(b'}');
        }
        Ok(())
    }

    fn add_entries(
        &self,
        members: &mut Members<'_>,
        meta: &RequestMeta<'_>,
        in_params: Option<&Meta>,
    ) -> serde_json::Result<()> {
        let modern = self.version.is_modern();
        if let Some(token) = meta.progress_token {
            members.add(PROGRESS_TOKEN, token)?;
        }
        if let Some(level) = meta.log_level.filter(|_| modern) {
            members.add(LOG_LEVEL, &level)?;
        }
        let taken = |key: &str| match key {
            PROTOCOL_VERSION | CLIENT_CAPABILITIES | CLIENT_INFO => modern,
            PROGRESS_TOKEN => meta.progress_token.is_some(),
            LOG_LEVEL => modern && meta.log_level.is_some(),
            _ => false,
        };
        for (key, value) in in_params.into_iter().flat_map(Meta::iter) {
            if !taken(key) && meta.own.is_none_or(|own| own.get(key).is_none()) {
                members.add(key, value)?;
            }
        }
        for (key, value) in meta.own.into_iter().flat_map(Meta::iter).filter(|(key, _)| !taken(key)) {
            members.add(key, value)?;
        }
        Ok(())
    }
}

/// Whether some object in this text may have a member `_meta`. Being wrong costs time, not correctness.
fn may_have_meta(text: &[u8]) -> bool {
    memchr2_iter(b'_', b'\\', text).any(|at| {
        let rest = text.get(at..).unwrap_or_default();
        // The name can also hide behind an escape, in parameters that are passed on as they came.
        rest.starts_with(b"_meta\"") || rest.starts_with(b"\\u00")
    })
}

/// Writes members of a JSON object, with commas between them.
struct Members<'a> {
    first: bool,
    out: &'a mut Vec<u8>,
}

impl Members<'_> {
    fn add<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> serde_json::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        serde_json::to_writer(&mut *self.out, key)?;
        self.out.push(b':');
        serde_json::to_writer(&mut *self.out, value)
    }
}

/// Takes `_meta` out of an object and keeps the other members as they stand.
struct SplitVisitor;

impl<'de> Visitor<'de> for SplitVisitor {
    type Value = (Vec<(String, &'de RawValue)>, Option<Meta>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut rest = Vec::new();
        let mut meta = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "_meta" {
                rest.push((key, map.next_value()?));
            } else if meta.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field("_meta"));
            }
        }
        Ok((rest, meta))
    }
}

/// A small call without its metadata, so that most messages are allocated once.
const TYPICAL_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use memchr::memmem;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Message, Method};

    fn modern() -> RequestEnvelope {
        let client = Implementation::new("c", "1");
        RequestEnvelope::modern(Version::LATEST, &client, &ClientCapabilities::new()).unwrap()
    }

    fn params(envelope: &RequestEnvelope, params: &Value, meta: &RequestMeta<'_>) -> Value {
        let bytes = envelope.write(&1.into(), &Method::CallTool.into(), params, meta).unwrap();
        let Ok(Message::Request(request)) = Message::parse(&bytes) else { panic!("{bytes:?}") };
        assert_eq!(request.id, 1.into());
        assert_eq!(request.method.known(), Some(Method::CallTool));
        request.params.decode().unwrap()
    }

    fn common() -> Value {
        json!({
            PROTOCOL_VERSION: "2026-07-28",
            CLIENT_INFO: {"name": "c", "version": "1"},
            CLIENT_CAPABILITIES: {},
        })
    }

    #[test]
    fn legacy_parameters_stay_as_they_are() {
        let legacy = RequestEnvelope::legacy(Version::V2025_06_18);
        for written in [json!({}), json!({"name": "a"}), json!({"_meta": {"x": 1}, "name": "a"})] {
            assert_eq!(params(&legacy, &written, &RequestMeta::default()), written);
        }
        assert_eq!(params(&legacy, &Value::Null, &RequestMeta::default()), json!({}));
        let level = RequestMeta { log_level: Some(LoggingLevel::Info), ..RequestMeta::default() };
        assert_eq!(params(&legacy, &json!({}), &level), json!({}), "legacy has no such key");
    }

    #[test]
    fn modern_parameters_always_carry_the_envelope() {
        for (written, rest) in
            [(Value::Null, json!({})), (json!({}), json!({})), (json!({"a": 1}), json!({"a": 1}))]
        {
            let mut expected = rest;
            expected["_meta"] = common();
            assert_eq!(params(&modern(), &written, &RequestMeta::default()), expected);
        }
    }

    #[test]
    fn own_entries_are_merged_and_those_of_the_protocol_win() {
        let own = Meta::new().with("own", 1).with("both", "call").with(PROTOCOL_VERSION, "2031-01-01");
        let token = "t".into();
        let meta = RequestMeta {
            progress_token: Some(&token),
            log_level: Some(LoggingLevel::Warning),
            own: Some(&own),
        };
        let written =
            json!({"z": 1, "_meta": {"theirs": [2], "both": "params", PROGRESS_TOKEN: 9, CLIENT_INFO: 3}});
        let mut expected = common();
        expected[PROGRESS_TOKEN] = json!("t");
        expected[LOG_LEVEL] = json!("warning");
        expected["own"] = json!(1);
        expected["both"] = json!("call");
        expected["theirs"] = json!([2]);
        assert_eq!(params(&modern(), &written, &meta), json!({"z": 1, "_meta": expected}));
    }

    #[test]
    fn a_name_behind_an_escape_is_found() {
        let raw = crate::RawJson::parse(r#"{"\u005fmeta":{"a":1}}"#).unwrap();
        let bytes = modern().write(&1.into(), &Method::Listen.into(), &raw, &RequestMeta::default()).unwrap();
        assert_eq!(memmem::find_iter(&bytes, b"meta\":").count(), 1, "{bytes:?}");
        assert!(memmem::find(&bytes, br#""a":1"#).is_some());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bad in [json!([]), json!(1), json!("x"), json!({"_meta": 3})] {
            assert!(modern().write(&1.into(), &"x".into(), &bad, &RequestMeta::default()).is_err(), "{bad}");
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[_a-z\u{1}\"]{0,6}|_meta", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_parameters_arrive_with_their_metadata(
            written in prop::collection::hash_map("[a-z\u{1}\"]{0,6}", json_value(), 0..5),
            own in prop::collection::hash_map("[a-z/]{1,6}", json_value(), 0..3),
        ) {
            let written: serde_json::Map<_, _> = written.into_iter().collect();
            let own = Meta::from(own.into_iter().collect::<serde_json::Map<_, _>>());
            let meta = RequestMeta { own: Some(&own), ..RequestMeta::default() };
            let mut expected = written.clone();
            let mut inner = common();
            inner.as_object_mut().unwrap().extend(own.as_object().clone());
            expected.insert("_meta".into(), inner);
            prop_assert_eq!(params(&modern(), &written.into(), &meta), Value::Object(expected));
        }
    }
}
