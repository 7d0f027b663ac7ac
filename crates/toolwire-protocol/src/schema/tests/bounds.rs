//! Nothing the other side sends costs more than the named limits allow.

use serde_json::{Map, Value, json};

use super::{accepts, compile_error, said};
use crate::schema::{
    MAX_ALL_PATTERN_BYTES, MAX_COMPILED_BYTES, MAX_INLINED_VALUES, MAX_INSTANCE_DEPTH, MAX_PATTERN_BYTES,
    MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS, MAX_VIOLATIONS, Schema, inline_local_refs,
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

#[test]
fn a_long_base_and_many_that_are_relative_to_it_are_too_costly() {
    // Each of them joined to the base would take hundreds of megabytes, or the time of them where the result is short.
    let base = format!("http://example.com/{}/", "p".repeat(40_000));
    let document = |keyword: &str, start: &str, end: &str| {
        let child = |at: usize| json!({keyword: format!("{start}{}{end}", at % 2)});
        let children: Vec<Value> = (0..9_000).map(child).collect();
        json!({"$id": base, "allOf": children})
    };
    for (keyword, start, end) in [
        ("$id", "", ""),
        ("$id", "../a", ""),
        ("$id", "../../../a", ""),
        ("$id", "/a", ""),
        ("$id", "//a", ""),
        ("$id", "?q", ""),
        ("$ref", "other/", "#/x"),
        ("$ref", "../a", "#/x"),
        ("$ref", "/a", ""),
        ("$ref", "?q", "#x"),
        ("$dynamicRef", "../a", "#x"),
        ("$dynamicRef", "/a", "#x"),
    ] {
        let error = compile_error(&document(keyword, start, end));
        let limit = format!("MAX_COMPILED_BYTES ({MAX_COMPILED_BYTES})");
        assert!(error.reason.contains(&limit), "{keyword} {start}: {}", error.reason);
    }
    let same = json!({"$id": base, "allOf": vec![json!({"$id": ""}); 9_000]});
    assert!(compile_error(&same).reason.contains("MAX_COMPILED_BYTES"));
    // A reference within the document is not relative to anything.
    for reference in ["#/$defs/a", "#x", "#", ""] {
        for keyword in ["$ref", "$dynamicRef"] {
            let children = vec![json!({keyword: reference}); 9_000];
            let local = json!({"$id": base, "$anchor": "x", "allOf": children, "$defs": {"a": true}});
            assert!(Schema::compile(&local).is_ok(), "{keyword} {reference}");
        }
    }
}

#[test]
fn copies_are_paid_for_with_the_memory_that_they_take() {
    let large = json!({"const": "x".repeat(MAX_COMPILED_BYTES)});
    assert_eq!(compile_error(&large).path, "/const");
    let empty = vec![json!(""); MAX_COMPILED_BYTES / size_of::<String>() + 1];
    assert_eq!(compile_error(&json!({"required": empty})).path, "/required");
    let needed = json!({"dependentRequired": {"a": empty}});
    assert_eq!(compile_error(&needed).path, "/dependentRequired");
}

#[test]
fn long_patterns_are_paid_for_with_what_reading_them_takes() {
    // It compiles to next to nothing, and more than two of them are still more than all patterns may take.
    let source = |at: usize| json!({"pattern": format!("(?x) {at} {}", " ".repeat(60_000))});
    let many: Vec<Value> = (0..5).map(source).collect();
    assert_eq!(Schema::compile(&json!({"allOf": many})).unwrap().skipped().len(), 3);
}

#[test]
fn patterns_that_cannot_be_run_are_paid_for() {
    let patterns: Map<String, Value> = (0..5_000).map(|at| (format!("(?={at})"), json!(true))).collect();
    let instance = |members: usize| (0..members).map(|at| (at.to_string(), json!(1))).collect::<Map<_, _>>();
    let schema = json!({"patternProperties": patterns});
    accepts(&schema, &[instance(100).into()]);
    assert!(said(&schema, &instance(1_000).into()).starts_with("schema too costly"));
}

#[test]
fn patterns_that_fail_are_paid_for() {
    // Each alone is tried in all sizes before it is given up.
    let many: Vec<Value> = (0..9_000).map(|at| json!({"pattern": format!("(a{{999}}){{99{at}}}")})).collect();
    assert_eq!(Schema::compile(&json!({"allOf": many})).unwrap().skipped().len(), 9_000);
}

#[test]
fn long_names_are_paid_for_wherever_they_are_looked_up() {
    let name = "n".repeat(200_000);
    let member = |last: &str| format!("{name}{last}");
    let instance: Value = (0..40).map(|at| (member(&at.to_string()), json!(1))).collect::<Map<_, _>>().into();
    for rule in [
        json!({"dependentSchemas": {member("x"): true}}),
        json!({"dependentRequired": {member("x"): ["a"]}}),
        json!({"dependentRequired": {member("1"): [member("2")]}}),
        json!({"required": [member("1")]}),
        json!({"properties": {member("x"): true}}),
        json!({"propertyNames": {"minLength": 1}}),
        json!({"properties": {member("1"): true}, "unevaluatedProperties": true}),
    ] {
        let schema = json!({"allOf": vec![json!({"$ref": "#/$defs/rule"}); 2_000], "$defs": {"rule": rule}});
        let said = said(&schema, &instance);
        assert!(
            said.starts_with("schema too costly"),
            "{} {}",
            rule.as_object().unwrap().keys().next().unwrap(),
            said.len()
        );
        accepts(&rule, std::slice::from_ref(&instance));
    }
}

#[test]
fn items_that_are_only_looked_at_are_paid_for() {
    let rule = json!({"items": true, "unevaluatedItems": false});
    let schema = json!({"allOf": vec![json!({"$ref": "#/$defs/rule"}); 5_000], "$defs": {"rule": rule}});
    assert!(said(&schema, &json!(vec![0; 1_000])).starts_with("schema too costly"));
}

#[test]
fn what_a_message_lists_does_not_depend_on_how_much_there_is() {
    let properties: Map<String, Value> = (0..9_000).map(|at| (format!("p{at}"), json!(true))).collect();
    let closed = json!({"properties": properties, "additionalProperties": false});
    let schema = json!({"anyOf": vec![json!({"$ref": "#/$defs/closed"}); 900], "$defs": {"closed": closed}});
    let said = said(&schema, &json!({"other": 1}));
    assert!(said.len() < 2_000, "{}", said.len());
}

#[test]
fn names_are_counted_when_references_are_replaced() {
    let definition = json!({"properties": {"n".repeat(100_000): {"type": "string"}}});
    let uses: Vec<Value> = (0..1_000).map(|_| json!({"$ref": "#/$defs/a"})).collect();
    let error = inline_local_refs(json!({"allOf": uses, "$defs": {"a": definition}})).unwrap_err();
    assert!(error.reason.contains(&MAX_INLINED_VALUES.to_string()), "{error}");
    // A long reference is read each time.
    let name = "n".repeat(100_000);
    let definitions = json!({"a": {"$ref": format!("#/$defs/{name}")}, name: true});
    let uses: Vec<Value> = (0..1_000).map(|_| json!({"$ref": "#/$defs/a"})).collect();
    let error = inline_local_refs(json!({"allOf": uses, "$defs": definitions})).unwrap_err();
    assert!(error.reason.contains(&MAX_INLINED_VALUES.to_string()), "{error}");
    // Long names that refer to each other are looked up by number.
    let name = |at: usize| format!("{}{at}", "n".repeat(200));
    let uses: Vec<Value> = (0..110).map(|at| json!({"$ref": format!("#/$defs/{}", name(at))})).collect();
    let definitions: Map<String, Value> = (0..110).map(|at| (name(at), json!({"anyOf": uses}))).collect();
    let error = inline_local_refs(json!({"$defs": definitions})).unwrap_err();
    assert_eq!(error.reason, "too many definitions that refer to each other");
}
