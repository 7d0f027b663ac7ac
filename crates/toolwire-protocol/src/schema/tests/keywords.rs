//! One test per keyword or group of keywords.

use serde_json::json;

use super::{accepts, compile_error, rejects};

#[test]
fn boolean_schemas() {
    accepts(&json!(true), &[json!(1), json!(null)]);
    rejects(&json!(false), &[json!(1), json!(null)]);
    accepts(&json!({}), &[json!([]), json!("x")]);
}

#[test]
fn type_of_each_kind() {
    accepts(&json!({"type": "integer"}), &[json!(1), json!(1.0), json!(-3), json!(u64::MAX), json!(1e300)]);
    rejects(&json!({"type": "integer"}), &[json!(1.5), json!("1"), json!(null), json!(true)]);
    accepts(&json!({"type": "number"}), &[json!(1), json!(1.5)]);
    accepts(&json!({"type": ["string", "null"]}), &[json!("a"), json!(null)]);
    rejects(&json!({"type": ["string", "null"]}), &[json!(0), json!([]), json!({})]);
    rejects(&json!({"type": "object"}), &[json!([])]);
    rejects(&json!({"type": "array"}), &[json!({})]);
    rejects(&json!({"type": "boolean"}), &[json!(0)]);
    rejects(&json!({"type": "null"}), &[json!(false)]);
}

#[test]
fn enum_and_const_compare_as_json() {
    accepts(
        &json!({"enum": [1, "a", null, {"x": [1]}]}),
        &[json!(1.0), json!("a"), json!(null), json!({"x": [1.0]})],
    );
    rejects(&json!({"enum": [1, "a"]}), &[json!(2), json!(true), json!("A")]);
    accepts(&json!({"const": {"a": 1, "b": 2}}), &[json!({"b": 2, "a": 1})]);
    rejects(&json!({"const": [1, 2]}), &[json!([2, 1]), json!([1])]);
    rejects(&json!({"const": 9_007_199_254_740_993_u64}), &[json!(9_007_199_254_740_992.0)]);
    rejects(&json!({"enum": []}), &[json!(1)]);
}

#[test]
fn limits_of_numbers() {
    accepts(&json!({"minimum": 1, "maximum": 2}), &[json!(1), json!(2.0), json!("x")]);
    rejects(&json!({"minimum": 1, "maximum": 2}), &[json!(0), json!(2.001)]);
    rejects(&json!({"exclusiveMinimum": 1, "exclusiveMaximum": 2}), &[json!(1), json!(2)]);
    accepts(&json!({"exclusiveMinimum": 1, "exclusiveMaximum": 2}), &[json!(1.5)]);
    rejects(&json!({"maximum": i64::MAX}), &[json!(9.3e18)]);
    rejects(&json!({"minimum": -0.5}), &[json!(-1)]);
}

#[test]
fn multiple_of_is_decimal() {
    accepts(&json!({"multipleOf": 0.01}), &[json!(19.99), json!(4.35), json!(0), json!(1e300), json!(-0.07)]);
    rejects(&json!({"multipleOf": 0.01}), &[json!(0.075), json!(1e-9)]);
    accepts(&json!({"multipleOf": 1e-8}), &[json!(12_391_239_123_u64)]);
    rejects(&json!({"multipleOf": 0.123_456_789}), &[json!(1e308)]);
    rejects(&json!({"multipleOf": 1e300}), &[json!(1)]);
    accepts(&json!({"multipleOf": u64::MAX}), &[json!(u64::MAX)]);
    rejects(&json!({"multipleOf": 3}), &[json!(4), json!(3.5)]);
}

#[test]
fn strings_count_characters() {
    accepts(&json!({"minLength": 2, "maxLength": 2}), &[json!("éé"), json!("💩💩"), json!(1)]);
    rejects(&json!({"minLength": 2, "maxLength": 2.0}), &[json!("é"), json!("abc")]);
}

#[test]
fn patterns_search_anywhere() {
    accepts(&json!({"pattern": "b+"}), &[json!("abc"), json!(12)]);
    rejects(&json!({"pattern": "^b+$"}), &[json!("abc"), json!("b\n")]);
    accepts(&json!({"pattern": "^.$"}), &[json!("💩")]);
}

