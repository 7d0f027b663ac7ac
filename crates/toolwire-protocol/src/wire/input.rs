//! Multi round-trip requests: the server answers with questions, the client asks again with answers.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};

use super::{
    CreateMessageRequestParams, ElicitRequestFormParams, ElicitRequestParams, ElicitRequestUrlParams, Keyed,
    Meta, RequestParams, ResultType, buffered::Buffered, macros::wire_struct,
};
use crate::RawJson;

/// The questions of a server, each under a key of the server's choice.
pub type InputRequests = Keyed<InputRequest>;

/// The answers of a client, each under the key of its question.
///
/// An answer is a bare [`ElicitResult`](super::ElicitResult),
/// [`CreateMessageResult`](super::CreateMessageResult) or [`ListRootsResult`](super::ListRootsResult); only
/// whoever asked knows which, so it stays text until then.
pub type InputResponses = Keyed<RawJson>;

wire_struct! {
    /// The result that asks for input before the request can be completed, since 2026-07-28.
    ///
    /// At least one of the two members is present. State alone means: try again later.
    pub struct InputRequiredResult {
        /// The questions.
        input_requests as "inputRequests"?: InputRequests,
        /// What the client has to return as it is.
        request_state as "requestState"?: String,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

/// One question of a server: a method and its parameters, without the JSON-RPC envelope.
///
/// Members beside these two mean nothing here and are dropped.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputRequest {
    /// `elicitation/create`: ask the person.
    Elicit(ElicitRequestParams),
    /// `sampling/createMessage`: ask the model.
    CreateMessage(Box<CreateMessageRequestParams>),
    /// `roots/list`: list the roots.
    ListRoots(Option<RequestParams>),
}

impl InputRequest {
    const METHODS: &'static [&'static str] = &["elicitation/create", "sampling/createMessage", "roots/list"];

    /// The method.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Elicit(_) => "elicitation/create",
            Self::CreateMessage(_) => "sampling/createMessage",
            Self::ListRoots(_) => "roots/list",
        }
    }
}

impl From<ElicitRequestParams> for InputRequest {
    fn from(params: ElicitRequestParams) -> Self {
        Self::Elicit(params)
    }
}

impl From<ElicitRequestFormParams> for InputRequest {
    fn from(params: ElicitRequestFormParams) -> Self {
        Self::Elicit(params.into())
    }
}

impl From<ElicitRequestUrlParams> for InputRequest {
    fn from(params: ElicitRequestUrlParams) -> Self {
        Self::Elicit(params.into())
    }
}

impl From<CreateMessageRequestParams> for InputRequest {
    fn from(params: CreateMessageRequestParams) -> Self {
        Self::CreateMessage(Box::new(params))
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", self.method())?;
        match self {
            Self::Elicit(params) => map.serialize_entry("params", params)?,
            Self::CreateMessage(params) => map.serialize_entry("params", params)?,
            Self::ListRoots(Some(params)) => map.serialize_entry("params", params)?,
            Self::ListRoots(None) => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestVisitor)
    }
}

struct RequestVisitor;

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = InputRequest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an input request")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<InputRequest, A::Error> {
        let mut buffered = Buffered::collect(map)?;
        let method: String = buffered.take_as("method")?.ok_or_else(|| A::Error::missing_field("method"))?;
        let missing = || A::Error::missing_field("params");
        match method.as_str() {
            "elicitation/create" => buffered.take_as("params")?.map(InputRequest::Elicit).ok_or_else(missing),
            "sampling/createMessage" => {
                buffered.take_as("params")?.map(InputRequest::CreateMessage).ok_or_else(missing)
            }
            "roots/list" => buffered.take_as("params").map(InputRequest::ListRoots),
            other => Err(A::Error::unknown_variant(other, InputRequest::METHODS)),
        }
    }
}
