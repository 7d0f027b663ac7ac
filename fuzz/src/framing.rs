//! Streams of bytes that are cut into messages.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use toolwire_protocol::framing::{
    ndjson::{LineDecoder, encode_line},
    sse::{SseDecoder, SseEvent, encode_event},
};

use crate::cost::within;

/// The longest line and event.
const LIMIT: usize = 64;

/// Divides the input: the first byte says how long the pieces are that the rest arrives in.
fn pieces(data: &[u8]) -> (usize, &[u8]) {
    match data.split_first() {
        Some((first, rest)) => (usize::from(*first).max(1), rest),
        None => (1, data),
    }
}

/// Lines are the same however they arrive, and never longer than they may be.
pub fn ndjson(data: &[u8]) {
    let (size, data) = pieces(data);
    within(Duration::from_millis(500), "lines", || {
        let (whole, pieces) = (lines(data, data.len().max(1)), lines(data, size));
        assert_eq!(whole, pieces);
        assert!(whole.iter().all(|line| line.len() <= LIMIT));
        // Not at the start, where a byte order mark is skipped.
        let mut out = vec![b'\n'];
        for line in &whole {
            encode_line(line, &mut out);
        }
        // What was written is read back, but for line ends that were white space.
        assert_eq!(lines(&out, size).len(), whole.len());
    });
}

fn lines(data: &[u8], size: usize) -> Vec<Bytes> {
    let (mut decoder, mut buffer, mut lines) = (LineDecoder::new(LIMIT), BytesMut::new(), Vec::new());
    for piece in data.chunks(size) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => break,
                Err(_) => {}
            }
        }
        // One byte more than the limit may be the first half of a line end.
        assert!(buffer.len() <= LIMIT + 1);
    }
    loop {
        match decoder.finish(&mut buffer) {
            Ok(Some(line)) => lines.push(line),
            Ok(None) => return lines,
            Err(_) => {}
        }
    }
}

/// Events are the same however they arrive, and never larger than they may be.
pub fn sse(data: &[u8]) {
    let (size, data) = pieces(data);
    within(Duration::from_millis(500), "events", || {
        let (whole, pieces) = (events(data, data.len().max(1)), events(data, size));
        assert_eq!(whole, pieces);
        for event in &whole {
            let mut out = Vec::new();
            encode_event(event.id.as_deref(), event.event.as_deref(), event.data.as_bytes(), &mut out);
            let again = events(&out, size);
            assert!(again.len() <= 1);
        }
    });
}

fn events(data: &[u8], size: usize) -> Vec<SseEvent> {
    let (mut decoder, mut events) = (SseDecoder::new(LIMIT), Vec::new());
    for piece in data.chunks(size) {
        let mut chunk = Bytes::copy_from_slice(piece);
        loop {
            match decoder.decode(&mut chunk) {
                // Bytes that are not UTF-8 are replaced by characters of three bytes.
                Ok(Some(event)) => {
                    assert!(event.data.len() <= 3 * LIMIT);
                    events.push(event);
                }
                Ok(None) => break,
                Err(_) => {}
            }
        }
    }
    events
}
