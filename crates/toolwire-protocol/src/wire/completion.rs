//! Completion of prompt arguments and template variables.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

use super::{
    Meta, ResultType,
    buffered::Buffered,
    macros::wire_struct,
    object::{Key, in_field},
};

wire_struct! {
    /// The parameters of `completion/complete`.
    pub struct CompleteRequestParams {
        /// Whose argument it is.
        reference as "ref": CompletionReference,
        /// The argument being typed.
        argument: CompletionArgument,
        /// What has been filled in already, since 2025-06-18.
        context?: CompletionContext,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The argument being typed.
    pub struct CompletionArgument worded {
        /// Its name.
        name: String,
        /// What has been typed so far.
        value: String,
    }
}

impl CompletionArgument {
    /// The argument of this name, for which nothing has been typed yet.
    pub fn of(name: impl Into<String>) -> Self {
        Self::new(name, "")
    }

    /// What has been typed so far.
    #[must_use]
    pub fn typed(mut self, value: impl Into<String>) -> Self {
        self.value = value.into();
        self
    }
}

wire_struct! {
    /// What has been filled in already.
    pub struct CompletionContext {
        /// The values of other arguments.
        arguments?: BTreeMap<String, String>,
    }
}

wire_struct! {
    /// Names a prompt.
    pub struct PromptReference tag "type" = "ref/prompt" {
        /// The name of the prompt.
        name: String,
        /// Its name for people, since 2025-06-18.
        title?: String,
    }
}

wire_struct! {
    /// Names a resource or a resource template; before 2025-06-18 it was called a resource reference.
    pub struct ResourceTemplateReference tag "type" = "ref/resource" {
        /// The URI or the URI template.
        uri: String,
    }
}

/// Whose argument is to be completed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CompletionReference {
    /// `ref/prompt`: an argument of a prompt.
    Prompt(PromptReference),
    /// `ref/resource`: a variable of a resource template.
    Resource(ResourceTemplateReference),
}

impl From<PromptReference> for CompletionReference {
    fn from(reference: PromptReference) -> Self {
        Self::Prompt(reference)
    }
}

impl From<ResourceTemplateReference> for CompletionReference {
    fn from(reference: ResourceTemplateReference) -> Self {
        Self::Resource(reference)
    }
}

impl Serialize for CompletionReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Prompt(reference) => reference.serialize(serializer),
            Self::Resource(reference) => reference.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CompletionReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReferenceVisitor)
    }
}

struct ReferenceVisitor;

impl<'de> Visitor<'de> for ReferenceVisitor {
    type Value = CompletionReference;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reference to a prompt or a resource template")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CompletionReference, A::Error> {
        let mut buffered = Buffered::default();
        while let Some(Key(key)) = map.next_key()? {
            if key != "type" {
                buffered.push(key, &mut map)?;
                continue;
            }
            let Key(kind) = map.next_value().map_err(|error| in_field("type", &error))?;
            return match &*kind {
                "ref/prompt" => buffered.finish(Some("type"), None, map).map(CompletionReference::Prompt),
                "ref/resource" => buffered.finish(Some("type"), None, map).map(CompletionReference::Resource),
                other => Err(A::Error::unknown_variant(other, &["ref/prompt", "ref/resource"])),
            };
        }
        Err(A::Error::missing_field("type"))
    }
}

wire_struct! {
    /// The result of `completion/complete`.
    pub struct CompleteResult {
        /// The suggestions.
        completion: Completion,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// Suggestions for an argument.
    pub struct Completion {
        /// The values, at most [`Completion::MAX_VALUES`].
        values: Vec<String>,
        /// How many there are altogether.
        total?: u64,
        /// Whether there are more than were sent.
        has_more as "hasMore"?: bool,
    }
}

impl Completion {
    /// The most values a result may carry.
    pub const MAX_VALUES: usize = 100;
}
