//! Schemas without references.

use serde_json::{Map, Value, json};

use crate::schema::{MAX_INLINED_VALUES, inline_local_refs, is_object_root};

fn inlined(schema: Value) -> Value {
    inline_local_refs(schema).unwrap()
}

#[test]
fn definitions_replace_their_references_and_go() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/Place"}, "to": {"type": "array", "items": {"$ref": "#/definitions/City"}}},
        "$defs": {"Place": {"anyOf": [{"$ref": "#/definitions/City"}, {"type": "null"}]}, "Unused": {"$ref": "#/$defs/Place"}},
        "definitions": {"City": {"type": "string"}},
    });
    let expected = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "from": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "to": {"type": "array", "items": {"type": "string"}},
        },
    });
    assert_eq!(inlined(schema), expected);
}

#[test]
fn annotations_beside_a_reference_win_and_demands_are_added() {
    let schema = json!({
        "properties": {
            "noted": {"$ref": "#/$defs/S", "description": "here", "x-mcp-header": "H"},
            "limited": {"$ref": "#/$defs/S", "maxLength": 3, "allOf": [{"minLength": 1}]},
            "never": {"$ref": "#/$defs/No", "title": "t"},
            "any": {"$ref": "#/$defs/Yes", "title": "t"},
        },
        "$defs": {"S": {"type": "string", "description": "there"}, "No": false, "Yes": true},
    });
    let expected = json!({"properties": {
        "noted": {"type": "string", "description": "here", "x-mcp-header": "H"},
        "limited": {"maxLength": 3, "allOf": [{"minLength": 1}, {"type": "string", "description": "there"}]},
        "never": {"allOf": [false], "title": "t"},
        "any": {"title": "t"},
    }});
    assert_eq!(inlined(schema), expected);
}

#[test]
fn a_root_that_only_refers_becomes_the_definition() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/Args",
        "definitions": {"Args": {"type": "object"}},
    });
    assert_eq!(
        inlined(schema),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})
    );
}

#[test]
fn recursive_definitions_stay_with_what_they_need() {
    let schema = json!({
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "parent": {"$ref": "#"}},
        "$defs": {
            "Tree": {"properties": {"kids": {"items": {"$ref": "#/$defs/Tree"}}, "name": {"$ref": "#/$defs/Name"}}},
            "Name": {"type": "string"},
            "Even": {"items": {"$ref": "#/$defs/Odd"}},
            "Odd": {"items": {"$ref": "#/$defs/Even"}},
        },
    });
    let expected = json!({
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "parent": {"$ref": "#"}},
        "$defs": {"Tree": {"properties": {"kids": {"items": {"$ref": "#/$defs/Tree"}}, "name": {"type": "string"}}}},
    });
    assert_eq!(inlined(schema), expected);
}

#[test]
fn data_that_looks_like_a_reference_is_left_alone() {
    let schema = json!({
        "properties": {"$ref": {"type": "string"}, "c": {"const": {"$ref": "#/$defs/S"}}},
        "default": {"$ref": "#/$defs/S"},
    });
    assert_eq!(inlined(schema.clone()), schema);
}

#[test]
fn named_definitions_and_pointers_into_definitions_stay() {
    let schema = json!({
        "items": {"$ref": "#/$defs/Named"},
        "contains": {"$ref": "#/$defs/Pair/properties/left"},
        "$defs": {"Named": {"$anchor": "n", "type": "string"}, "Pair": {"properties": {"left": {"type": "null"}}}},
    });
    assert_eq!(inlined(schema.clone()), schema);
    let embedded =
        json!({"items": {"$id": "x", "$ref": "#/$defs/A", "$defs": {"A": true}}, "$defs": {"A": false}});
    assert_eq!(inlined(embedded)["items"], json!({"$id": "x", "$ref": "#/$defs/A", "$defs": {"A": true}}));
}

#[test]
fn names_may_be_escaped() {
    let schema = json!({"items": {"$ref": "#/%24defs/a~1b%20c"}, "$defs": {"a/b c": {"type": "null"}}});
    assert_eq!(inlined(schema), json!({"items": {"type": "null"}}));
}

#[test]
fn what_cannot_be_inlined_is_an_error() {
    let dangling = inline_local_refs(json!({"items": {"$ref": "#/$defs/Gone"}})).unwrap_err();
    assert_eq!(dangling.reason, "there is no definition \"Gone\"");
    let mut definitions = Map::new();
    definitions.insert("d0".to_owned(), json!({"type": "null"}));
    for level in 1..40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [below, below]}));
    }
    let bomb = inline_local_refs(json!({"$ref": "#/$defs/d39", "$defs": definitions})).unwrap_err();
    assert!(bomb.reason.contains(&MAX_INLINED_VALUES.to_string()), "{bomb}");
    let mut chain = Map::new();
    chain.insert("c0".to_owned(), json!({}));
    for level in 1..500 {
        chain.insert(format!("c{level}"), json!({"not": {"$ref": format!("#/$defs/c{}", level - 1)}}));
    }
    let deep = inline_local_refs(json!({"$ref": "#/$defs/c499", "$defs": chain.clone()})).unwrap_err();
    assert!(deep.reason.contains("128 levels"), "{deep}");
    for level in 500..3_000 {
        chain.insert(format!("c{level}"), json!({"not": {"$ref": format!("#/$defs/c{}", level - 1)}}));
    }
    let long = inline_local_refs(json!({"$defs": chain})).unwrap_err();
    assert_eq!(long.reason, "too many definitions that refer to each other");
}

#[test]
fn object_roots() {
    let is_object = |schema: Value| is_object_root(schema.as_object().unwrap());
    assert!(is_object(json!({"type": "object"})));
    assert!(!is_object(json!({"type": ["object"]})));
    assert!(!is_object(json!({"properties": {}})));
}
