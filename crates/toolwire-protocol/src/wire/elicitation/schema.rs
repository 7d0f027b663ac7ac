//! The small subset of JSON Schema that a form is made of.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

use crate::wire::{
    JsonObject, Keyed, Number,
    buffered::Buffered,
    macros::{wire_enum, wire_struct},
};

wire_struct! {
    /// The fields of a form, in the order they are to be shown.
    pub struct RequestedSchema tag "type" = "object" {
        /// The dialect of JSON Schema.
        schema as "$schema"?: String,
        /// The fields.
        properties: Keyed<PrimitiveSchemaDefinition>,
        /// The names of those that must be filled in.
        required?: Vec<String>,
    }
}

wire_struct! {
    /// A field for text.
    pub struct StringSchema tag "type" = "string" {
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// The least number of characters.
        min_length as "minLength"?: u64,
        /// The most characters.
        max_length as "maxLength"?: u64,
        /// What kind of text.
        format?: StringFormat,
        /// What it holds at first, since 2025-11-25.
        default?: String,
    }
}

wire_enum! {
    /// What kind of text a field takes.
    pub open enum StringFormat {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A day.
        Date = "date",
        /// A day and a time.
        DateTime = "date-time",
    }
}

wire_struct! {
    /// A field for a number.
    pub struct NumberSchema {
        /// Whether it must be whole.
        kind as "type": NumberKind,
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// The least value.
        minimum?: Number,
        /// The greatest value.
        maximum?: Number,
        /// What it holds at first, since 2025-11-25.
        default?: Number,
    }
}

wire_enum! {
    /// Whether a number must be whole.
    #[expect(clippy::exhaustive_enums, reason = "JSON Schema has exactly these two")]
    pub enum NumberKind {
        /// Any number.
        Number = "number",
        /// A whole number.
        Integer = "integer",
    }
}

wire_struct! {
    /// A field for yes or no.
    pub struct BooleanSchema tag "type" = "boolean" {
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// What it holds at first.
        default?: bool,
    }
}

wire_struct! {
    /// A choice of one word, shown as it is.
    pub struct UntitledSingleSelectEnumSchema tag "type" = "string" {
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// The words.
        values as "enum": Vec<String>,
        /// What is chosen at first.
        default?: String,
    }
}

wire_struct! {
    /// A choice of one word, each with a text for people, since 2025-11-25.
    pub struct TitledSingleSelectEnumSchema tag "type" = "string" {
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// The words and their texts.
        one_of as "oneOf": Vec<EnumOption>,
        /// What is chosen at first.
        default?: String,
    }
}

wire_struct! {
    /// A word that can be chosen, and its text for people.
    pub struct EnumOption {
        /// The word.
        value as "const": String,
        /// The text.
        title: String,
    }
}

wire_struct! {
    /// A choice of one word, with the texts for people in a second list, as in 2025-06-18.
    pub struct LegacyTitledEnumSchema tag "type" = "string" {
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// The words.
        values as "enum": Vec<String>,
        /// Their texts, in the same order.
        enum_names as "enumNames"?: Vec<String>,
        /// What is chosen at first.
        default?: String,
    }
}

wire_struct! {
    /// A choice of several words, shown as they are, since 2025-11-25.
    pub struct UntitledMultiSelectEnumSchema tag "type" = "array" {
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// The fewest to choose.
        min_items as "minItems"?: u64,
        /// The most to choose.
        max_items as "maxItems"?: u64,
        /// The words.
        items: UntitledItems,
        /// What is chosen at first.
        default?: Vec<String>,
    }
}

wire_struct! {
    /// The words of a choice of several.
    pub struct UntitledItems tag "type" = "string" {
        /// The words.
        values as "enum": Vec<String>,
    }
}

wire_struct! {
    /// A choice of several words, each with a text for people, since 2025-11-25.
    pub struct TitledMultiSelectEnumSchema tag "type" = "array" {
        /// Its name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// The fewest to choose.
        min_items as "minItems"?: u64,
        /// The most to choose.
        max_items as "maxItems"?: u64,
        /// The words and their texts.
        items: TitledItems,
        /// What is chosen at first.
        default?: Vec<String>,
    }
}

wire_struct! {
    /// The words and texts of a choice of several.
    pub struct TitledItems {
        /// The words and their texts.
        any_of as "anyOf": Vec<EnumOption>,
    }
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchemaDefinition {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several words.
    UntitledSingleSelect(UntitledSingleSelectEnumSchema),
    /// One of several words with texts.
    TitledSingleSelect(TitledSingleSelectEnumSchema),
    /// Some of several words.
    UntitledMultiSelect(UntitledMultiSelectEnumSchema),
    /// Some of several words with texts.
    TitledMultiSelect(TitledMultiSelectEnumSchema),
    /// One of several words with texts, in the form of 2025-06-18.
    LegacyTitled(LegacyTitledEnumSchema),
}

macro_rules! into_definition {
    ($($variant:ident($schema:ident)),+ $(,)?) => {
        $(impl From<$schema> for PrimitiveSchemaDefinition {
            fn from(schema: $schema) -> Self {
                Self::$variant(schema)
            }
        })+

        impl Serialize for PrimitiveSchemaDefinition {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(schema) => schema.serialize(serializer),)+
                }
            }
        }
    };
}

into_definition! {
    String(StringSchema), Number(NumberSchema), Boolean(BooleanSchema),
    UntitledSingleSelect(UntitledSingleSelectEnumSchema), TitledSingleSelect(TitledSingleSelectEnumSchema),
    UntitledMultiSelect(UntitledMultiSelectEnumSchema), TitledMultiSelect(TitledMultiSelectEnumSchema),
    LegacyTitled(LegacyTitledEnumSchema),
}

impl<'de> Deserialize<'de> for PrimitiveSchemaDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DefinitionVisitor)
    }
}

struct DefinitionVisitor;

impl<'de> Visitor<'de> for DefinitionVisitor {
    type Value = PrimitiveSchemaDefinition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the schema of a form field")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PrimitiveSchemaDefinition, A::Error> {
        use PrimitiveSchemaDefinition as Definition;

        // `type` alone does not tell: four forms are strings and two are arrays.
        let mut buffered = Buffered::collect(map)?;
        let kind: String = buffered.decode("type")?.ok_or_else(|| A::Error::missing_field("type"))?;
        if matches!(kind.as_str(), "number" | "integer") {
            return buffered.into_typed().map(Definition::Number);
        }
        buffered.take("type")?;
        match kind.as_str() {
            "boolean" => buffered.into_typed().map(Definition::Boolean),
            "array" if is_titled::<A::Error>(&buffered)? => {
                buffered.into_typed().map(Definition::TitledMultiSelect)
            }
            "array" => buffered.into_typed().map(Definition::UntitledMultiSelect),
            "string" if buffered.contains("oneOf") => {
                buffered.into_typed().map(Definition::TitledSingleSelect)
            }
            "string" if buffered.contains("enumNames") => buffered.into_typed().map(Definition::LegacyTitled),
            "string" if buffered.contains("enum") => {
                buffered.into_typed().map(Definition::UntitledSingleSelect)
            }
            "string" => buffered.into_typed().map(Definition::String),
            other => {
                Err(A::Error::unknown_variant(other, &["string", "number", "integer", "boolean", "array"]))
            }
        }
    }
}

fn is_titled<E: Error>(buffered: &Buffered) -> Result<bool, E> {
    let items: Option<JsonObject> = buffered.decode("items")?;
    Ok(items.is_some_and(|items| items.contains_key("anyOf")))
}