#[test]
fn items_of_arrays() {
    let schema = json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
    accepts(&schema, &[json!([]), json!(["a"]), json!(["a", 1, 2]), json!("no array")]);
    rejects(&schema, &[json!([1]), json!(["a", "b"])]);
    rejects(&json!({"prefixItems": [true], "items": false}), &[json!([1, 2])]);
    rejects(&json!({"minItems": 1, "maxItems": 2}), &[json!([]), json!([1, 2, 3])]);
}

#[test]
fn unique_items() {
    accepts(&json!({"uniqueItems": true}), &[json!([1, true, "1", [1], {"a": 1}, null, false, 0])]);
    rejects(
        &json!({"uniqueItems": true}),
        &[json!([1, 2, 1.0]), json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}])],
    );
    accepts(&json!({"uniqueItems": false}), &[json!([1, 1])]);
    let different = json!([1, -1, 0, 0.5, "0.5", 1e300, 9_223_372_036_854_775_807_u64, 9_223_372_036_854_775_808_u64, [], {}, "", [[]], [{}], {"a": {}}]);
    accepts(&json!({"uniqueItems": true}), &[different]);
    rejects(
        &json!({"uniqueItems": true}),
        &[
            json!([0, -0.0]),
            json!([18_446_744_073_709_551_615_u64, 1, 18_446_744_073_709_551_615_u64]),
            json!([9_223_372_036_854_775_808_u64, 9_223_372_036_854_775_808.0]),
            json!([1e300, 1e300]),
            json!([{"a": [1], "b": {"c": 1, "d": 2.0}}, 0, {"b": {"d": 2, "c": 1}, "a": [1.0]}]),
        ],
    );
}

#[test]
fn contains_with_counts() {
    rejects(&json!({"contains": {"const": 1}}), &[json!([]), json!([2])]);
    accepts(&json!({"contains": {"const": 1}, "minContains": 0}), &[json!([])]);
    rejects(&json!({"contains": {"const": 1}, "maxContains": 1}), &[json!([1, 1])]);
    rejects(&json!({"contains": {"const": 1}, "minContains": 2}), &[json!([1, 2])]);
    accepts(&json!({"minContains": 2}), &[json!([])]);
}

#[test]
fn properties_of_objects() {
    let schema = json!({
        "properties": {"a": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": {"type": "null"},
    });
    accepts(&schema, &[json!({"a": 1, "x-b": "", "c": null}), json!(3)]);
    rejects(&schema, &[json!({"a": ""}), json!({"x-b": 1}), json!({"c": 1})]);
    rejects(&json!({"properties": {"a": false}}), &[json!({"a": 1})]);
    rejects(&json!({"minProperties": 1, "maxProperties": 1}), &[json!({}), json!({"a": 1, "b": 1})]);
    rejects(&json!({"required": ["a", "b"]}), &[json!({"a": 1})]);
    rejects(&json!({"propertyNames": {"maxLength": 1}}), &[json!({"ab": 1})]);
}

#[test]
fn dependent_keywords() {
    rejects(&json!({"dependentRequired": {"a": ["b"]}}), &[json!({"a": 1})]);
    accepts(&json!({"dependentRequired": {"a": ["b"]}}), &[json!({"a": 1, "b": 1}), json!({"b": 1})]);
    rejects(&json!({"dependentSchemas": {"a": {"minProperties": 2}}}), &[json!({"a": 1})]);
    accepts(&json!({"dependentSchemas": {"a": {"minProperties": 2}}}), &[json!({"b": 1})]);
}

#[test]
fn combinations() {
    rejects(&json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), &[json!(0), json!(3)]);
    rejects(&json!({"anyOf": [{"type": "string"}, {"minimum": 1}]}), &[json!(0)]);
    accepts(&json!({"anyOf": [{"type": "string"}, {"minimum": 1}]}), &[json!("a"), json!(1)]);
    let one = json!({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]});
    accepts(&one, &[json!(2), json!(3)]);
    rejects(&one, &[json!(6), json!(1)]);
    rejects(&json!({"not": {"type": "string"}}), &[json!("a")]);
    accepts(&json!({"not": {"type": "string"}}), &[json!(1)]);
}

