//! Asking the person at the client: with a form, or by sending them to a URL.

mod schema;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

pub use self::schema::{
    BooleanSchema, EnumOption, LegacyTitledEnumSchema, NumberKind, NumberSchema, PrimitiveSchemaDefinition,
    RequestedSchema, StringFormat, StringSchema, TitledItems, TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema,
};
use super::{
    JsonObject, Meta, TaskMetadata,
    buffered::Buffered,
    macros::{wire_enum, wire_struct},
};

wire_struct! {
    /// The parameters of `elicitation/create` that ask for a form to be filled in.
    pub struct ElicitRequestFormParams {
        /// The mode; absent means a form too, as in 2025-06-18.
        mode?: ElicitFormMode,
        /// What to tell the person.
        message: String,
        /// The fields of the form.
        requested_schema as "requestedSchema": RequestedSchema,
        /// Asks for a task, in 2025-11-25 only.
        task?: TaskMetadata,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_enum! {
    /// The mode of a request that asks for a form.
    #[expect(clippy::exhaustive_enums, reason = "every other mode has parameters of its own")]
    pub enum ElicitFormMode {
        /// A form.
        Form = "form",
    }
}

wire_struct! {
    /// The parameters of `elicitation/create` that send the person to a URL, since 2025-11-25.
    pub struct ElicitRequestUrlParams tag "mode" = "url" {
        /// What to tell the person.
        message: String,
        /// Where to send them.
        url: String,
        /// What a later completion notification refers to: required in 2025-11-25, gone in 2026-07-28.
        elicitation_id as "elicitationId"?: String,
        /// Asks for a task, in 2025-11-25 only.
        task?: TaskMetadata,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

/// The parameters of `elicitation/create`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitRequestParams {
    /// A form to be filled in.
    Form(ElicitRequestFormParams),
    /// A URL to be visited.
    Url(ElicitRequestUrlParams),
}

impl ElicitRequestParams {
    /// What to tell the person.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(params) => &params.message,
            Self::Url(params) => &params.message,
        }
    }
}

impl From<ElicitRequestFormParams> for ElicitRequestParams {
    fn from(params: ElicitRequestFormParams) -> Self {
        Self::Form(params)
    }
}

impl From<ElicitRequestUrlParams> for ElicitRequestParams {
    fn from(params: ElicitRequestUrlParams) -> Self {
        Self::Url(params)
    }
}

impl Serialize for ElicitRequestParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Form(params) => params.serialize(serializer),
            Self::Url(params) => params.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitRequestParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = ElicitRequestParams;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of elicitation/create")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ElicitRequestParams, A::Error> {
        let mut buffered = Buffered::collect(map)?;
        match buffered.take_as::<String, _>("mode")?.as_deref() {
            None => buffered.into_typed().map(ElicitRequestParams::Form),
            Some("form") => buffered
                .into_typed::<ElicitRequestFormParams, _>()
                .map(|params| ElicitRequestParams::Form(params.mode(ElicitFormMode::Form))),
            Some("url") => buffered.into_typed().map(ElicitRequestParams::Url),
            Some(other) => Err(A::Error::custom(format_args!("field \"mode\": unknown mode {other:?}"))),
        }
    }
}

wire_struct! {
    /// The result of `elicitation/create`.
    pub struct ElicitResult {
        /// What the person did.
        action: ElicitAction,
        /// The filled-in form, when it was accepted.
        content?: JsonObject,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl ElicitResult {
    /// The person filled in the form.
    pub fn accept(content: JsonObject) -> Self {
        Self::new(ElicitAction::Accept).content(content)
    }

    /// The person said no.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// The person went away without an answer.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

wire_enum! {
    /// What a person did when asked.
    #[expect(clippy::exhaustive_enums, reason = "whoever asks must be told about a fourth answer")]
    pub enum ElicitAction {
        /// They agreed.
        Accept = "accept",
        /// They said no.
        Decline = "decline",
        /// They went away without an answer.
        Cancel = "cancel",
    }
}

wire_struct! {
    /// The parameters of `notifications/elicitation/complete`, in 2025-11-25 only.
    pub struct ElicitationCompleteNotificationParams {
        /// The elicitation that is done.
        elicitation_id as "elicitationId": String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The data of error -32042: the URLs to visit before trying again, in 2025-11-25 only.
    pub struct UrlElicitationRequiredData {
        /// The URLs.
        elicitations: Vec<ElicitRequestUrlParams>,
    }
}
