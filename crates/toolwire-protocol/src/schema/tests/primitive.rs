//! Schemas of forms.

use serde_json::{Value, json};

use crate::schema::{elicitation_schema, fill_defaults};

/// What becomes of one field, and whether it is required.
fn field(schema: &Value) -> (Value, bool) {
    let whole = json!({"type": "object", "properties": {"f": schema}, "required": ["f"]});
    let asked = elicitation_schema(&whole).unwrap();
    (asked["properties"]["f"].clone(), asked.get("required").is_some())
}

fn refused(schema: &Value) -> String {
    let whole = json!({"type": "object", "properties": {"home address": schema}});
    let error = elicitation_schema(&whole).unwrap_err();
    assert_eq!(error.path, "/properties/home address");
    error.reason
}

#[test]
fn primitives_keep_what_a_form_knows() {
    let cases = [
        (
            json!({"type": "string", "format": "email", "minLength": 3, "maxLength": 9, "pattern": "@", "title": "T", "description": "D", "default": "a@b"}),
            json!({"type": "string", "format": "email", "minLength": 3, "maxLength": 9, "title": "T", "description": "D", "default": "a@b"}),
        ),
        (json!({"type": "string", "format": "uuid"}), json!({"type": "string"})),
        (
            json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255, "default": 7}),
            json!({"type": "integer", "minimum": 0, "maximum": 255, "default": 7}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9}),
            json!({"type": "integer", "minimum": 1, "maximum": 8}),
        ),
        (json!({"type": "number", "format": "double", "exclusiveMinimum": 0}), json!({"type": "number"})),
        (json!({"type": "boolean", "default": false}), json!({"type": "boolean", "default": false})),
    ];
    for (derived, expected) in cases {
        assert_eq!(field(&derived), (expected, true), "{derived}");
    }
}

#[test]
fn optional_fields_are_not_required() {
    let text = json!({"type": "string", "description": "D"});
    for derived in [
        json!({"type": ["string", "null"], "description": "D"}),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "D", "default": null}),
        json!({"oneOf": [{"type": "null"}, {"type": "string", "description": "inner"}], "description": "D"}),
        json!({"anyOf": [{"allOf": [{"type": ["string", "null"]}]}, {"type": "null"}], "description": "D"}),
    ] {
        assert_eq!(field(&derived), (text.clone(), false), "{derived}");
    }
}

#[test]
fn enums_in_every_spelling() {
    let plain = json!({"type": "string", "enum": ["a", "b"]});
    let titled =
        json!({"type": "string", "oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "b"}]});
    let cases = [
        (json!({"type": "string", "enum": ["a", "b"]}), &plain, true),
        (json!({"type": ["string", "null"], "enum": ["a", "b", null]}), &plain, false),
        (
            json!({"oneOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]}),
            &plain,
            true,
        ),
        (json!({"oneOf": [{"const": "a", "title": "First"}, {"const": "b"}]}), &titled, true),
        (
            json!({"oneOf": [{"const": "a", "description": "First"}, {"type": "string", "enum": ["b"]}]}),
            &titled,
            true,
        ),
        (json!({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "b"]}), &titled, true),
        (
            json!({"anyOf": [{"const": "a", "title": "First"}, {"const": "b"}, {"type": "null"}]}),
            &json!({"type": "string", "oneOf": titled["oneOf"]}),
            false,
        ),
    ];
    for (derived, expected, required) in cases {
        assert_eq!(field(&derived), (expected.clone(), required), "{derived}");
    }
}

#[test]
fn enums_behind_references() {
    let derived = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Order",
        "type": "object",
        "properties": {
            "size": {"$ref": "#/$defs/Size", "description": "how big", "default": "small"},
            "extra": {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}]},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Size"}, "minItems": 1, "maxItems": 2, "uniqueItems": true, "default": ["large"]},
        },
        "required": ["size", "extra", "more"],
        "$defs": {"Size": {"type": "string", "enum": ["small", "large"], "description": "a size"}},
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "size": {"type": "string", "enum": ["small", "large"], "description": "how big", "default": "small"},
            "extra": {"type": "string", "enum": ["small", "large"], "description": "a size"},
            "more": {"type": "array", "items": {"type": "string", "enum": ["small", "large"]}, "minItems": 1, "maxItems": 2, "default": ["large"]},
        },
        "required": ["size", "more"],
    });
    assert_eq!(elicitation_schema(&derived).unwrap(), expected);
}

#[test]
fn lists_of_titled_choices() {
    let derived = json!({"type": "array", "items": {"oneOf": [{"const": "a", "title": "A!"}, {"const": "b", "title": "B!"}]}});
    let expected = json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A!"}, {"const": "b", "title": "B!"}]}});
    assert_eq!(field(&derived), (expected, true));
}

#[test]
fn what_a_form_cannot_ask_is_refused_by_name() {
    let cases = [
        (json!({"type": "object", "properties": {}}), "the field \"home address\" is an object;"),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "is a list of something else than enum values;",
        ),
        (json!({"type": "array"}), "is a list of something else"),
        (json!({"enum": [1, 2]}), "has a choice that is not a string;"),
        (json!({"enum": []}), "is an enum without values;"),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "is one of several types;"),
        (json!({"type": ["string", "integer"]}), "has no single primitive type;"),
        (json!(true), "has no single primitive type;"),
        (json!({"type": "integer", "default": "x"}), "cannot have the default the string \"x\";"),
        (json!({"enum": ["a"], "default": "b"}), "cannot have the default the string \"b\";"),
    ];
    for (schema, expected) in cases {
        let reason = refused(&schema);
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn what_is_no_flat_object_is_refused() {
    for (schema, path) in [
        (json!({"type": "string"}), ""),
        (json!(true), ""),
        (json!({"type": "object", "oneOf": [{}]}), "/oneOf"),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), "/additionalProperties"),
    ] {
        assert_eq!(elicitation_schema(&schema).unwrap_err().path, path, "{schema}");
    }
    let empty = json!({"type": "object"});
    assert_eq!(elicitation_schema(&empty).unwrap(), json!({"type": "object", "properties": {}}));
}

#[test]
fn defaults_fill_only_what_is_missing() {
    let requested =
        json!({"properties": {"a": {"default": 1}, "b": {"default": 2}, "c": {"type": "string"}, "d": true}});
    let Value::Object(mut content) = json!({"b": 3}) else { unreachable!() };
    fill_defaults(&requested, &mut content);
    assert_eq!(Value::Object(content.clone()), json!({"a": 1, "b": 3}));
    fill_defaults(&json!("no schema"), &mut content);
    assert_eq!(content.len(), 2);
}
