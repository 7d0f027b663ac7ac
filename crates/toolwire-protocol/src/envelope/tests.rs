use proptest::prelude::*;

use super::*;
use crate::{ErrorCode, Method};

fn parse(text: &str) -> Result<Message, EnvelopeFault> {
    Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
}

fn fault(text: &str) -> FaultKind {
    parse(text).expect_err(text).kind
}

#[test]
fn a_request_keeps_its_id_in_kind() {
    for (text, id) in [("1", RequestId::Num(1)), (r#""1""#, "1".into())] {
        let message = parse(&format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"ping"}}"#)).unwrap();
        let Message::Request(request) = message else { panic!("{message:?}") };
        assert_eq!(request.id, id);
        assert!(request.params.is_none());
    }
}

#[test]
fn params_are_a_slice_of_the_message() {
    let bytes = Bytes::from_static(br#"{"params": {"a" : 1} ,"method":"x/y","jsonrpc":"2.0"}"#);
    let Ok(Message::Notification(note)) = Message::parse(&bytes) else { panic!() };
    assert_eq!(note.params.text(), r#"{"a" : 1}"#);
    assert_eq!(note.method, MethodName::Unknown("x/y".into()));
    assert!(bytes.as_ptr_range().contains(&note.params.bytes().unwrap().as_ptr()));
}

#[test]
fn null_params_are_no_params() {
    let Ok(Message::Request(request)) = parse(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#)
    else {
        panic!()
    };
    assert!(request.params.is_none());
    assert_eq!(request.params.text(), "{}");
}

#[test]
fn escaped_names_are_read() {
    let Ok(Message::Request(request)) = parse(r#"{"jsonrpc":"2.0","id":1,"method":"pin\u0067"}"#) else {
        panic!()
    };
    assert_eq!(request.method.known(), Some(Method::Ping));
}

#[test]
fn every_fault_is_its_own() {
    for (text, kind) in [
        ("[]", FaultKind::Batch),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, FaultKind::Batch),
        ("12", FaultKind::NotAnObject),
        ("null", FaultKind::NotAnObject),
        (r#""text""#, FaultKind::NotAnObject),
        ("{}", FaultKind::NotVersionTwo),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, FaultKind::NotVersionTwo),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, FaultKind::NotVersionTwo),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, FaultKind::NullId),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, FaultKind::FractionalId),
        (r#"{"jsonrpc":"2.0","id":1e99,"method":"ping"}"#, FaultKind::FractionalId),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, FaultKind::WrongIdType),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, FaultKind::WrongIdType),
        (r#"{"jsonrpc":"2.0","result":{}}"#, FaultKind::MissingId),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, FaultKind::NullId),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, FaultKind::WrongMethodType),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, FaultKind::WrongParamsType),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, FaultKind::WrongParamsType),
        (r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#, FaultKind::WrongErrorType),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, FaultKind::RequestAndResponse),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            FaultKind::ResultAndError,
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, FaultKind::NothingInIt),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#, FaultKind::DuplicateMember("id".into())),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            FaultKind::DuplicateMember("method".into()),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#,
            FaultKind::DuplicateMember("params".into()),
        ),
    ] {
        assert_eq!(fault(text), kind, "{text}");
    }
}

