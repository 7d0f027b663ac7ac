use proptest::prelude::*;

use super::*;
use crate::RequestId;

type Item = Result<Bytes, LineTooLong>;

/// Feeds `chunks` one by one and collects everything the decoder says, the end of the input included.
fn decode_all<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Item> {
    let mut decoder = LineDecoder::new(limit);
    let mut buffer = BytesMut::new();
    let mut items = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(line)) => items.push(Ok(line)),
                Ok(None) => break,
                Err(error) => items.push(Err(error)),
            }
        }
        assert!(buffer.len() <= limit + 1, "{} bytes are kept of a line limited to {limit}", buffer.len());
    }
    while let Some(item) = decoder.finish(&mut buffer).transpose() {
        items.push(item);
    }
    items
}

/// The same with the lines as text and an over-long line as `None`.
fn texts<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Option<String>> {
    let text = |line: Bytes| String::from_utf8(line.to_vec()).unwrap();
    decode_all(limit, chunks).into_iter().map(|item| item.ok().map(text)).collect()
}

fn as_refs(texts: &[Option<String>]) -> Vec<Option<&str>> {
    texts.iter().map(Option::as_deref).collect()
}

#[test]
fn lines_are_split_and_their_endings_removed() {
    for (input, expected) in [
        ("", &[][..]),
        ("a\nb\n", &[Some("a"), Some("b")][..]),
        ("a\r\nb\r\n", &[Some("a"), Some("b")][..]),
        ("a\nb", &[Some("a"), Some("b")][..]),
        ("a\nb\r", &[Some("a"), Some("b")][..]),
        ("\n\r\n  \n\t\na\n \n", &[Some("a")][..]),
        (" a \n", &[Some(" a ")][..]),
        ("a\rb\n", &[Some("a\rb")][..]),
    ] {
        assert_eq!(as_refs(&texts(4, [input.as_bytes()])), expected, "{input:?}");
    }
}

#[test]
fn a_byte_order_mark_before_the_first_line_is_skipped() {
    for (input, expected) in [
        ("\u{feff}a\n\u{feff}\n", &[Some("a"), Some("\u{feff}")][..]),
        ("\u{feff}\r\na", &[Some("a")][..]),
        ("\u{feff}a", &[Some("a")][..]),
        ("\n\u{feff}\n", &[Some("\u{feff}")][..]),
        ("\u{feff}", &[][..]),
        ("\u{feff}1234\n", &[Some("1234")][..]),
        ("\u{feff}1234", &[Some("1234")][..]),
    ] {
        let one_by_one = input.as_bytes().chunks(1);
        for lines in [texts(4, [input.as_bytes()]), texts(4, one_by_one)] {
            assert_eq!(as_refs(&lines), expected, "{input:?}");
        }
    }
}

#[test]
fn an_over_long_line_is_one_error_and_the_next_line_is_good() {
    for (input, expected) in [
        ("1234\n", &[Some("1234")][..]),
        ("1234\r\n", &[Some("1234")][..]),
        ("12345\n1\n", &[None, Some("1")][..]),
        ("12345\r\n1\n", &[None, Some("1")][..]),
        ("1\n123456789012345\n1\n", &[Some("1"), None, Some("1")][..]),
        ("     \n1\n", &[None, Some("1")][..]),
        ("12345", &[None][..]),
        ("12345\n12345\n", &[None, None][..]),
    ] {
        assert_eq!(as_refs(&texts(4, [input.as_bytes()])), expected, "{input:?} at once");
        assert_eq!(as_refs(&texts(4, input.as_bytes().chunks(1))), expected, "{input:?} byte by byte");
    }
}

#[test]
fn the_outline_of_an_over_long_line_is_kept_and_nothing_else() {
    let early = format!(r#"{{"id":1,"method":"a","params":{{"x":"{}"}}}}"#, "x".repeat(100));
    let late = format!(r#"{{"method":"a","params":{{"x":"{}","id":2}},"id":"late"}}"#, "x".repeat(100));
    let input = format!("{early}\n{late}\nok\n{late}");
    for size in [1, 7, 64, 1000] {
        let mut decoder = LineDecoder::new(40);
        let mut buffer = BytesMut::new();
        let mut found = Vec::new();
        for chunk in input.as_bytes().chunks(size) {
            buffer.extend_from_slice(chunk);
            loop {
                match decoder.decode(&mut buffer) {
                    Ok(None) => break,
                    Ok(Some(line)) => assert_eq!(line, "ok"),
                    Err(_) => found.push(decoder.take_outline().request_id().cloned()),
                }
            }
        }
        while let Some(item) = decoder.finish(&mut buffer).transpose() {
            assert!(item.is_err());
            found.push(decoder.take_outline().request_id().cloned());
        }
        let late = RequestId::from("late");
        assert_eq!(found, [Some(1.into()), Some(late.clone()), Some(late)], "in pieces of {size}");
        assert_eq!(decoder.take_outline(), Outline::default());
    }
}

#[test]
fn a_line_is_handed_out_without_a_copy() {
    let mut buffer = BytesMut::from("{\"a\":1}\n");
    let start = buffer.as_ptr();
    let line = LineDecoder::new(64).decode(&mut buffer).unwrap().unwrap();
    assert_eq!(line.as_ptr(), start);
}

#[test]
fn what_was_searched_is_not_searched_again() {
    let mut decoder = LineDecoder::new(64);
    let mut buffer = BytesMut::from("abc");
    assert_eq!(decoder.decode(&mut buffer), Ok(None));
    assert_eq!(decoder.searched, 3);
    // A buffer that shrank behind the decoder's back is the caller's mistake, but no reason to panic.
    buffer.clear();
    buffer.extend_from_slice(b"\n");
    assert_eq!(decoder.decode(&mut buffer), Ok(None));
}

#[test]
fn pretty_printed_json_becomes_one_line() {
    let value = serde_json::json!({ "text": "a\nb\r\nc", "list": [1, { "x": null }] });
    let mut out = b"before\n".to_vec();
    encode_line(serde_json::to_string_pretty(&value).unwrap().as_bytes(), &mut out);
    let lines = decode_all(1024, [out.as_slice()]);
    assert_eq!(lines.len(), 2);
    let decoded: serde_json::Value = serde_json::from_slice(lines[1].as_ref().unwrap()).unwrap();
    assert_eq!(decoded, value);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_the_input_gives_the_same_lines(
        pieces in prop::collection::vec("[ab \r\n]{0,9}", 0..12),
        limit in 0_usize..8,
    ) {
        let whole = pieces.concat();
        let at_once = decode_all(limit, [whole.as_bytes()]);
        prop_assert_eq!(&decode_all(limit, pieces.iter().map(String::as_bytes)), &at_once);
        prop_assert_eq!(&decode_all(limit, whole.as_bytes().chunks(1)), &at_once);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(input: Vec<u8>, limit in 0_usize..64) {
        for line in decode_all(limit, [input.as_slice()]).into_iter().flatten() {
            prop_assert!(line.len() <= limit);
            prop_assert!(!line.contains(&b'\n'));
        }
    }

    #[test]
    fn an_encoded_message_is_one_line(message in "[ -~\r\n]{1,40}") {
        prop_assume!(!message.trim().is_empty());
        let mut out = Vec::new();
        encode_line(message.as_bytes(), &mut out);
        let expected = message.replace(['\r', '\n'], " ");
        prop_assert_eq!(decode_all(64, [out.as_slice()]), vec![Ok(Bytes::from(expected))]);
    }
}
