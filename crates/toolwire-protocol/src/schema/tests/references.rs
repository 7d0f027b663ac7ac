//! `$ref` and its kin, and what is skipped because it cannot be checked.

use serde_json::json;

use super::{accepts, compile_error, rejects};
use crate::schema::Schema;

#[test]
fn pointers_anchors_and_ids_inside_the_document() {
    let schema = json!({
        "$id": "https://example.com/root.json",
        "$defs": {
            "a/b": {"type": "string"},
            "anchored": {"$anchor": "here", "type": "integer"},
            "own": {"$id": "own.json", "$defs": {"x": {"type": "null"}}, "properties": {"y": {"$ref": "#/$defs/x"}}},
        },
        "properties": {
            "pointer": {"$ref": "#/$defs/a~1b"},
            "encoded": {"$ref": "#/%24defs/a~1b"},
            "anchor": {"$ref": "#here"},
            "absolute": {"$ref": "https://example.com/own.json#/$defs/x"},
            "relative": {"$ref": "own.json"},
        },
    });
    accepts(&schema, &[json!({"pointer": "", "anchor": 1, "absolute": null, "relative": {"y": null}})]);
    rejects(
        &schema,
        &[
            json!({"pointer": 1}),
            json!({"encoded": 1}),
            json!({"anchor": ""}),
            json!({"absolute": 1}),
            json!({"relative": {"y": 1}}),
        ],
    );
}

#[test]
fn keywords_next_to_ref_count_except_in_draft_07() {
    let modern = json!({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 1});
    rejects(&modern, &[json!("ab"), json!(1)]);
    let old = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"s": {"type": "string"}}, "$ref": "#/definitions/s", "maxLength": 1,
    });
    accepts(&old, &[json!("ab")]);
    rejects(&old, &[json!(1)]);
}

#[test]
fn recursive_schemas_follow_the_value() {
    let tree = json!({
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
        "additionalProperties": false,
    });
    accepts(&tree, &[json!({"children": [{"children": []}, {}]})]);
    rejects(&tree, &[json!({"children": [{"children": [1]}]}), json!({"children": [{"child": 1}]})]);
}

#[test]
fn references_into_places_that_are_not_keywords() {
    let schema = json!({"x-shared": {"word": {"type": "string"}}, "items": {"$ref": "#/x-shared/word"}});
    rejects(&schema, &[json!([1])]);
    accepts(&schema, &[json!(["a"])]);
}

#[test]
fn dynamic_references_take_the_outermost_anchor() {
    let schema = json!({
        "$id": "https://example.com/strings",
        "$ref": "list",
        "$defs": {
            "element": {"$dynamicAnchor": "element", "type": "string"},
            "list": {
                "$id": "list",
                "items": {"$dynamicRef": "#element"},
                "$defs": {"any": {"$dynamicAnchor": "element"}},
            },
        },
    });
    accepts(&schema, &[json!(["a"])]);
    rejects(&schema, &[json!([1])]);
}

#[test]
fn dangling_local_references_are_errors() {
    let error = compile_error(&json!({"items": {"$ref": "#/$defs/gone"}}));
    assert_eq!(error.path, "/items/$ref");
    assert_eq!(error.reason, "\"#/$defs/gone\" is not in this document");
    assert_eq!(compile_error(&json!({"$ref": "#gone"})).path, "/$ref");
    assert_eq!(compile_error(&json!({"$ref": "#/enum/0", "enum": ["x"]})).path, "/enum/0");
}

#[test]
fn remote_references_are_listed_and_accept_anything() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {
            "a": {"$ref": "https://example.com/a.json"},
            "b": {"not": {"$ref": "https://example.com/a.json"}},
            "c": {"$ref": "other.json#/$defs/x", "unevaluatedProperties": false},
            "d": {"oneOf": [{"$ref": "other.json"}, {"type": "integer"}, {"$ref": "other.json"}]},
            "e": {"contains": {"$ref": "other.json"}, "maxContains": 1},
            "f": {"if": {"$ref": "other.json"}, "then": false},
        },
        "required": ["a"],
    });
    accepts(&schema, &[json!({"a": 1, "b": 1, "c": {"x": 1}, "d": 1, "e": [1, 2], "f": 1})]);
    rejects(&schema, &[json!({})]);
    let skipped = Schema::compile(&schema).unwrap().skipped().to_vec();
    assert_eq!(skipped, ["https://example.com/a.json", "other.json", "other.json#/$defs/x"]);
}

#[test]
fn patterns_beyond_the_engine_are_listed_and_accept_anything() {
    let schema = json!({
        "properties": {"a": {"pattern": "^(?!x)"}},
        "patternProperties": {"(?<=y)z": false, "^b$": {"type": "integer"}},
        "additionalProperties": false,
    });
    accepts(&schema, &[json!({"a": "x", "other": 1, "b": 1})]);
    rejects(&schema, &[json!({"b": "text"})]);
    assert_eq!(Schema::compile(&schema).unwrap().skipped(), ["(?<=y)z", "^(?!x)"]);
    accepts(&json!({"not": {"pattern": "^(?!x)"}}), &[json!("x")]);
}