#[test]
fn conditions() {
    let schema = json!({"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 3}});
    accepts(&schema, &[json!(20), json!(9)]);
    rejects(&schema, &[json!(21), json!(8)]);
    accepts(&json!({"then": false, "else": false}), &[json!(1)]);
    accepts(&json!({"if": false, "then": false}), &[json!(1)]);
}

#[test]
fn unevaluated_properties_look_through_combinations() {
    let schema = json!({
        "allOf": [{"properties": {"a": true}}],
        "anyOf": [{"required": ["b"], "properties": {"b": true}}, {"properties": {"c": {"type": "string"}}}],
        "if": {"required": ["d"]}, "then": {"properties": {"d": true, "e": true}},
        "dependentSchemas": {"a": {"properties": {"f": true}}},
        "unevaluatedProperties": false,
    });
    accepts(&schema, &[json!({"a": 1, "f": 1}), json!({"b": 1, "c": "x"}), json!({"d": 1, "e": 1})]);
    rejects(&schema, &[json!({"f": 1}), json!({"e": 1}), json!({"b": 1, "c": 2}), json!({"z": 1})]);
    rejects(
        &json!({"not": {"not": {"properties": {"a": true}}}, "unevaluatedProperties": false}),
        &[json!({"a": 1})],
    );
    let cousins = json!({"allOf": [{"properties": {"a": true}}, {"unevaluatedProperties": false}]});
    rejects(&cousins, &[json!({"a": 1})]);
    let nested =
        json!({"allOf": [{"additionalProperties": {"type": "integer"}}], "unevaluatedProperties": false});
    accepts(&nested, &[json!({"a": 1})]);
}

#[test]
fn unevaluated_items_look_through_combinations() {
    let schema = json!({
        "prefixItems": [true],
        "anyOf": [{"prefixItems": [true, {"const": 2}]}, true],
        "contains": {"type": "string"}, "minContains": 0,
        "unevaluatedItems": false,
    });
    accepts(&schema, &[json!([1]), json!([1, 2]), json!([1, 2, "a"]), json!([1, "a"])]);
    rejects(&schema, &[json!([1, 3]), json!([1, 2, 3])]);
    rejects(&json!({"unevaluatedItems": {"type": "string"}}), &[json!([1])]);
}

#[test]
fn draft_07_spellings() {
    let tuple = json!({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}});
    accepts(&tuple, &[json!(["a", 1])]);
    rejects(&tuple, &[json!([1]), json!(["a", "b"])]);
    rejects(&json!({"items": [true], "additionalItems": false}), &[json!([1, 2])]);
    accepts(&json!({"items": {"type": "integer"}, "additionalItems": false}), &[json!([1, 2])]);
    let dependencies = json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}, "e": false}});
    accepts(&dependencies, &[json!({"a": 1, "b": 1}), json!({"c": 1, "d": 1}), json!({})]);
    rejects(&dependencies, &[json!({"a": 1}), json!({"c": 1}), json!({"e": 1})]);
}

#[test]
fn format_is_only_an_annotation() {
    accepts(&json!({"format": "email"}), &[json!("not an address")]);
}

#[test]
fn malformed_keywords_are_errors_with_their_place() {
    let cases = [
        (json!({"type": "strin"}), "/type"),
        (json!({"type": []}), "/type"),
        (json!({"properties": {"a/b": {"minLength": -1}}}), "/properties/a~1b/minLength"),
        (json!({"minItems": 1.5}), "/minItems"),
        (json!({"required": "a"}), "/required"),
        (json!({"required": [1]}), "/required"),
        (json!({"allOf": []}), "/allOf"),
        (json!({"anyOf": {}}), "/anyOf"),
        (json!({"allOf": [true, 7]}), "/allOf/1"),
        (json!({"multipleOf": 0}), "/multipleOf"),
        (json!({"minimum": "1"}), "/minimum"),
        (json!({"uniqueItems": "yes"}), "/uniqueItems"),
        (json!({"enum": 1}), "/enum"),
        (json!({"pattern": 1}), "/pattern"),
        (json!({"$ref": 1}), "/$ref"),
        (json!({"dependentRequired": {"a": true}}), "/dependentRequired"),
        (json!("x"), ""),
    ];
    for (schema, path) in cases {
        assert_eq!(compile_error(&schema).path, path, "{schema}");
    }
    let error = compile_error(&json!({"minLength": "3"}));
    let words =
        "invalid schema at /minLength: must be a whole number that is not negative, not the string \"3\"";
    assert_eq!(error.to_string(), words);
}
