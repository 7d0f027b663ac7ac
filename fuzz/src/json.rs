//! Envelopes, and the one grammar.

#[path = "../../crates/toolwire-protocol/src/scan/tests/unique.rs"]
mod unique;

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use toolwire_protocol::{
    Message, Params, RawJson,
    classify::{HeaderView, LegacyView, Served, classify},
    envelope::{parse_batch, write_error},
    peek::Peek,
};

use self::unique::Unique;
use crate::cost::within;

/// Parses, peeks and classifies.
pub fn envelope(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    within(Duration::from_millis(500), "an envelope", || {
        let (plain, peeked) = (Message::parse(&bytes), Message::parse_and_peek(&bytes));
        match (&plain, &peeked) {
            (Ok(_), Ok((message, peek))) => accepted(message, peek, data),
            (Err(one), Err(other)) => {
                assert_eq!(one, other);
                assert!(
                    serde_json::from_slice::<Value>(&write_error(one.id.as_ref(), &one.rpc_error())).is_ok()
                );
            }
            _ => panic!("one way to parse accepts what the other refuses"),
        }
        let batch = parse_batch(&bytes, 8);
        if let Ok(messages) = &batch {
            assert!((1..=8).contains(&messages.len()));
        }
        assert!(plain.is_err() || batch.is_err());
    });
}

fn accepted(message: &Message, peek: &Peek, data: &[u8]) {
    // Whatever is accepted can be decoded, as a whole and in its parts.
    assert!(serde_json::from_slice::<Value>(data).is_ok());
    let params = match message {
        Message::Request(request) => request.params.clone(),
        Message::Notification(note) => note.params.clone(),
        Message::Response(response) => response.outcome.clone().unwrap_or(Params::NONE),
    };
    assert!(params.decode::<Value>().is_ok());
    for raw in [&peek.arguments, &peek.input_responses].into_iter().flatten() {
        assert!(serde_json::from_slice::<serde_json::Map<String, Value>>(raw).is_ok());
    }
    if !matches!(message, Message::Response(_)) && params.text().starts_with('{') {
        let alone = Peek::of(&params);
        assert_eq!((&alone.name, &alone.uri, &alone.fault), (&peek.name, &peek.uri, &peek.fault));
    }
    let headers =
        HeaderView { protocol_version: peek.name.as_deref(), method: peek.uri.as_deref(), name: None };
    for http in [None, Some(&headers)] {
        for legacy in
            [LegacyView::Off, LegacyView::NoPeer, LegacyView::UnknownSession, LegacyView::Sessionless]
        {
            let _ = classify(message, peek, http, &Served::default(), legacy);
        }
    }
}

/// Compares what the scanner accepts with what decodes into a `Value` and has no name twice.
pub fn scan_vs_value(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        assert!(serde_json::from_slice::<Value>(data).is_err());
        return;
    };
    within(Duration::from_millis(500), "a scan", || {
        let ours = RawJson::parse(text).is_ok();
        let theirs =
            serde_json::from_str::<Value>(text).is_ok() && serde_json::from_str::<Unique>(text).is_ok();
        assert_eq!(ours, theirs, "{text:?}");
        // As part of a message it is the same, but for the two levels that the message adds.
        let message = format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":{text}}}}}"#);
        let whole = serde_json::from_str::<Value>(&message).is_ok()
            && serde_json::from_str::<Unique>(&message).is_ok();
        let wrapped: Result<Wrapped<'_>, _> = serde_json::from_str(&message);
        // Text may also close the parameters and go on as something else.
        if wrapped.is_ok() {
            assert_eq!(Message::parse(&Bytes::from(message)).is_ok(), whole, "{text:?}");
        }
    });
}

/// A message that has these members, as [`scan_vs_value`] writes it, and maybe unknown ones.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'a> {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: &'a str,
    #[serde(rename = "method")]
    _method: &'a str,
    #[serde(rename = "params", borrow)]
    _params: &'a serde_json::value::RawValue,
}
