use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn compile(schema: &Value) -> Result<HeaderPlan, HeaderPlanError> {
    HeaderPlan::compile(object(schema))
}

fn fault(schema: &Value) -> (String, HeaderPlanFault) {
    let error = compile(schema).unwrap_err();
    (error.pointer, error.fault)
}

/// A plan with one header of each type, the last of them nested.
fn plan() -> HeaderPlan {
    let nested =
        json!({ "type": "object", "properties": { "flag": { "type": "boolean", "x-mcp-header": "Flag" } } });
    compile(&json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "x-mcp-header": "Text" },
            "count": { "type": ["integer", "null"], "x-mcp-header": "Count" },
            "options": nested,
            "query": { "type": "string" },
        },
    }))
    .unwrap()
}

fn check(arguments: &Value, headers: &[(&str, &'static str)]) -> Result<(), (String, MismatchReason)> {
    let lookup = |name: &str| headers.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    plan()
        .check(object(arguments), lookup)
        .map_err(|mismatch| (mismatch.header.into_owned(), mismatch.reason))
}

const TEXT: &str = "mcp-param-text";
const COUNT: &str = "mcp-param-count";
const FLAG: &str = "mcp-param-flag";

#[test]
fn values_that_no_header_can_hold_are_encoded() {
    for (value, header) in [
        ("us-west1", "us-west1"),
        ("two words", "two words"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        (" left", "=?base64?IGxlZnQ=?="),
        ("right ", "=?base64?cmlnaHQg?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\tb", "=?base64?YQli?="),
        ("\u{7F}", "=?base64?fw==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?open", "=?base64?open"),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
    ] {
        assert_eq!(encode_value(value), header, "{value:?}");
        assert_eq!(decode_value(header).as_deref(), Ok(value), "{header:?}");
    }
}

#[test]
fn what_is_marked_as_base64_must_be_base64() {
    use InvalidHeaderValue::{Base64, Characters, Utf8};
    for (header, fault) in [
        ("=?base64?SGVsbG8?=", Base64),
        ("=?base64?SGVs!!!bG8=?=", Base64),
        ("=?base64?_-8=?=", Base64),
        ("=?base64?SGVsbG9=?=", Base64),
        ("=?base64?/w==?=", Utf8),
        ("ä", Characters),
        ("a\u{1}b", Characters),
    ] {
        assert_eq!(decode_value(header), Err(fault), "{header:?}");
    }
}

#[test]
fn what_lacks_a_marker_stands_for_itself() {
    for (header, value) in [
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?base64?=", "=?base64?="),
        ("=?base64??=", ""),
        ("  around\t", "around"),
        ("a\tb", "a\tb"),
    ] {
        assert_eq!(decode_value(header).as_deref(), Ok(value), "{header:?}");
    }
}

#[test]
fn the_standard_headers_are_compared_with_the_body() {
    use MismatchReason::{Different, Invalid, Missing};
    let reason = |result: Result<(), HeaderMismatch>| result.map_err(|mismatch| mismatch.reason);
    assert_eq!(reason(check_method(Some("tools/list"), "tools/list")), Ok(()));
    assert_eq!(reason(check_method(Some("TOOLS/LIST"), "tools/list")), Err(Different));
    assert_eq!(reason(check_method(None, "tools/list")), Err(Missing));
    assert_eq!(reason(check_version(Some("2026-07-28"), "2026-07-28")), Ok(()));
    assert_eq!(reason(check_version(Some("2025-11-25"), "2026-07-28")), Err(Different));
    assert_eq!(reason(check_name(Some("  add  "), "add")), Ok(()));
    assert_eq!(reason(check_name(Some("=?base64?YWRk?="), "add")), Ok(()));
    assert_eq!(reason(check_name(Some("other"), "add")), Err(Different));
    assert_eq!(reason(check_name(Some("=?base64?YWR?="), "add")), Err(Invalid(InvalidHeaderValue::Base64)));
    assert_eq!(reason(check_name(None, "add")), Err(Missing));
}

#[test]
fn a_plan_is_read_from_properties_at_any_depth() {
    assert_eq!(plan().names().collect::<Vec<_>>().len(), 3);
    assert!(compile(&json!({ "type": "object" })).unwrap().is_empty());
}

#[test]
fn annotations_that_break_the_rules_are_found() {
    use HeaderPlanFault::{Duplicate, NotAToken, NotPrimitive};
    let annotated = |schema_type: Value, name: Value| json!({ "type": schema_type, "x-mcp-header": name });
    let with = |property: Value| json!({ "type": "object", "properties": { "a/b": property } });
    for name in [json!(""), json!("a b"), json!("a:b"), json!("ä"), json!("a\r\n"), json!(1), json!(null)] {
        let schema = with(annotated(json!("string"), name));
        assert_eq!(fault(&schema), ("/properties/a~1b".to_owned(), NotAToken), "{schema}");
    }
    for schema_type in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["null"]),
        json!(["string", "integer"]),
        json!(null),
    ] {
        let schema = with(annotated(schema_type, json!("A")));
        assert_eq!(fault(&schema), ("/properties/a~1b".to_owned(), NotPrimitive), "{schema}");
    }
    let two = json!({ "properties": { "a": annotated(json!("string"), json!("Region")),
                                      "b": annotated(json!("string"), json!("REGION")) } });
    assert_eq!(fault(&two), ("/properties/b".to_owned(), Duplicate));
}

#[test]
fn annotations_are_allowed_under_properties_only() {
    let annotated = json!({ "type": "string", "x-mcp-header": "A" });
    let inside = json!({ "properties": { "a": annotated } });
    for schema in [
        annotated.clone(),
        json!({ "items": annotated }),
        json!({ "prefixItems": [annotated] }),
        json!({ "anyOf": [inside] }),
        json!({ "oneOf": [{ "not": inside }] }),
        json!({ "if": inside }),
        json!({ "$defs": { "x": annotated } }),
        json!({ "$defs": { "x": inside } }),
        json!({ "patternProperties": { "^x": annotated } }),
        json!({ "additionalProperties": annotated }),
        json!({ "dependentSchemas": { "x": inside } }),
        json!({ "properties": { "list": { "type": "array", "items": inside } } }),
        json!({ "properties": { "list": { "allOf": [inside] } } }),
    ] {
        assert_eq!(fault(&schema).1, HeaderPlanFault::NotReachable, "{schema}");
    }
}

#[test]
fn only_annotations_are_taken_for_annotations() {
    for schema in [
        json!({ "properties": { "x-mcp-header": { "type": "string" } } }),
        json!({ "default": { "x-mcp-header": "A" } }),
        json!({ "examples": [{ "x-mcp-header": "A" }] }),
        json!({ "enum": [{ "x-mcp-header": "A" }], "const": { "x-mcp-header": "A" } }),
        json!({ "dependentRequired": { "x-mcp-header": ["a"] } }),
        json!({ "properties": [], "items": true }),
    ] {
        assert!(compile(&schema).unwrap().is_empty(), "{schema}");
    }
}

#[test]
fn a_client_sends_what_is_there() {
    let headers = |arguments: Value| {
        let mut headers = plan().headers(object(&arguments));
        headers.sort();
        headers
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let all = json!({ "text": "ä", "count": -7, "options": { "flag": true }, "query": "no" });
    assert_eq!(headers(all), [pair(COUNT, "-7"), pair(FLAG, "true"), pair(TEXT, "=?base64?w6Q=?=")]);
    assert_eq!(headers(json!({ "text": "", "count": 42.0 })), [pair(COUNT, "42"), pair(TEXT, "")]);
    assert_eq!(headers(json!({ "text": null, "options": {} })), []);
    assert_eq!(headers(json!({ "text": [], "count": 1.5, "options": 1 })), []);
}

#[test]
fn a_server_compares_what_was_sent() {
    use MismatchReason::{Different, Invalid, Missing, OutOfRange, Unexpected};
    let no = |header: &str, reason| Err((header.to_owned(), reason));
    let text = json!({ "text": "Hello" });
    assert_eq!(check(&text, &[(TEXT, "Hello")]), Ok(()));
    assert_eq!(check(&text, &[(TEXT, "=?base64?SGVsbG8=?=")]), Ok(()));
    assert_eq!(check(&text, &[(TEXT, "hello")]), no(TEXT, Different));
    assert_eq!(check(&text, &[(TEXT, "=?base64?SGVsbG8?=")]), no(TEXT, Invalid(InvalidHeaderValue::Base64)));
    assert_eq!(check(&text, &[]), no(TEXT, Missing));
    assert_eq!(check(&text, &[(TEXT, "Hello"), (FLAG, "true")]), no(FLAG, Unexpected));
    assert_eq!(check(&json!({ "text": null }), &[]), Ok(()));
    assert_eq!(check(&json!({ "text": null }), &[(TEXT, "null")]), no(TEXT, Unexpected));
    assert_eq!(check(&json!({ "text": {} }), &[(TEXT, "{}")]), no(TEXT, Different));

    let count = json!({ "count": 42 });
    for same in ["42", "42.0", "4.2e1", "=?base64?NDI=?="] {
        assert_eq!(check(&count, &[(COUNT, same)]), Ok(()), "{same}");
    }
    for other in ["43", "42.5", "", "forty-two", "\"42\"", "0x2A", "+42", "042"] {
        assert_eq!(check(&count, &[(COUNT, other)]), no(COUNT, Different), "{other}");
    }
    assert_eq!(check(&json!({ "count": 42.0 }), &[(COUNT, "42")]), Ok(()));
    assert_eq!(check(&json!({ "count": -(1_i64 << 53) + 1 }), &[(COUNT, "-9007199254740991")]), Ok(()));
    assert_eq!(
        check(&json!({ "count": 1_i64 << 53 }), &[(COUNT, "9007199254740992")]),
        no(COUNT, OutOfRange)
    );

    let flag = json!({ "options": { "flag": false } });
    assert_eq!(check(&flag, &[(FLAG, "false")]), Ok(()));
    assert_eq!(check(&flag, &[(FLAG, "False")]), no(FLAG, Different));
    assert_eq!(check(&flag, &[]), no(FLAG, Missing));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_survives_its_header(value: String) {
        let header = encode_value(&value);
        prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        prop_assert_eq!(header.trim(), &header);
        let decoded = decode_value(&header);
        prop_assert_eq!(decoded.as_deref(), Ok(value.as_str()));
    }

    #[test]
    fn any_header_is_read_or_refused(header: String, inner in "[A-Za-z0-9+/=]{0,12}") {
        let _ = decode_value(&header);
        let _ = decode_value(&format!("=?base64?{inner}?="));
    }

    #[test]
    fn what_a_client_sends_a_server_accepts(
        text: Option<String>,
        count in prop::option::of(-9_007_199_254_740_991_i64..=9_007_199_254_740_991),
        flag: Option<bool>,
    ) {
        let arguments = json!({ "text": text, "count": count, "options": { "flag": flag } });
        let headers = plan().headers(object(&arguments));
        let lookup = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        prop_assert_eq!(plan().check(object(&arguments), lookup), Ok(()));
    }
}

#[test]
fn a_plan_costs_no_more_than_its_schema() {
    use serde_json::{Map, Value, json};
    // A pointer to each of these places would take sixteen gigabytes.
    let name = "n".repeat(800_000);
    let many: Map<String, Value> =
        (0..20_000).map(|at| (at.to_string(), json!({"type": "string"}))).collect();
    let plan = |leaf: &Value| {
        let mut many = many.clone();
        many.insert("last".to_owned(), leaf.clone());
        let schema = json!({"properties": {name.as_str(): {"properties": many}}});
        HeaderPlan::compile(schema.as_object().unwrap())
    };
    assert!(plan(&json!({"type": "string"})).unwrap().is_empty());
    let error = plan(&json!({"type": "number", "x-mcp-header": "a"})).unwrap_err();
    assert_eq!(error.fault, HeaderPlanFault::NotPrimitive);
    assert_eq!(error.pointer, format!("/properties/{}/properties/last", "n".repeat(60)));
    // A name that would have to be kept for each header below it.
    let error = plan(&json!({"type": "string", "x-mcp-header": "a"})).unwrap_err();
    assert_eq!(error.fault, HeaderPlanFault::TooLong);
    assert!(error.to_string().contains("MAX_PLAN_BYTES"), "{error}");
}

#[test]
fn a_tool_has_a_limited_number_of_headers() {
    use serde_json::{Map, Value, json};
    let schema = |count: usize| {
        let property =
            |at: usize| (at.to_string(), json!({"type": "string", "x-mcp-header": format!("h{at}")}));
        let properties: Map<String, Value> = (0..count).map(property).collect();
        HeaderPlan::compile(json!({"properties": properties}).as_object().unwrap())
    };
    assert_eq!(schema(MAX_PLAN_HEADERS).unwrap().names().count(), MAX_PLAN_HEADERS);
    let error = schema(MAX_PLAN_HEADERS + 1).unwrap_err();
    assert_eq!(error.fault, HeaderPlanFault::TooMany);
    assert!(error.to_string().contains("MAX_PLAN_HEADERS"), "{error}");
    let deep = (0..130).fold(json!({}), |inner, _| json!({"not": inner}));
    assert_eq!(HeaderPlan::compile(deep.as_object().unwrap()).unwrap_err().fault, HeaderPlanFault::TooDeep);
}
