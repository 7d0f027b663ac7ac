use bytes::Bytes;
use proptest::prelude::*;

use super::*;

type Item = Result<SseEvent, EventTooLarge>;

/// Everything that comes out of a decoder fed with `chunks`, and the decoder.
fn decode_all<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Item>, SseDecoder) {
    let mut decoder = SseDecoder::new(limit);
    let mut items = Vec::new();
    for chunk in chunks {
        let mut chunk = Bytes::copy_from_slice(chunk);
        loop {
            match decoder.decode(&mut chunk) {
                Ok(Some(event)) => items.push(Ok(event)),
                Ok(None) => break,
                Err(error) => items.push(Err(error)),
            }
        }
        assert!(chunk.is_empty());
    }
    (items, decoder)
}

/// The events of a stream without faults.
fn events(text: &str) -> Vec<SseEvent> {
    decode_all(1024, [text.as_bytes()]).0.into_iter().map(Result::unwrap).collect()
}

fn data(text: &str) -> Vec<String> {
    events(text).into_iter().map(|event| event.data).collect()
}

#[test]
fn data_is_gathered_line_by_line() {
    for (text, expected) in [
        ("data: a\n\n", &["a"][..]),
        ("data:a\n\n", &["a"]),
        ("data:  a\n\n", &[" a"]),
        ("data: a\ndata: b\n\n", &["a\nb"]),
        ("data: a\r\rdata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\n\ndata: b\r\n\n", &["a", "b"]),
        ("data\n\n", &[""]),
        ("data:\n\n", &[""]),
        ("data\ndata\n\n", &["\n"]),
        ("data: a: b\n\n", &["a: b"]),
        ("\u{FEFF}data: a\n\n", &["a"]),
        ("data: a\n\n\u{FEFF}data: b\n\n", &["a"]),
        (": comment\n\ndata: a\n: another\n\n:\n\n", &["a"]),
        ("DATA: a\nother: b\n\n", &[]),
        ("event: a\n\n", &[]),
        ("data: unfinished\n", &[]),
        ("data: unfinished", &[]),
        ("\n\n\n", &[]),
    ] {
        assert_eq!(data(text), expected, "{text:?}");
    }
}

#[test]
fn the_type_of_an_event_does_not_outlive_it() {
    let types: Vec<_> =
        events("event: endpoint\ndata: /a\n\ndata: b\n\nevent:\ndata: c\n\nevent: x\n\ndata: d\n\n")
            .into_iter()
            .map(|event| event.event)
            .collect();
    assert_eq!(types, [Some("endpoint".to_owned()), None, None, None]);
}

#[test]
fn a_priming_event_has_an_id_and_empty_data() {
    let expected =
        SseEvent { id: Some("s/0".into()), retry: Some(Duration::from_millis(500)), ..SseEvent::default() };
    assert_eq!(events("id: s/0\nretry: 500\ndata:\n\n"), [expected]);
}

#[test]
fn the_last_event_id_stays_until_another_one_comes() {
    for (text, last) in [
        ("", None),
        ("id: 1\ndata: a\n\n", Some("1")),
        ("id: 1\ndata: a\n\ndata: b\n\n", Some("1")),
        ("id: 1\n\n", Some("1")),
        ("id: 1\ndata: a\n\nid: 2\ndata: unfinished\n", Some("1")),
        ("id: 1\ndata: a\n\nid\ndata: b\n\n", None),
        ("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", Some("1")),
    ] {
        let (_, decoder) = decode_all(1024, [text.as_bytes()]);
        assert_eq!(decoder.last_event_id(), last, "{text:?}");
    }
}

#[test]
fn retry_takes_digits_only() {
    for (text, retry) in [
        ("retry: 250\n", Some(250)),
        ("retry: 250\ndata: a\n\ndata: b\n\n", Some(250)),
        ("retry: 1s\n", None),
        ("retry: +1\n", None),
        ("retry: -1\n", None),
        ("retry\n", None),
        ("retry: 99999999999999999999\n", None),
    ] {
        let (_, decoder) = decode_all(1024, [text.as_bytes()]);
        assert_eq!(decoder.retry(), retry.map(Duration::from_millis), "{text:?}");
    }
}

