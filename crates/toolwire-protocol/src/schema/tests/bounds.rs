//! Nothing the other side sends costs more than the named limits allow.

use serde_json::{Map, Value, json};

use super::{accepts, compile_error, said};
use crate::schema::{
    MAX_ALL_PATTERN_BYTES, MAX_INSTANCE_DEPTH, MAX_PATTERN_BYTES, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS,
    MAX_VIOLATIONS, Schema,
};

/// An array in an array, `depth` times.
fn nested(depth: usize) -> Value {
    (1..depth).fold(json!([]), |inner, _| json!([inner]))
}

#[test]
fn depth_of_instances() {
    accepts(&json!({"uniqueItems": true}), &[nested(MAX_INSTANCE_DEPTH)]);
    let said = said(&json!(true), &nested(MAX_INSTANCE_DEPTH + 1));
    assert_eq!(said, "expected a value nested at most 128 levels deep, found a deeper one");
}

#[test]
fn the_deepest_instance_fits_a_recursive_schema() {
    let tree = json!({"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}], "$defs": {
        "tree": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}
    }});
    accepts(&tree, &[nested(MAX_INSTANCE_DEPTH)]);
}

#[test]
fn depth_of_schemas() {
    let deep = |levels| (1..levels).fold(json!({}), |inner, _| json!({"not": inner}));
    assert!(Schema::compile(&deep(MAX_SCHEMA_DEPTH)).is_ok());
    let error = compile_error(&deep(MAX_SCHEMA_DEPTH + 1));
    assert_eq!(error.reason, "nested deeper than 128 levels");
}

#[test]
fn number_of_subschemas() {
    let wide = |count: usize| json!({"allOf": vec![json!({}); count]});
    assert!(Schema::compile(&wide(MAX_SUBSCHEMAS - 1)).is_ok());
    assert_eq!(compile_error(&wide(MAX_SUBSCHEMAS)).reason, "more than 10000 subschemas");
}

#[test]
fn references_that_double_at_each_step_give_up() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let mut definitions = Map::new();
        definitions
            .insert("d0".to_owned(), if keyword == "allOf" { json!(true) } else { json!({"type": "null"}) });
        for level in 1..60 {
            let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
            definitions.insert(format!("d{level}"), json!({keyword: [below, below]}));
        }
        let bomb = json!({"$ref": "#/$defs/d59", "$defs": definitions});
        assert!(said(&bomb, &json!(1)).starts_with("schema too costly"), "{keyword}");
        // What is too costly to know is not accepted when it is negated.
        let negated = json!({"not": {"$ref": "#/$defs/d59"}, "$defs": bomb["$defs"]});
        assert!(said(&negated, &json!(1)).starts_with("schema too costly"), "not {keyword}");
    }
}

#[test]
fn references_in_a_circle_give_up() {
    let circles = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": {"$ref": "#"}, "else": true}),
        json!({"$dynamicAnchor": "x", "type": "integer", "$dynamicRef": "#x"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ];
    for circle in circles {
        assert!(said(&circle, &json!(1)).starts_with("schema too costly"), "{circle}");
    }
}

#[test]
fn the_deepest_evaluation_fits_a_small_stack() {
    let work =
        || said(&json!({"properties": {"a": {}}, "anyOf": [{"allOf": [{"$ref": "#"}]}]}), &json!({"a": 1}));
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(work).unwrap();
    assert!(thread.join().unwrap().starts_with("schema too costly"));
}

#[test]
fn costly_patterns_are_charged_for() {
    let schema = json!({"pattern": "([ab]{1,40}){1,5}c$"});
    assert_eq!(Schema::compile(&schema).unwrap().skipped(), [""; 0]);
    assert!(said(&schema, &json!("ab".repeat(500_000))).starts_with("schema too costly"));
    assert_eq!(said(&json!({"pattern": "^[a-z]*$"}), &json!("ab".repeat(50_000))), "");
}

#[test]
fn patterns_that_would_grow_too_large_are_skipped() {
    for huge in ["(a{1000}){1000}", "(((a{0}){1000}){1000}){1000}"] {
        assert_eq!(Schema::compile(&json!({"pattern": huge})).unwrap().skipped(), [huge]);
    }
    let long = Schema::compile(&json!({"pattern": "a".repeat(MAX_PATTERN_BYTES + 1)})).unwrap();
    assert_eq!(long.skipped().len(), 1);
    let many: Vec<Value> =
        (0..MAX_ALL_PATTERN_BYTES / 1024 + 5).map(|n| json!({"pattern": format!("^{n}$")})).collect();
    assert_eq!(Schema::compile(&json!({"allOf": many})).unwrap().skipped().len(), 5);
}

#[test]
fn large_but_simple_instances_are_not_too_costly() {
    let rows: Vec<Value> = (0..50_000).map(|n| json!({"id": n, "name": "row"})).collect();
    let schema = json!({"uniqueItems": true, "items": {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["id", "name"],
        "additionalProperties": false,
    }});
    accepts(&json!({"items": schema["items"]}), &[Value::Array(rows.clone())]);
    accepts(&schema, &[Value::Array(rows.into_iter().take(10_000).collect())]);
}

#[test]
fn violations_are_counted() {
    let schema = Schema::compile(&json!({"items": {"type": "string"}})).unwrap();
    let violations = schema.validate(&json!(vec![0; 1000])).unwrap_err();
    assert_eq!(violations.iter().count(), MAX_VIOLATIONS);
}

#[test]
fn long_names_above_many_subschemas_stay_cheap() {
    // Kept as strings, the pointers of this schema would take gigabytes.
    let name = "n".repeat(1_000_000);
    let schema = json!({"properties": {name.as_str(): {"anyOf": vec![json!({"type": "null"}); 9_000]}}});
    let said = said(&schema, &json!({name.as_str(): 1}));
    assert!(said.ends_with("…: expected null, found 1"), "{}", said.len());
}
