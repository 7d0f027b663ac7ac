//! Random schemas and values, judged by us and by an independent implementation.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use crate::schema::{Schema, elicitation_schema, inline_local_refs};

const NAMES: [&str; 4] = ["a", "b", "ab", "c"];

fn scalar() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..6_i64).prop_map(Value::from),
        select(vec![0.5, 1.0, 1.5, -2.0, 2.5]).prop_map(Value::from),
        select(vec!["", "a", "b", "ab", "abc", "é", "💩x"]).prop_map(Value::from),
    ]
    .boxed()
}

fn instance() -> BoxedStrategy<Value> {
    scalar()
        .prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::Array),
                vec((select(NAMES.to_vec()), inner), 0..4).prop_map(object),
            ]
        })
        .boxed()
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn names() -> BoxedStrategy<Value> {
    proptest::sample::subsequence(NAMES.to_vec(), 0..3).prop_map(|names| json!(names)).boxed()
}

type Keyword = BoxedStrategy<(&'static str, Value)>;

/// One keyword without subschemas.
fn assertion() -> Keyword {
    let types = select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let several = proptest::sample::subsequence(vec!["null", "integer", "string", "array", "object"], 1..4);
    let counts = select(vec![
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    ]);
    let bounds = select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
    prop_oneof![
        3 => types.prop_map(|name| ("type", json!(name))),
        1 => several.prop_map(|names| ("type", json!(names))),
        1 => vec(instance(), 1..4).prop_map(|values| ("enum", json!(values))),
        1 => instance().prop_map(|value| ("const", value)),
        3 => (counts, 0..4_u64).prop_map(|(keyword, count)| (keyword, json!(count))),
        2 => (bounds, -2..4_i64).prop_map(|(keyword, bound)| (keyword, json!(bound))),
        1 => select(vec![json!(2), json!(0.5), json!(1.5)]).prop_map(|divisor| ("multipleOf", divisor)),
        1 => select(vec!["^a", "b$", "^.$", "[ab]{2}"]).prop_map(|pattern| ("pattern", json!(pattern))),
        1 => any::<bool>().prop_map(|unique| ("uniqueItems", json!(unique))),
        2 => names().prop_map(|names| ("required", names)),
        1 => (select(NAMES.to_vec()), names()).prop_map(|(name, needed)| ("dependentRequired", json!({name: needed}))),
    ]
    .boxed()
}

/// One keyword with subschemas.
fn applicator(schema: BoxedStrategy<Value>) -> Keyword {
    let single = select(vec![
        "items",
        "contains",
        "additionalProperties",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]);
    let list = select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
    let map = select(vec!["properties", "dependentSchemas"]);
    let members = vec((select(NAMES.to_vec()), schema.clone()), 1..4);
    let patterns = vec((select(vec!["^a", "b$"]), schema.clone()), 1..3);
    prop_oneof![
        4 => (single, schema.clone()).prop_map(|(keyword, schema)| (keyword, schema)),
        3 => (list, vec(schema, 1..4)).prop_map(|(keyword, list)| (keyword, Value::Array(list))),
        3 => (map, members).prop_map(|(keyword, members)| (keyword, object(members))),
        1 => patterns.prop_map(|members| ("patternProperties", object(members))),
    ]
    .boxed()
}

/// A schema that may refer to the definitions of these names.
fn schema(definitions: &'static [&'static str]) -> BoxedStrategy<Value> {
    let mut keyword = assertion();
    if !definitions.is_empty() {
        let reference = select(definitions).prop_map(|name| ("$ref", json!(format!("#/$defs/{name}"))));
        keyword = prop_oneof![4 => keyword, 1 => reference].boxed();
    }
    let leaf = prop_oneof![
        6 => vec(keyword.clone(), 1..3).prop_map(object),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let keywords = prop_oneof![1 => keyword.clone(), 2 => applicator(inner.boxed())];
        vec(keywords, 1..5).prop_map(object)
    })
    .boxed()
}

/// A document in which the second definition may refer to the first, and the root to both.
fn document() -> BoxedStrategy<Value> {
    (schema(&["x", "y"]), schema(&[]), schema(&["x"]))
        .prop_map(|(root, x, y)| {
            let mut root = root
                .as_object()
                .cloned()
                .unwrap_or_else(|| Map::from_iter([("not".to_owned(), json!(false))]));
            root.insert("$defs".to_owned(), json!({"x": x, "y": y}));
            Value::Object(root)
        })
        .boxed()
}

/// Any keyword with any value, most of them not allowed.
fn nonsense() -> BoxedStrategy<Value> {
    let keywords = vec![
        "$anchor",
        "$defs",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$ref",
        "$schema",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "default",
        "definitions",
        "dependencies",
        "enum",
        "enumNames",
        "if",
        "items",
        "minLength",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "required",
        "then",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    ];
    let texts = vec![
        "#",
        "#/$defs/a",
        "#/properties/a",
        "#a",
        "a",
        "a#b",
        "../a",
        "urn:x",
        "object",
        "string",
        "array",
        "null",
        "(",
        "%",
        "#/%",
        "#/~",
        "http://x/",
        "//",
        "?",
        ".",
    ];
    let leaf = prop_oneof![instance(), select(texts).prop_map(Value::from)];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        prop_oneof![
            4 => vec((select(keywords.clone()), inner.clone()), 1..6).prop_map(object),
            1 => vec((select(NAMES.to_vec()), inner.clone()), 1..4).prop_map(object),
            1 => vec(inner, 0..4).prop_map(Value::Array),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_agree_with_another_implementation(document in document(), instances in vec(instance(), 8)) {
        let ours = Schema::compile(&document).expect("only valid schemas are generated");
        let theirs = jsonschema::draft202012::new(&document).expect("only valid schemas are generated");
        for instance in &instances {
            prop_assert_eq!(ours.is_valid(instance), theirs.is_valid(instance), "{} with {}", document, instance);
            prop_assert_eq!(ours.validate(instance).is_ok(), theirs.is_valid(instance), "{} with {}", document, instance);
        }
    }

    #[test]
    fn nonsense_is_refused_or_used_but_never_panics(schema in nonsense(), instance in instance()) {
        if let Ok(schema) = Schema::compile(&schema) {
            prop_assert_eq!(schema.validate(&instance).is_ok(), schema.is_valid(&instance));
        }
        if let Ok(inlined) = inline_local_refs(schema.clone()) {
            let again = inline_local_refs(inlined.clone());
            prop_assert_eq!(again, Ok(inlined), "inlining twice changes nothing");
        }
        if let Ok(asked) = elicitation_schema(&schema) {
            prop_assert!(Schema::compile(&asked).is_ok(), "{}", asked);
        }
    }

    #[test]
    fn verdicts_survive_inlining(document in document(), instances in vec(instance(), 8)) {
        let before = Schema::compile(&document).expect("only valid schemas are generated");
        let inlined = inline_local_refs(document.clone()).expect("the documents are small");
        prop_assert!(!inlined.to_string().contains("$defs"), "{}", inlined);
        let after = Schema::compile(&inlined).expect("what was inlined is a schema");
        for instance in &instances {
            prop_assert_eq!(before.is_valid(instance), after.is_valid(instance), "{} with {}", document, instance);
        }
    }
}
