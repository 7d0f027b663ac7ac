//! The words of violations.

use serde_json::{Value, json};

use super::said;
use crate::schema::{MAX_SHOWN_CHARS, Schema};

#[test]
fn each_kind_of_violation_in_words() {
    let cases: [(Value, Value, &str); 24] = [
        (json!({"type": "string"}), json!(12), "expected a string, found 12"),
        (json!({"type": "integer"}), json!("three"), "expected an integer, found the string \"three\""),
        (json!({"type": ["string", "null"]}), json!([1]), "expected null or a string, found the array [1]"),
        (json!({"type": "array"}), json!({}), "expected an array, found an empty object"),
        (json!({"enum": ["a", "b"]}), json!("c"), "expected one of \"a\", \"b\", found \"c\""),
        (json!({"const": 1}), json!(2), "expected 1, found 2"),
        (json!({"required": ["city"]}), json!({}), "missing required property \"city\""),
        (
            json!({"dependentRequired": {"card": ["expiry"]}}),
            json!({"card": 1}),
            "missing required property \"expiry\", needed together with \"card\"",
        ),
        (
            json!({"properties": {"city": true, "days": true}, "additionalProperties": false}),
            json!({"ctiy": 1}),
            "unexpected property \"ctiy\"; allowed: \"city\", \"days\"; did you mean \"city\"?",
        ),
        (
            json!({"properties": {"maxResults": true}, "additionalProperties": false}),
            json!({"max_results": 1}),
            "unexpected property \"max_results\"; allowed: \"maxResults\"; did you mean \"maxResults\"?",
        ),
        (
            json!({"properties": {"city": true}, "additionalProperties": false}),
            json!({"weather": 1}),
            "unexpected property \"weather\"; allowed: \"city\"",
        ),
        (json!({"unevaluatedProperties": false}), json!({"x": 1}), "unexpected property \"x\""),
        (json!({"minimum": 1}), json!(0), "expected a number of at least 1, found 0"),
        (json!({"multipleOf": 5}), json!(7), "expected a multiple of 5, found 7"),
        (
            json!({"minLength": 3}),
            json!("a"),
            "expected a string of at least 3 characters, found \"a\" (1 character)",
        ),
        (
            json!({"pattern": "^a"}),
            json!("b"),
            "expected a string that matches the pattern \"^a\", found \"b\"",
        ),
        (
            json!({"minItems": 2, "maxItems": 3}),
            json!([1]),
            "expected an array of 2 to 3 items, found 1 item",
        ),
        (
            json!({"prefixItems": [true], "items": false}),
            json!([1, 2]),
            "expected an array of at most 1 item, found 2 items",
        ),
        (
            json!({"uniqueItems": true}),
            json!([3, 4, 3]),
            "expected items that all differ, found 3 at both 0 and 2",
        ),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            "expected an array with at least 1 matching item (a string), found 0 matching items",
        ),
        (
            json!({"minProperties": 2}),
            json!({}),
            "expected an object of at least 2 properties, found 0 properties",
        ),
        (json!({"not": {"type": "null"}}), json!(null), "expected anything but null, found null"),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "expected property names that are a string of at most 1 character, found \"ab\"",
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            "expected a value that fits exactly one of the alternatives, found 3, which fits several",
        ),
    ];
    for (schema, instance, expected) in cases {
        assert_eq!(said(&schema, &instance), expected, "{schema}");
    }
}

#[test]
fn paths_are_pointers_and_violations_are_joined() {
    let schema = json!({
        "required": ["city"],
        "properties": {"days": {"items": {"type": "integer"}}, "a/b~c": {"type": "null"}},
    });
    let instance = json!({"days": [1, "two"], "a/b~c": 0});
    let violations = Schema::compile(&schema).unwrap().validate(&instance).unwrap_err();
    let mut said: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(said.join("; "), violations.to_string());
    said.sort();
    let expected = [
        "/a~1b~0c: expected null, found 0",
        "/days/1: expected an integer, found the string \"two\"",
        "missing required property \"city\"",
    ];
    assert_eq!(said, expected);
    let missing = violations.iter().next().unwrap();
    assert_eq!((missing.expected.as_str(), missing.found.as_str()), ("the property \"city\"", "nothing"));
}

#[test]
fn alternatives_report_the_one_that_was_meant() {
    let optional = json!({"anyOf": [{"type": "object", "required": ["id"]}, {"type": "null"}]});
    assert_eq!(said(&optional, &json!({})), "missing required property \"id\"");
    assert_eq!(said(&optional, &json!(1)), "expected an object, or null, found 1");
    let tagged = json!({"oneOf": [
        {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
        {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
    ]});
    assert_eq!(said(&tagged, &json!({"kind": "square"})), "missing required property \"side\"");
    assert_eq!(
        said(&tagged, &json!({"kind": "circle", "radius": "big"})),
        "/radius: expected a number, found the string \"big\""
    );
    let unclear = said(&tagged, &json!({"kind": "oval", "radius": 1, "side": 1}));
    assert!(
        unclear.starts_with("expected \"circle\" at /kind, or \"square\" at /kind, found the object"),
        "{unclear}"
    );
}

#[test]
fn large_values_are_shortened_between_characters() {
    let long = json!("é".repeat(10_000));
    let found = Schema::compile(&json!({"type": "integer"})).unwrap().validate(&long).unwrap_err();
    let found = &found.iter().next().unwrap().found;
    assert!(found.ends_with("é…"), "{found}");
    assert!(found.chars().count() <= "the string ".len() + MAX_SHOWN_CHARS + 1, "{found}");
    let nested = json!({"a".repeat(500): ["b".repeat(500), {"c": ["d".repeat(500)]}]});
    assert!(said(&json!({"type": "integer"}), &nested).chars().count() < 120);
    let many: Vec<String> = (0..1000).map(|n| format!("choice {n}")).collect();
    assert!(said(&json!({"enum": many}), &json!("x")).ends_with("and 980 more, found \"x\""));
}

#[test]
fn long_paths_are_cut() {
    let schema = json!({"additionalProperties": {"additionalProperties": {"type": "null"}}});
    let key = "k/".repeat(5_000);
    let instance = json!({key.as_str(): {key.as_str(): 1}});
    let said = said(&schema, &instance);
    assert!(said.contains("…: expected null, found 1") && said.chars().count() < 600, "{said}");
}
