use proptest::prelude::*;

use super::*;
use crate::Message;

fn outline(text: &str) -> (OutlineKind, Option<RequestId>) {
    let outline = Outline::of(text.as_bytes());
    // The same in single bytes.
    let mut reader = OutlineReader::new();
    text.as_bytes().iter().for_each(|byte| reader.feed(&[*byte]));
    assert_eq!(reader.outline(), outline, "{text}");
    (outline.kind, outline.id)
}

#[test]
fn the_id_is_found_wherever_it_is_written() {
    use OutlineKind::*;
    for (text, kind, id) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":2}}"#, Request, Some(1.into())),
        (
            r#"{"method":"a","params":{"x":["}",{"id":2}]},"jsonrpc":"2.0","id":"7"}"#,
            Request,
            Some("7".into()),
        ),
        (r#" { "id" : -5 , "method" : "a" } "#, Request, Some((-5).into())),
        (r#"{"\u0069d":"\u0041\"","method":"a"}"#, Request, Some("A\"".into())),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"method":"x"}}"#, Response, Some(1.into())),
        (r#"{"error":{"code":1},"id":1}"#, Response, Some(1.into())),
        (r#"{"error":{"code":1},"id":null}"#, Response, None),
        (r#"{"method":"a","params":{"id":2}}"#, Notification, None),
        // It ends too early to be a notification, but is a request already.
        (r#"{"method":"a","params":{"id":2}"#, Unknown, None),
        (r#"{"method":"a","id":2,"params":{"#, Request, Some(2.into())),
        (r#"{"result":1,"id":2,"#, Response, Some(2.into())),
    ] {
        assert_eq!(outline(text), (kind, id), "{text}");
    }
}

#[test]
fn what_cannot_be_trusted_has_no_outline() {
    for text in [
        "",
        "x",
        "[",
        "[{\"id\":1,\"method\":\"a\"}]",
        "\"id\"",
        "{",
        "{}",
        r#"{"id":1}"#,
        // Not whole.
        r#"{"method":"a","id":12"#,
        r#"{"method":"a","id":"12"#,
        r#"{"id":1,"method":"a"#,
        // Not an id, or not a method.
        r#"{"method":"a","id":1.5}"#,
        r#"{"method":"a","id":-0}"#,
        r#"{"method":"a","id":01}"#,
        r#"{"method":"a","id":[1]}"#,
        r#"{"method":"a","id":null}"#,
        r#"{"method":1,"id":1}"#,
        // Duplicated, or contradictory.
        r#"{"id":1,"method":"a","id":1}"#,
        r#"{"id":1,"method":"a","method":"b"}"#,
        r#"{"id":1,"method":"a","result":1}"#,
        r#"{"id":"\ud800","method":"a"}"#,
        // Broken.
        r#"{"params":{"a":1],"id":1,"method":"a"}"#,
        r#"{"id":1 "method":"a"}"#,
        r#"{"id":1,"method":"a"}}"#,
        r#"{,"id":1,"method":"a"}"#,
    ] {
        assert_eq!(outline(text), (OutlineKind::Unknown, None), "{text}");
    }
    let deep = format!(r#"{{"params":{},"id":1,"method":"a"}}"#, "[".repeat(129) + &"]".repeat(129));
    assert_eq!(outline(&deep).0, OutlineKind::Unknown);
    let long = format!(r#"{{"id":"{}","method":"a"}}"#, "x".repeat(2000));
    assert_eq!(outline(&long).0, OutlineKind::Unknown);
}

#[test]
fn nothing_is_kept_of_a_message_but_its_outline() {
    let mut reader = OutlineReader::new();
    reader.feed(br#"{"method":"a","params":{"x":""#);
    for _ in 0..1000 {
        reader.feed(&[b'x'; 1000]);
    }
    assert!(!reader.is_certain());
    reader.feed(br#""},"#);
    reader.feed(format!("\"{}\":1,", "n".repeat(100_000)).as_bytes());
    assert!(reader.captured.capacity() < 4096, "{}", reader.captured.capacity());
    reader.feed(br#""id":3}"#);
    assert!(reader.is_certain());
    assert_eq!(reader.outline().request_id(), Some(&3.into()));
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "[\"\\\\{}\\[\\],:a\u{e9}\n]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let name = prop_oneof![Just("id".to_owned()), Just("method".to_owned()), "[a\"\\\\]{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((name, inner), 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_agrees_with_the_parser_of_whole_messages(
        members in prop::collection::vec((0_usize..7, value()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let members = members.iter().map(|(name, value)| {
            let name = ["id", "id", "method", "params", "result", "error", "other"][*name];
            format!(",\"{name}\":{value}")
        });
        let text = format!("{{\"jsonrpc\":\"2.0\"{}}}", members.collect::<String>());
        let bytes = bytes::Bytes::from(text.clone());
        let (kind, id) = outline(&text);
        match Message::parse(&bytes) {
            Ok(Message::Request(request)) => prop_assert_eq!((kind, id), (OutlineKind::Request, Some(request.id))),
            Ok(Message::Notification(_)) => prop_assert_eq!((kind, id), (OutlineKind::Notification, None)),
            Ok(Message::Response(response)) => prop_assert_eq!((kind, id), (OutlineKind::Response, response.id)),
            Err(_) => {}
        }
        // Whatever is cut off, nothing panics.
        Outline::of(&text.as_bytes()[..cut.index(text.len())]);
    }
}
