use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::{
    CreateMessageResult, OneOrMany, SamplingMessage,
    tests::{refusal, round_trip},
};

#[test]
fn each_kind_is_told_by_its_type() {
    for (kind, text) in [
        (
            "text",
            r#"{"type":"text","text":"hi","annotations":{"audience":["user","assistant"],"priority":1,
            "lastModified":"2025-01-12T15:00:58Z"},"_meta":{"k":1},"new":[]}"#,
        ),
        ("image", r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#),
        ("audio", r#"{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"priority":0.5}}"#),
        (
            "resource",
            r#"{"type":"resource","resource":{"uri":"u","mimeType":"m","text":"t","_meta":{},"x":1}}"#,
        ),
        ("resource", r#"{"type":"resource","resource":{"uri":"u","blob":"AA=="}}"#),
        (
            "resource_link",
            r#"{"type":"resource_link","uri":"u","name":"n","title":"t","description":"d",
            "mimeType":"m","size":12,"icons":[{"src":"s","sizes":["any"],"theme":"sepia"}]}"#,
        ),
        ("tool_use", r#"{"type":"tool_use","id":"1","name":"n","input":{"a":1}}"#),
        (
            "tool_result",
            r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":""}],
            "structuredContent":null,"isError":false}"#,
        ),
        ("video", r#"{"type":"video","data":{"url":"u"},"text":7}"#),
    ] {
        let block: Content = round_trip(text);
        assert_eq!(block.kind(), kind);
        assert_eq!(matches!(block, Content::Other(_)), kind == "video");
    }
}

#[test]
fn a_missing_member_is_named() {
    for (text, name) in [
        (r#"{"text":"x"}"#, "type"),
        (r#"{"type":"text"}"#, "text"),
        (r#"{"type":"image","data":""}"#, "mimeType"),
        (r#"{"mimeType":"m","type":"audio"}"#, "data"),
        (r#"{"type":"resource"}"#, "resource"),
        (r#"{"type":"resource_link","uri":"u"}"#, "name"),
        (r#"{"type":"tool_use","id":"1","name":"n"}"#, "input"),
        (r#"{"type":"tool_result","content":[]}"#, "toolUseId"),
    ] {
        let error = refusal::<Content>(text);
        assert!(error.contains(&format!("missing field `{name}`")), "{text}: {error}");
    }
    let error = refusal::<Content>(r#"{"type":"resource","resource":{"uri":"u"}}"#);
    assert!(error.contains("missing field `text` or `blob`"), "{error}");
}

#[test]
fn wherever_the_type_stands_duplicates_and_wrong_types_are_refused() {
    for text in [
        r#"{"type":"text","text":"a","type":"text"}"#,
        r#"{"type":"text","text":"a","text":"b"}"#,
        r#"{"text":"a","type":"text","text":"b"}"#,
        r#"{"text":"a","text":"b","type":"text"}"#,
        r#"{"x":1,"type":"video","x":1}"#,
        r#"{"type":"video","type":"video"}"#,
    ] {
        let error = refusal::<Content>(text);
        assert!(error.contains("duplicate field"), "{text}: {error}");
    }
    for text in [r#"{"type":"text","text":7}"#, r#"{"text":7,"type":"text"}"#] {
        let error = refusal::<Content>(text);
        assert!(error.contains(r#"field "text": invalid type: integer `7`, expected a string"#), "{error}");
    }
    let error = refusal::<Content>(r#"{"type":7}"#);
    assert!(error.contains(r#"field "type": invalid type"#), "{error}");
}

#[test]
fn json_that_is_passed_on_keeps_its_bytes_wherever_the_type_stands() {
    for text in [
        r#"{"type":"tool_use","id":"1","name":"n","input":{"z": 1.50, "a":12345678901234567890123}}"#,
        r#"{"id":"1","name":"n","input":{"z": 1.50, "a":12345678901234567890123},"type":"tool_use"}"#,
    ] {
        let block: Content = serde_json::from_str(text).unwrap();
        let Content::ToolUse(block) = block else { panic!("{block:?}") };
        assert_eq!(block.input.text(), r#"{"z": 1.50, "a":12345678901234567890123}"#);
    }
}

#[test]
fn content_nested_without_end_is_refused_and_does_not_exhaust_the_stack() {
    const LEVELS: usize = 20_000;
    for (open, close) in [
        (r#"{"type":"tool_result","toolUseId":"1","content":["#, "]}"),
        (r#"{"toolUseId":"1","content":["#, r#"],"type":"tool_result"}"#),
    ] {
        let text = format!("{}{}", open.repeat(LEVELS), close.repeat(LEVELS));
        let error = refusal::<Content>(&text);
        assert!(error.contains("recursion limit"), "{error}");
    }
}

#[test]
fn content_before_its_type_is_read_again_only_a_few_times() {
    let nested = |levels: usize| {
        let (open, close) = (r#"{"toolUseId":"1","content":["#, r#"],"type":"tool_result"}"#);
        format!("{}{}", open.repeat(levels), close.repeat(levels))
    };
    assert!(serde_json::from_str::<Content>(&nested(8)).is_ok());
    let error = refusal::<Content>(&nested(60));
    assert!(error.contains("content is nested deeper than 8 levels"), "{error}");
}

#[test]
fn sampling_content_is_written_in_the_shape_it_came_in() {
    let one: SamplingMessage = round_trip(r#"{"role":"user","content":{"type":"text","text":"a"}}"#);
    assert!(matches!(one.content, OneOrMany::One(_)));
    let many: SamplingMessage = round_trip(r#"{"role":"user","content":[{"type":"text","text":"a"}]}"#);
    assert!(matches!(many.content, OneOrMany::Many(_)));
    assert_eq!(one.content.as_slice(), many.content.as_slice());
    round_trip::<CreateMessageResult>(r#"{"role":"assistant","model":"m","content":[],"stopReason":"odd"}"#);
    let error = refusal::<SamplingMessage>(r#"{"role":"user","content":"a"}"#);
    assert!(error.contains(r#"field "content""#) && error.contains("an object or an array"), "{error}");
    let error = refusal::<SamplingMessage>(r#"{"role":"user","content":[{"type":"text"}]}"#);
    assert!(error.contains("missing field `text`"), "{error}");
}

#[test]
fn constructors_encode_what_needs_encoding() {
    assert_eq!(serde_json::to_value(Content::audio([0, 255], "audio/wav")).unwrap()["data"], "AP8=");
    let blob = ResourceContents::blob("file:///x", [0, 255]).mime_type("m");
    assert_eq!(
        serde_json::to_value(Content::resource(blob)).unwrap(),
        json!({"type": "resource", "resource": {"uri": "file:///x", "mimeType": "m", "blob": "AP8="}})
    );
    let input = RawJson::from(&json!({}));
    assert_eq!(Content::tool_use("1", "n", input).kind(), "tool_use");
    assert_eq!(Content::tool_result("1", ["hi".into()]).kind(), "tool_result");
    assert_eq!(Content::resource_link("u", "n").as_text(), None);
    assert_eq!(Content::from("hi").as_text(), Some("hi"));
}

fn raw() -> impl Strategy<Value = RawJson> {
    prop_oneof![Just(json!(null)), any::<i32>().prop_map(|number| json!({"a": [number, {}]}))]
        .prop_map(|value| RawJson::from(&value))
}

fn annotations() -> impl Strategy<Value = Option<Annotations>> {
    prop::option::of((0..=8_i32, any::<bool>()).prop_map(|(eighths, user)| {
        let role = if user { Role::User } else { Role::Assistant };
        Annotations::new().priority(f64::from(eighths) / 8.0).audience([role])
    }))
}

fn leaves() -> impl Strategy<Value = Content> {
    prop_oneof![
        (".*", annotations(), "x-[a-z]*").prop_map(|(text, annotations, key)| {
            let mut block = TextContent::new(text).meta(Meta::new().with("k", 1));
            block.annotations = annotations;
            block.extra.insert(key, json!([1]));
            block.into()
        }),
        (any::<Vec<u8>>(), ".*").prop_map(|(bytes, mime)| Content::image(bytes, mime)),
        (any::<Vec<u8>>(), ".*").prop_map(|(bytes, mime)| Content::audio(bytes, mime)),
        (".*", ".*").prop_map(|(uri, text)| TextResourceContents::new(uri, text).into()),
        (".*", any::<Vec<u8>>())
            .prop_map(|(uri, bytes)| Content::resource(ResourceContents::blob(uri, bytes))),
        (".*", ".*", any::<u64>())
            .prop_map(|(uri, name, size)| ResourceLink::new(uri, name).size(size).into()),
        (".*", ".*", raw()).prop_map(|(id, name, input)| Content::tool_use(id, name, input)),
        ("[A-Z]+", any::<i32>()).prop_map(|(kind, number)| {
            Content::Other(
                [("type".to_owned(), kind.into()), ("text".to_owned(), number.into())].into_iter().collect(),
            )
        }),
    ]
}

fn blocks() -> impl Strategy<Value = Content> {
    leaves().prop_recursive(3, 12, 4, |inner| {
        (".*", prop::collection::vec(inner, 0..4), prop::option::of(raw())).prop_map(
            |(id, content, structured)| {
                let mut block = ToolResultContent::new(id, content);
                block.structured_content = structured;
                block.into()
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_content_survives_in_any_member_order(block in blocks()) {
        let text = serde_json::to_string(&block).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Content>(&text).unwrap(), &block);
        let sorted = serde_json::to_value(&block).unwrap().to_string();
        prop_assert_eq!(&serde_json::from_str::<Content>(&sorted).unwrap(), &block);
    }
}
