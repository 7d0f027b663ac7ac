//! Schemas from types: draft 2020-12, without references where possible, without what hosts stumble over.

mod fields;
mod optional;
mod ordered;
mod tool_schema;

pub(crate) use fields::Order;
pub(crate) use optional::{
    mend, mend_members, takes_null, without_null, without_optional_nulls, without_optional_nulls_in,
};
pub(crate) use ordered::ordered_tools;
pub(crate) use tool_schema::ToolSchema;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};
use toolwire_protocol::{
    schema::{inline_local_refs, is_object_root},
    wire::JsonObject,
};

/// The schema of a type that is read, the arguments of a tool, and whether it says more than decoding into
/// the type checks by itself.
pub(crate) fn of_input<T: JsonSchema>() -> (Value, bool) {
    let mut schema = input_generator().into_root_schema_for::<T>().to_value();
    without_optional_nulls(&mut schema);
    finished(schema)
}

/// Makes the schemas of types that are read.
pub(crate) fn input_generator() -> SchemaGenerator {
    settings().for_deserialize().into_generator()
}

/// The schema of a type that is written, the structured content of a tool, and whether it says more than the type.
fn of_output<T: JsonSchema>() -> (Value, bool) {
    finished(settings().for_serialize().into_generator().into_root_schema_for::<T>().to_value())
}

/// Draft 2020-12, which is the protocol's default, so that no schema has to name it.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None)
}

fn finished(schema: Value) -> (Value, bool) {
    let checks = says_more_than_the_type(&schema);
    (portable(schema), checks)
}

/// A schema for a tool without arguments.
fn empty_object() -> JsonObject {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), Map::new().into());
    schema
}

/// What a handler takes must be an object: there are only named arguments. Says so if it is not.
fn as_input_schema(schema: Value) -> (JsonObject, Option<String>) {
    match schema {
        Value::Object(object) if is_object_root(&object) => (object, None),
        // `()` and a unit struct take nothing.
        Value::Object(object) if object.get("type") == Some(&"null".into()) => (empty_object(), None),
        // serde_json::Value or a map: anything goes, as long as it is an object.
        Value::Bool(true) => (empty_object(), None),
        Value::Object(mut object) if !object.contains_key("type") => {
            object.insert("type".into(), "object".into());
            (object, None)
        }
        other => {
            let problem = format!(
                "arguments must be an object, so Args<T> needs a struct with named fields; the schema is {other}"
            );
            (as_output_schema(other), Some(problem))
        }
    }
}

/// What a handler returns may be anything. `true` accepts anything and `false` nothing.
fn as_output_schema(schema: Value) -> JsonObject {
    match schema {
        Value::Object(object) => object,
        Value::Bool(false) => {
            let mut nothing = JsonObject::new();
            nothing.insert("not".to_owned(), Value::Object(JsonObject::new()));
            nothing
        }
        _ => JsonObject::new(),
    }
}

/// Whether a schema made from a type has constraints that serde does not know of. Types, required members,
/// enumerations and the range of Rust's integers are checked by decoding already.
fn says_more_than_the_type(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            object.iter().any(|(keyword, value)| match keyword.as_str() {
                "minimum" | "maximum" => !is_natural_bound(object.get("format"), value),
                "exclusiveMinimum"
                | "exclusiveMaximum"
                | "multipleOf"
                | "minLength"
                | "maxLength"
                | "pattern"
                | "minItems"
                | "maxItems"
                | "uniqueItems"
                | "contains"
                | "minProperties"
                | "maxProperties"
                | "propertyNames"
                | "dependentRequired"
                | "dependentSchemas"
                | "allOf"
                | "not"
                | "if"
                | "unevaluatedProperties"
                | "unevaluatedItems" => true,
                // What stands below these is data or names, not keywords.
                "default" | "examples" | "const" | "enum" | "required" => false,
                "properties" | "$defs" | "patternProperties" => {
                    value.as_object().is_some_and(|members| members.values().any(says_more_than_the_type))
                }
                _ => says_more_than_the_type(value),
            })
        }
        Value::Array(items) => items.iter().any(says_more_than_the_type),
        _ => false,
    }
}

/// Whether a bound is just the end of a Rust integer's range.
fn is_natural_bound(format: Option<&Value>, bound: &Value) -> bool {
    let ends: [i128; 2] = match format.and_then(Value::as_str) {
        Some("int8") => [i8::MIN.into(), i8::MAX.into()],
        Some("int16") => [i16::MIN.into(), i16::MAX.into()],
        Some("int32") => [i32::MIN.into(), i32::MAX.into()],
        Some("int64" | "int") => [i64::MIN.into(), i64::MAX.into()],
        Some("uint8") => [0, u8::MAX.into()],
        Some("uint16") => [0, u16::MAX.into()],
        Some("uint32") => [0, u32::MAX.into()],
        Some("uint64" | "uint") => [0, u64::MAX.into()],
        _ => return false,
    };
    let bound = bound.as_i64().map(i128::from).or_else(|| bound.as_u64().map(i128::from));
    bound.is_some_and(|bound| ends.contains(&bound))
}

fn is_rust_format(format: &Value) -> bool {
    format.as_str().is_some_and(|format| {
        format.starts_with("int") || format.starts_with("uint") || matches!(format, "float" | "double")
    })
}

fn portable(mut schema: Value) -> Value {
    // Without definitions there is nothing to inline, and most schemas have none.
    if schema.get("$defs").is_some()
        && let Ok(inlined) = inline_local_refs(schema.clone())
    {
        schema = inlined;
    }
    if let Some(root) = schema.as_object_mut() {
        // A Rust type's name tells a model nothing.
        root.retain(|keyword, _| keyword != "title");
    }
    drop_rust_formats(&mut schema);
    schema
}

/// `uint32` and the like are not formats of JSON Schema; strict validators complain about them.
fn drop_rust_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|keyword, value| keyword != "format" || !is_rust_format(value));
            object.values_mut().for_each(drop_rust_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_rust_formats),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;

    #[test]
    fn only_what_decoding_does_not_check_is_checked_first() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Plain {
            a: u8,
            b: Option<i64>,
            c: Vec<String>,
            d: f64,
            e: u64,
            f: i32,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Ranged {
            #[schemars(range(min = 1, max = 100))]
            a: u8,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Long {
            #[schemars(length(min = 1))]
            a: String,
        }
        assert!(!of_input::<Plain>().1);
        assert!(of_input::<Ranged>().1);
        assert!(of_input::<Long>().1);
    }

    #[test]
    fn schemas_are_portable() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Inner {
            size: u32,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Outer {
            inner: Inner,
        }
        let schema = of_input::<Outer>().0;
        let text = schema.to_string();
        for unwanted in ["$ref", "$schema", "uint32", "Outer"] {
            assert!(!text.contains(unwanted), "{unwanted}: {text}");
        }
        assert_eq!(schema["properties"]["inner"]["properties"]["size"]["type"], "integer");
    }
}
