//! One JSON message per line, as stdio and the other duplex transports carry them.
//!
//! The decoder only finds lines. It does not check that a line is JSON or even UTF-8: that is the
//! envelope parser's job, which can answer with a proper error. Of a line that is too long, which no parser will ever
//! see, it keeps the outline.

use std::{fmt, mem};

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2_iter};

use crate::envelope::{Outline, OutlineKind, OutlineReader};

/// U+FEFF in UTF-8, which programs on Windows may write before anything else.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Splits a growing buffer into lines of at most `limit` bytes.
///
/// Lines end with `\n` or `\r\n`; blank lines are skipped, and so is a byte order mark before the first line. A line is handed out without being copied. A line
/// over the limit is reported once and its bytes are dropped as they arrive, so that one bad message does
/// not cost the connection. It is reported as soon as its [outline](Self::take_outline) is known, which may be at its
/// end.
///
/// ```
/// use bytes::BytesMut;
/// use toolwire_protocol::framing::ndjson::LineDecoder;
///
/// let mut decoder = LineDecoder::new(64);
/// let mut buffer = BytesMut::from("{\"a\":1}\r\n\n{\"b\"");
/// assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap(), "{\"a\":1}");
/// assert_eq!(decoder.decode(&mut buffer), Ok(None));
///
/// buffer.extend_from_slice(b":2}");
/// assert_eq!(decoder.decode(&mut buffer), Ok(None));
/// assert_eq!(decoder.finish(&mut buffer).unwrap().unwrap(), "{\"b\":2}");
/// ```
#[derive(Clone, Debug)]
pub struct LineDecoder {
    limit: usize,
    /// True until it is known whether the input begins with a byte order mark.
    at_start: bool,
    /// How much of the buffer is known to hold no newline, so that a long line is searched only once.
    searched: usize,
    /// What is known of an over-long line whose rest is still to come.
    discarding: Option<Box<Discarding>>,
    outline: Outline,
}

/// An over-long line on its way out.
#[derive(Clone, Debug, Default)]
struct Discarding {
    reader: OutlineReader,
    reported: bool,
}

/// A line grew beyond the limit of its decoder; its bytes are dropped up to the next newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong {
    /// The limit in bytes, without the line ending.
    pub limit: usize,
}

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes, the line ending not counted.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            at_start: true,
            searched: 0,
            discarding: None,
            outline: Outline { kind: OutlineKind::Unknown, id: None },
        }
    }

    /// The longest line that is handed out.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Takes the next whole line out of `buffer`; `None` means that more bytes are needed.
    ///
    /// After an error the decoder is still good: call again.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, LineTooLong> {
        if self.at_start {
            self.skip_byte_order_mark(buffer);
        }
        while let Some(mut line) = self.split_line(buffer) {
            if let Some(discarding) = self.discarding.take() {
                if self.report(*discarding, &line) {
                    return Err(LineTooLong { limit: self.limit });
                }
                continue;
            }
            line.truncate(content_len(&line));
            if line.len() > self.limit {
                self.outline = Outline::of(&line);
                return Err(LineTooLong { limit: self.limit });
            }
            if !is_blank(&line) {
                return Ok(Some(line.freeze()));
            }
        }
        if self.discarding.is_some() || content_len(buffer) > self.limit {
            self.discard(buffer)?;
        }
        Ok(None)
    }

    /// The outline of the line that was reported last as too long.
    pub fn take_outline(&mut self) -> Outline {
        mem::take(&mut self.outline)
    }

    /// Drops the line that has begun, as if it were over the limit: it is reported once, now or by a later call.
    ///
    /// # Errors
    /// When its outline is known already.
    #[doc(hidden)]
    #[cold]
    pub fn discard(&mut self, buffer: &mut BytesMut) -> Result<(), LineTooLong> {
        let discarding = self.discarding.get_or_insert_default();
        let mut news = false;
        if !discarding.reported {
            discarding.reader.feed(buffer);
            news = discarding.reader.is_certain();
            discarding.reported = news;
        }
        if news {
            self.outline = discarding.reader.outline();
        }
        self.drop_all(buffer);
        if news { Err(LineTooLong { limit: self.limit }) } else { Ok(()) }
    }

    /// Takes the last piece of an over-long line, and says whether the line is still to be reported.
    #[cold]
    fn report(&mut self, mut discarding: Discarding, last: &[u8]) -> bool {
        if !discarding.reported {
            discarding.reader.feed(last);
            self.outline = discarding.reader.outline();
        }
        !discarding.reported
    }

    /// At the end of the input: the lines that are left, the last of which may lack its newline.
    ///
    /// Call until it returns `None`; the decoder is then as new.
    pub fn finish(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, LineTooLong> {
        if let Some(line) = self.decode(buffer)? {
            return Ok(Some(line));
        }
        let mut line = buffer.split();
        self.searched = 0;
        if let Some(discarding) = self.discarding.take()
            && self.report(*discarding, &line)
        {
            return Err(LineTooLong { limit: self.limit });
        }
        line.truncate(content_len(&line));
        self.at_start = true;
        Ok((!is_blank(&line)).then(|| line.freeze()))
    }

    /// Removes a byte order mark at the start of the input, once all of it is there.
    #[cold]
    fn skip_byte_order_mark(&mut self, buffer: &mut BytesMut) {
        if buffer.starts_with(BYTE_ORDER_MARK) {
            let _ = buffer.split_to(BYTE_ORDER_MARK.len());
            self.searched = 0;
        } else if BYTE_ORDER_MARK.starts_with(buffer) {
            return;
        }
        self.at_start = false;
    }

    /// Takes everything up to the next newline, which is removed.
    fn split_line(&mut self, buffer: &mut BytesMut) -> Option<BytesMut> {
        let searched = self.searched.min(buffer.len());
        let Some(found) = buffer.get(searched..).and_then(|rest| memchr(b'\n', rest)) else {
            self.searched = buffer.len();
            return None;
        };
        self.searched = 0;
        let mut line = buffer.split_to(searched + found + 1);
        line.truncate(searched + found);
        Some(line)
    }

    fn drop_all(&mut self, buffer: &mut BytesMut) {
        buffer.clear();
        self.searched = 0;
    }
}

/// The length of a line without the carriage return of a `\r\n`.
fn content_len(line: &[u8]) -> usize {
    line.strip_suffix(b"\r").unwrap_or(line).len()
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Appends `message` and a newline to `out`.
///
/// Pretty-printed JSON is put on one line: a JSON string cannot hold a raw line break, so every `\n` and
/// `\r` in the text is white space and a blank says the same.
///
/// ```
/// use toolwire_protocol::framing::ndjson::encode_line;
///
/// let mut out = Vec::new();
/// encode_line(b"{\n \"a\": 1\n}", &mut out);
/// assert_eq!(out, b"{  \"a\": 1 }\n");
/// ```
pub fn encode_line(message: &[u8], out: &mut Vec<u8>) {
    out.reserve(message.len() + 1);
    let mut copied = 0;
    for position in memchr2_iter(b'\n', b'\r', message) {
        out.extend_from_slice(message.get(copied..position).unwrap_or_default());
        out.push(b' ');
        copied = position + 1;
    }
    out.extend_from_slice(message.get(copied..).unwrap_or_default());
    out.push(b'\n');
}

impl fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message is longer than the limit of {} bytes", self.limit)
    }
}

impl std::error::Error for LineTooLong {}

#[cfg(test)]
mod tests;
