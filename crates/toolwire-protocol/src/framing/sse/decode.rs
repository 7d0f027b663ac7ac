use std::{mem, time::Duration};

use bytes::{Buf, Bytes};
use memchr::{memchr, memchr2};

use super::{EventTooLarge, SseEvent};

/// Turns the chunks of an event stream into events of at most `limit` bytes.
///
/// What counts are the lines of one event with their field names, without line endings and comments. An
/// event over the limit is reported once and dropped, and the stream goes on after it. An event that is not
/// finished when the stream ends is not an event, so there is nothing to call at the end.
///
/// ```
/// use bytes::Bytes;
/// use toolwire_protocol::framing::sse::{SseDecoder, SseEvent};
///
/// let mut decoder = SseDecoder::new(1024);
/// let mut chunk = Bytes::from(": hello\n\nid: 1\ndata: a\ndata: b\n\ndata: c");
/// let event = decoder.decode(&mut chunk).unwrap().unwrap();
/// assert_eq!(event, SseEvent { id: Some("1".into()), ..SseEvent::message("a\nb") });
/// assert_eq!(decoder.decode(&mut chunk), Ok(None));
///
/// let mut chunk = Bytes::from("d\r\n\r\n");
/// assert_eq!(decoder.decode(&mut chunk).unwrap().unwrap().data, "cd");
/// assert_eq!(decoder.last_event_id(), Some("1"));
/// ```
#[derive(Clone, Debug)]
pub struct SseDecoder {
    limit: usize,
    /// The beginning of a line whose end has not arrived.
    pub(super) line: Vec<u8>,
    /// Whether the last byte was a carriage return, of which a line feed would be the second half.
    after_cr: bool,
    /// Whether no line has ended yet, so that a byte order mark may still come.
    first_line: bool,
    /// The size of the lines of the current event that have ended.
    size: usize,
    /// Whether the current event was found too large and its lines are being dropped.
    discarding: bool,
    pub(super) event: SseEvent,
    has_data: bool,
    last_event_id: String,
    retry: Option<Duration>,
}

impl SseDecoder {
    /// A decoder for events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            size: 0,
            discarding: false,
            event: SseEvent::default(),
            has_data: false,
            last_event_id: String::new(),
            retry: None,
        }
    }

    /// The id to resume from: that of the last event that had one.
    pub fn last_event_id(&self) -> Option<&str> {
        (!self.last_event_id.is_empty()).then_some(self.last_event_id.as_str())
    }

    /// How long the server last asked its clients to wait before they reconnect.
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes bytes from `chunk` up to the end of the next event; `None` means that the chunk is used up.
    ///
    /// After an error the decoder is still good: call again with what is left of the chunk.
    pub fn decode(&mut self, chunk: &mut Bytes) -> Result<Option<SseEvent>, EventTooLarge> {
        while let Some(&first) = chunk.first() {
            if mem::take(&mut self.after_cr) && first == b'\n' {
                chunk.advance(1);
                continue;
            }
            let end = memchr2(b'\r', b'\n', chunk);
            let part = chunk.split_to(end.unwrap_or(chunk.len()));
            let fits = self.extend_line(&part);
            if end.is_some() && fits {
                self.after_cr = chunk.first() == Some(&b'\r');
                chunk.advance(1);
                if let Some(event) = self.end_line() {
                    return Ok(Some(event));
                }
            }
            if !fits {
                return Err(EventTooLarge { limit: self.limit });
            }
        }
        Ok(None)
    }

    /// Adds to the unfinished line; `false` once the event becomes too large.
    fn extend_line(&mut self, part: &[u8]) -> bool {
        if self.discarding {
            // Only whether the line is empty matters now: one byte of it is enough to know.
            if self.line.is_empty() {
                self.line.extend(part.first());
            }
            return true;
        }
        if self.line.first() == Some(&b':') {
            return true;
        }
        if part.first() == Some(&b':') && self.line.is_empty() {
            self.line.push(b':');
            return true;
        }
        if part.len() > self.limit.saturating_sub(self.size + self.line.len()) {
            self.discard_event();
            return false;
        }
        self.line.extend_from_slice(part);
        true
    }

    /// Forgets the current event but for the fact that its current line is not empty.
    fn discard_event(&mut self) {
        self.discarding = true;
        self.line = vec![b'?'];
        self.event = SseEvent::default();
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = mem::take(&mut self.line);
        let marked = mem::take(&mut self.first_line).then(|| line.strip_prefix(b"\xEF\xBB\xBF")).flatten();
        let text = marked.unwrap_or(&line);
        if text.is_empty() {
            return self.end_event();
        }
        if !self.discarding && !text.starts_with(b":") {
            self.size += text.len();
            self.field(text);
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        self.size = 0;
        let event = mem::take(&mut self.event);
        let has_data = mem::take(&mut self.has_data);
        if mem::take(&mut self.discarding) {
            return None;
        }
        if let Some(id) = &event.id {
            self.last_event_id.clone_from(id);
        }
        has_data.then_some(event)
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default()),
            None => (line, &[][..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&value);
            }
            b"event" => self.event.event = (!value.is_empty()).then(|| value.into_owned()),
            b"id" if !value.contains('\0') => self.event.id = Some(value.into_owned()),
            b"retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                if let Ok(millis) = value.parse() {
                    self.event.retry = Some(Duration::from_millis(millis));
                    self.retry = self.event.retry;
                }
            }
            _ => {}
        }
    }
}