#[test]
fn what_is_not_utf8_is_replaced() {
    let (items, _) = decode_all(64, [&b"data: a\xFFb\n\n"[..]]);
    assert_eq!(items, [Ok(SseEvent::message("a\u{FFFD}b"))]);
}

#[test]
fn an_event_over_the_limit_is_one_error_and_the_next_event_is_good() {
    const TOO_LARGE: Item = Err(EventTooLarge { limit: 8 });
    let good = || Ok(SseEvent::message("ok"));
    for (text, expected) in [
        ("data: 12\n\ndata: ok\n\n", vec![Ok(SseEvent::message("12")), good()]),
        ("data: 123\n\ndata: ok\n\n", vec![TOO_LARGE, good()]),
        ("data:1\ndata:2\n\ndata: ok\n\n", vec![TOO_LARGE, good()]),
        ("data: 12345678\ndata: 123456789\n\ndata: ok\n\n", vec![TOO_LARGE, good()]),
        ("unknown: 123\ndata: 1\n\ndata: ok\n\n", vec![TOO_LARGE, good()]),
        ("id: 1\ndata: 12345678\r\n\r\ndata: ok\r\n\r\n", vec![TOO_LARGE, good()]),
        ("data: 123456789", vec![TOO_LARGE]),
        (": a long comment is no part of the event\ndata: ok\n\n", vec![good()]),
    ] {
        let (at_once, decoder) = decode_all(8, [text.as_bytes()]);
        assert_eq!(at_once, expected, "{text:?} at once");
        assert_eq!(decoder.last_event_id(), None, "{text:?}");
        assert_eq!(decode_all(8, text.as_bytes().chunks(1)).0, expected, "{text:?} byte by byte");
    }
}

#[test]
fn memory_is_bounded_whatever_never_ends() {
    for endless in [": comment ", "data: data ", "id\n", "x\n", "data: a\n"] {
        let mut decoder = SseDecoder::new(100);
        for _ in 0..1000 {
            let mut chunk = Bytes::from_static(endless.as_bytes());
            while decoder.decode(&mut chunk).is_err() {}
        }
        let held = decoder.line.len() + decoder.event.data.len() + decoder.event.id.iter().len();
        assert!(held <= 100, "{held} bytes are held for {endless:?}");
    }
}

#[test]
fn fields_cannot_smuggle_in_other_fields() {
    let mut out = Vec::new();
    encode_event(Some("1\ndata: x"), Some("a\r\nb\0"), b"c\r\nd\re\n", &mut out);
    assert_eq!(out, b"id: 1data: x\nevent: ab\ndata: c\ndata: d\ndata: e\ndata: \n\n");
}

#[test]
fn comments_are_skipped_even_with_line_breaks() {
    let mut out = Vec::new();
    encode_comment("a\ndata: b", &mut out);
    encode_comment("", &mut out);
    assert_eq!(decode_all(1024, [out.as_slice()]).0, []);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_the_input_gives_the_same_events(
        pieces in prop::collection::vec("(data: ?|id: ?|retry:1|event:|[ab:\r\n\u{FEFF}]){0,5}", 0..12),
        limit in 0_usize..24,
    ) {
        let whole = pieces.concat();
        let (at_once, decoder) = decode_all(limit, [whole.as_bytes()]);
        let (in_pieces, _) = decode_all(limit, pieces.iter().map(String::as_bytes));
        let (in_bytes, other) = decode_all(limit, whole.as_bytes().chunks(1));
        prop_assert_eq!(&in_pieces, &at_once);
        prop_assert_eq!(&in_bytes, &at_once);
        prop_assert_eq!(decoder.last_event_id(), other.last_event_id());
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(input: Vec<u8>, limit in 0_usize..64) {
        decode_all(limit, [input.as_slice()]);
    }

    #[test]
    fn what_is_encoded_is_decoded(
        id in prop::option::of("[^\r\n\0]{1,8}"),
        event in prop::option::of("[^\r\n\0]{1,8}"),
        data in "[^\r]{0,40}",
        retry in prop::option::of(any::<u32>()),
    ) {
        let retry = retry.map(|millis| Duration::from_millis(millis.into()));
        let event = SseEvent { id, event, data, retry };
        let mut out = Vec::new();
        event.encode(&mut out);
        prop_assert_eq!(decode_all(4096, [out.as_slice()]).0, vec![Ok(event)]);
    }
}