#[test]
fn broken_json_says_where_and_outranks_other_faults() {
    for text in
        ["", "{", r#"{"jsonrpc":"2.0","id":null,"method":"ping""#, "{\"a\":tru}", "nonsense", "{} {}", "[1"]
    {
        let error = parse(text).unwrap_err();
        assert!(matches!(error.kind, FaultKind::NotJson(_)), "{text}: {error:?}");
        assert_eq!(error.rpc_error().code, ErrorCode::PARSE_ERROR);
        assert!(error.to_string().contains("column") || error.to_string().contains("EOF"), "{error}");
    }
}

#[test]
fn a_fault_carries_the_id_where_it_can() {
    let error = parse(r#"{"jsonrpc":"2.0","id":"a","method":7}"#).unwrap_err();
    assert_eq!(error.id, Some("a".into()));
    assert_eq!(error.rpc_error().code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn responses_are_read() {
    let Ok(Message::Response(response)) = parse(r#"{"jsonrpc":"2.0","id":3,"result":{"x":1}}"#) else {
        panic!()
    };
    assert_eq!(response.id, Some(3.into()));
    assert_eq!(response.outcome.unwrap().text(), r#"{"x":1}"#);
    for id in ["", r#""id":null,"#] {
        let text = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"m"}}}}"#);
        let Ok(Message::Response(response)) = parse(&text) else { panic!("{text}") };
        assert_eq!(response.id, None);
        assert_eq!(response.outcome.unwrap_err().code, ErrorCode::PARSE_ERROR);
    }
}

#[test]
fn a_batch_is_read_message_by_message() {
    let bytes = Bytes::from_static(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 7]"#);
    let items = parse_batch(&bytes, 10).unwrap();
    assert!(matches!(items[0], Ok(Message::Request(_))));
    assert_eq!(items[1].as_ref().unwrap_err().kind, FaultKind::NotAnObject);
    assert_eq!(parse_batch(&bytes, 1).unwrap_err().kind, FaultKind::BatchTooLong { limit: 1 });
    assert_eq!(parse_batch(&Bytes::from_static(b"[]"), 1).unwrap_err().kind, FaultKind::EmptyBatch);
}

#[test]
fn what_is_written_is_read_back() {
    let bytes = write_request(&"7".into(), &Method::ListTools.into(), &serde_json::json!({"a": 1})).unwrap();
    assert_eq!(&bytes[..], br#"{"jsonrpc":"2.0","id":"7","method":"tools/list","params":{"a":1}}"#);
    let bytes = write_notification(&Method::Progress.into(), &serde_json::json!({})).unwrap();
    assert_eq!(&bytes[..], br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#);
    let bytes = write_error(None, &RpcError::internal("x"));
    assert_eq!(&bytes[..], br#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"x"}}"#);
    let bytes = write_response::<serde_json::Error>(&1.into(), |out| {
        out.extend_from_slice(b"{}");
        Ok(())
    });
    assert_eq!(&bytes.unwrap()[..], br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[test]
fn deep_nesting_does_not_overflow() {
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{open}{close}}}}}"#)
    };
    assert!(matches!(parse(&deep(125)), Ok(Message::Request(_))));
    for levels in [126, 200_000] {
        let error = parse(&deep(levels)).unwrap_err();
        assert_eq!((error.kind, error.id, error.answer), (FaultKind::TooDeep, Some(1.into()), false));
        // Many write the result first.
        let (open, close) = ("[{\"a\":".repeat(levels), "}]".repeat(levels));
        let error =
            parse(&format!(r#"{{"result":{{"a":{open}"]"{close}}},"jsonrpc":"2.0","id":2}}"#)).unwrap_err();
        assert_eq!((error.kind, error.id, error.answer), (FaultKind::TooDeep, Some(2.into()), true));
    }
    assert_eq!(fault(&"[".repeat(200_000)), FaultKind::TooDeep);
}

#[test]
fn what_two_readers_could_take_differently_is_refused_with_its_id() {
    for (member, kind, words) in [
        (r#""x":1e999"#, FaultKind::NumberOutOfRange, "a number in the message is out of range"),
        (r#""x":"\ud800""#, FaultKind::LoneSurrogate, "half of a character"),
        (r#""x":[{"y":1,"y":2}]"#, FaultKind::DuplicateMember("y".into()), "the member \"y\" is duplicated"),
        (
            r#""x":{"$serde_json::private::RawValue":"[1]"}"#,
            FaultKind::ReservedMember("$serde_json::private::RawValue".into()),
            "no member may be named",
        ),
        (r#""name":"a","name":"b""#, FaultKind::DuplicateMember("name".into()), "is duplicated"),
        (r#""name":"a","n\u0061me":"b""#, FaultKind::DuplicateMember("name".into()), "is duplicated"),
        (
            r#""_meta":{"progressToken":1,"progressToken":1}"#,
            FaultKind::DuplicateMember("progressToken".into()),
            "",
        ),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{member}}}}}"#);
        let peeked = Message::parse_and_peek(&Bytes::from(text.clone())).unwrap_err();
        for error in [parse(&text).unwrap_err(), peeked] {
            assert_eq!((&error.kind, &error.id), (&kind, &Some(7.into())), "{text}");
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.rpc_error().code, ErrorCode::INVALID_REQUEST);
        }
    }
    // Which of two ids would be meant is not known.
    assert_eq!(parse(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#).unwrap_err().id, None);
    // What is not JSON at all outranks everything else.
    assert!(matches!(fault(r#"{"jsonrpc":"2.0","id":1,"a":1e999,"a":1,"#), FaultKind::NotJson(_)));
}

#[test]
fn a_batch_beyond_its_limit_is_not_read_to_its_end() {
    let text = format!("[1,2,3,4{}", ",[".repeat(1_000_000));
    let error = parse_batch(&Bytes::from(text), 3).unwrap_err();
    assert_eq!(error.kind, FaultKind::BatchTooLong { limit: 3 });
    for text in ["", "{}", "[1", "[1,]", "[1] 2", "[\"\u{1}\"]"] {
        let error = parse_batch(&Bytes::copy_from_slice(text.as_bytes()), 3).unwrap_err();
        assert!(matches!(error.kind, FaultKind::NotJson(_)), "{text}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = Message::parse(&bytes.into());
    }

    #[test]
    fn any_id_and_method_survive(id in prop_oneof![any::<i64>().prop_map(RequestId::Num), any::<String>().prop_map(RequestId::from)], method: String) {
        let bytes = write_request(&id, &MethodName::from(method.as_str()), &serde_json::json!({})).unwrap();
        let Ok(Message::Request(request)) = Message::parse(&bytes) else { panic!() };
        prop_assert_eq!(request.id, id);
        prop_assert_eq!(request.method.as_str(), method);
    }
}
