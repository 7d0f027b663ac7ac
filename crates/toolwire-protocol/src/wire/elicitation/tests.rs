use super::*;
use crate::wire::{
    Keyed,
    tests::{refusal, round_trip},
};

#[test]
fn every_form_of_a_field_is_recognised() {
    use PrimitiveSchemaDefinition as Definition;
    type Check = fn(&Definition) -> bool;
    let cases: [(&str, Check); 10] = [
        (r#"{"type":"string","format":"email","minLength":1,"maxLength":9,"default":"d"}"#, |field| {
            matches!(field, Definition::String(_))
        }),
        (r#"{"type":"string","format":"hostname","x-new":1}"#, |field| {
            matches!(field, Definition::String(_))
        }),
        (
            r#"{"type":"number","minimum":0,"maximum":1.5,"default":50}"#,
            |field| matches!(field, Definition::Number(schema) if schema.kind == NumberKind::Number),
        ),
        (
            r#"{"type":"integer","title":"t"}"#,
            |field| matches!(field, Definition::Number(schema) if schema.kind == NumberKind::Integer),
        ),
        (r#"{"type":"boolean","default":false}"#, |field| matches!(field, Definition::Boolean(_))),
        (r#"{"type":"string","enum":["a","b"],"default":"a"}"#, |field| {
            matches!(field, Definition::UntitledSingleSelect(_))
        }),
        (r#"{"type":"string","enum":["a"],"enumNames":["A"]}"#, |field| {
            matches!(field, Definition::LegacyTitled(_))
        }),
        (r#"{"oneOf":[{"const":"a","title":"A"}],"type":"string"}"#, |field| {
            matches!(field, Definition::TitledSingleSelect(_))
        }),
        (
            r#"{"type":"array","items":{"type":"string","enum":["a"]},"minItems":1,"default":["a"]}"#,
            |field| matches!(field, Definition::UntitledMultiSelect(_)),
        ),
        (r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]},"maxItems":2}"#, |field| {
            matches!(field, Definition::TitledMultiSelect(_))
        }),
    ];
    for (text, is_right) in cases {
        let field: Definition = round_trip(text);
        assert!(is_right(&field), "{text}: {field:?}");
    }
}

#[test]
fn a_field_that_no_form_has_is_refused() {
    for (text, part) in [
        (r#"{"type":"object"}"#, "unknown variant `object`"),
        (r#"{"title":"t"}"#, "missing field `type`"),
        (r#"{"type":"string","type":"string"}"#, "duplicate field `type`"),
        (r#"{"type":"number","type":"number"}"#, "duplicate field `type`"),
        (r#"{"type":"array"}"#, "missing field `items`"),
        (r#"{"type":"array","items":7}"#, r#"field "items""#),
        (r#"{"type":"string","oneOf":[{"const":"a"}]}"#, r#"field "oneOf": missing field `title`"#),
    ] {
        let error = refusal::<PrimitiveSchemaDefinition>(text);
        assert!(error.contains(part), "{text}: {error}");
        assert!(error.contains(" at line 1 column "), "{error}");
    }
}

#[test]
fn the_mode_tells_a_form_from_a_url() {
    let schema = r#""message":"m","requestedSchema":{"type":"object","properties":{"z":{"type":"string"},
        "a":{"type":"boolean"}},"required":["z"]}"#;
    let with: ElicitRequestParams = round_trip(&format!(r#"{{{schema},"mode":"form"}}"#));
    let without: ElicitRequestParams = round_trip(&format!("{{{schema}}}"));
    let (ElicitRequestParams::Form(with), ElicitRequestParams::Form(without)) = (&with, &without) else {
        panic!("{with:?} {without:?}")
    };
    assert_eq!((with.mode, without.mode), (Some(ElicitFormMode::Form), None));
    let url: ElicitRequestParams =
        round_trip(r#"{"mode":"url","elicitationId":"1","url":"https://example.com","message":"m"}"#);
    assert_eq!(url.message(), "m");
    assert!(matches!(url, ElicitRequestParams::Url(params) if params.elicitation_id.as_deref() == Some("1")));
    assert!(refusal::<ElicitRequestParams>(r#"{"mode":"voice"}"#).contains("voice"));
    assert!(
        refusal::<ElicitRequestParams>(r#"{"mode":"url","message":"m"}"#).contains("missing field `url`")
    );
}

#[test]
fn a_form_keeps_the_order_of_its_fields() {
    let text = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"boolean"}}}"#;
    let schema: RequestedSchema = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&schema).unwrap(), text);
    let built = RequestedSchema::new(Keyed::from([
        ("z", PrimitiveSchemaDefinition::from(StringSchema::new())),
        ("a", BooleanSchema::new().into()),
    ]));
    assert_eq!(built, schema);
}

#[test]
fn an_answer_has_one_of_three_actions() {
    let accepted: ElicitResult = round_trip(r#"{"action":"accept","content":{"n":1,"l":["a"]}}"#);
    assert_eq!(ElicitResult::accept(accepted.content.clone().unwrap()), accepted);
    assert_eq!(round_trip::<ElicitResult>(r#"{"action":"decline"}"#), ElicitResult::decline());
    assert_eq!(round_trip::<ElicitResult>(r#"{"action":"cancel"}"#), ElicitResult::cancel());
    assert!(refusal::<ElicitResult>(r#"{"action":"maybe"}"#).contains("maybe"));
    round_trip::<ElicitationCompleteNotificationParams>(r#"{"elicitationId":"1"}"#);
}
