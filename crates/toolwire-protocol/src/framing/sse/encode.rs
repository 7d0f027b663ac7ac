use std::{io::Write as _, time::Duration};

use memchr::memchr3_iter;

/// Appends one event: its fields and the empty line that ends it.
///
/// `data` that has line breaks becomes several data lines. `id` and `event` have room for one line only:
/// line breaks in them are left out, as is NUL, so that nothing in them can start another field.
///
/// ```
/// use toolwire_protocol::framing::sse::encode_event;
///
/// let mut out = Vec::new();
/// encode_event(None, Some("endpoint"), b"/messages", &mut out);
/// assert_eq!(out, b"event: endpoint\ndata: /messages\n\n");
/// ```
pub fn encode_event(id: Option<&str>, event: Option<&str>, data: &[u8], out: &mut Vec<u8>) {
    if let Some(id) = id {
        encode_field(b"id: ", id, out);
    }
    if let Some(event) = event {
        encode_field(b"event: ", event, out);
    }
    encode_lines(b"data: ", data, out);
    out.push(b'\n');
}

/// Appends a comment, which a reader skips: what keeps an idle connection open.
///
/// ```
/// use toolwire_protocol::framing::sse::encode_comment;
///
/// let mut out = Vec::new();
/// encode_comment("keep-alive", &mut out);
/// assert_eq!(out, b": keep-alive\n\n");
/// ```
pub fn encode_comment(text: &str, out: &mut Vec<u8>) {
    encode_lines(b": ", text.as_bytes(), out);
    out.push(b'\n');
}

/// Appends the field that tells a client how long to wait before it reconnects, in whole milliseconds.
///
/// The field belongs to the event that is written next.
///
/// ```
/// use std::time::Duration;
/// use toolwire_protocol::framing::sse::{encode_event, encode_retry};
///
/// let mut out = Vec::new();
/// encode_retry(Duration::from_secs(3), &mut out);
/// encode_event(Some("1"), None, b"", &mut out);
/// assert_eq!(out, b"retry: 3000\nid: 1\ndata: \n\n");
/// ```
pub fn encode_retry(delay: Duration, out: &mut Vec<u8>) {
    let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    // Writing to a vector cannot fail.
    let _ = writeln!(out, "retry: {millis}");
}

fn encode_field(name: &[u8], value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    let mut copied = 0;
    for position in memchr3_iter(b'\n', b'\r', 0, value.as_bytes()) {
        out.extend_from_slice(value.as_bytes().get(copied..position).unwrap_or_default());
        copied = position + 1;
    }
    out.extend_from_slice(value.as_bytes().get(copied..).unwrap_or_default());
    out.push(b'\n');
}

fn encode_lines(name: &[u8], text: &[u8], out: &mut Vec<u8>) {
    out.reserve(name.len() + text.len() + 2);
    for line in text.split(|byte| *byte == b'\n') {
        // The carriage return of a `\r\n` goes with its line feed; one that stands alone ends a line too.
        for line in line.strip_suffix(b"\r").unwrap_or(line).split(|byte| *byte == b'\r') {
            out.extend_from_slice(name);
            out.extend_from_slice(line);
            out.push(b'\n');
        }
    }
}
