//! The `_meta` object and the keys the specification reserves in it.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::Value;

use super::{JsonObject, object};
use crate::{ProgressToken, RequestId};

/// Request: the token that progress notifications will carry.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// Modern request, required: the revision the request is written in.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Modern request, required: the [`ClientCapabilities`](super::ClientCapabilities).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Modern request: the client's [`Implementation`](super::Implementation).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Modern request: the least [`LoggingLevel`](super::LoggingLevel) the client wants to hear of.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Modern result: the server's [`Implementation`](super::Implementation).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Everything on a listen stream: the id of the `subscriptions/listen` request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Legacy: the [`RelatedTaskMetadata`](super::RelatedTaskMetadata) of a message that belongs to a task.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// W3C trace context: the parent span.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace context: vendor state.
pub const TRACESTATE: &str = "tracestate";
/// W3C baggage.
pub const BAGGAGE: &str = "baggage";

/// Metadata beside the members of a request, result, notification or other object.
///
/// Every key survives a round trip; the getters read the reserved ones.
///
/// ```
/// use toolwire_protocol::wire::{Meta, meta};
///
/// let meta = Meta::new().with(meta::PROGRESS_TOKEN, 7).with("com.example/tenant", "blue");
/// assert_eq!(meta.progress_token(), Some(7.into()));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta(JsonObject);

impl Meta {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value behind `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Sets the value behind `key` and returns what was there before.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(key.into(), value.into())
    }

    /// Sets the value behind `key`, as a step of a chain.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.insert(key, value);
        self
    }

    /// Takes the value behind `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key)
    }

    /// All entries, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decodes the value behind `key`; `None` when there is no such key.
    pub fn decode<T: DeserializeOwned>(&self, key: &str) -> Option<serde_json::Result<T>> {
        self.get(key).map(T::deserialize)
    }

    /// Encodes `value` and puts it behind `key`.
    pub fn encode<T: Serialize + ?Sized>(
        &mut self,
        key: impl Into<String>,
        value: &T,
    ) -> serde_json::Result<()> {
        self.0.insert(key.into(), serde_json::to_value(value)?);
        Ok(())
    }

    /// The [`PROGRESS_TOKEN`], if it is a string or a whole number.
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.decode(PROGRESS_TOKEN)?.ok()
    }

    /// Sets the [`PROGRESS_TOKEN`].
    pub fn set_progress_token(&mut self, token: &ProgressToken) {
        self.insert(PROGRESS_TOKEN, id_value(token));
    }

    /// The [`SUBSCRIPTION_ID`], if it is a string or a whole number.
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.decode(SUBSCRIPTION_ID)?.ok()
    }

    /// Sets the [`SUBSCRIPTION_ID`], in the JSON type of the listen request's id.
    pub fn set_subscription_id(&mut self, id: &RequestId) {
        self.insert(SUBSCRIPTION_ID, id_value(id));
    }

    /// The [`PROTOCOL_VERSION`], if it is a string.
    pub fn protocol_version(&self) -> Option<&str> {
        self.get(PROTOCOL_VERSION)?.as_str()
    }

    /// The entries as a plain JSON object.
    pub const fn as_object(&self) -> &JsonObject {
        &self.0
    }

    /// The entries as a plain JSON object.
    pub fn into_object(self) -> JsonObject {
        self.0
    }
}

fn id_value(id: &RequestId) -> Value {
    match id {
        RequestId::Num(number) => Value::from(*number),
        RequestId::Str(text) => Value::from(&**text),
    }
}

impl From<JsonObject> for Meta {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetaVisitor)
    }
}

struct MetaVisitor;

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = Meta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Meta, A::Error> {
        let mut members = JsonObject::new();
        while let Some((key, value)) = map.next_entry()? {
            object::insert_new(&mut members, key, value)?;
        }
        Ok(Meta(members))
    }
}
