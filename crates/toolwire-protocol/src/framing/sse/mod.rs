//! Server-sent events: the `text/event-stream` format of the HTTP transports.
//!
//! The decoder follows the parsing rules of the WHATWG HTML standard. It does not reconnect and keeps no
//! clock: [`SseDecoder::last_event_id`] and [`SseDecoder::retry`] are what a client needs to do so.

mod decode;
mod encode;

use std::{fmt, time::Duration};

pub use decode::SseDecoder;
pub use encode::{encode_comment, encode_event, encode_retry};

/// One event of an event stream.
///
/// An event whose `data` is empty is an event all the same: legacy servers open a stream with one that
/// carries nothing but an id to resume from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The id given with this very event; an empty string tells the client to forget the last id.
    pub id: Option<String>,
    /// The type of the event; `None` is the default type, `message`.
    pub event: Option<String>,
    /// The data lines, joined with `\n`.
    pub data: String,
    /// How long to wait before reconnecting, if this event says so.
    pub retry: Option<Duration>,
}

impl SseEvent {
    /// An event of the default type that carries `data`.
    pub fn message(data: impl Into<String>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    /// Appends the event in its wire form.
    ///
    /// ```
    /// use toolwire_protocol::framing::sse::SseEvent;
    ///
    /// let mut out = Vec::new();
    /// SseEvent { id: Some("7".into()), ..SseEvent::message("{}") }.encode(&mut out);
    /// assert_eq!(out, b"id: 7\ndata: {}\n\n");
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(delay) = self.retry {
            encode_retry(delay, out);
        }
        encode_event(self.id.as_deref(), self.event.as_deref(), self.data.as_bytes(), out);
    }
}

/// An event grew beyond the limit of its decoder; its lines are dropped up to the end of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

impl fmt::Display for EventTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is larger than the limit of {} bytes", self.limit)
    }
}

impl std::error::Error for EventTooLarge {}

#[cfg(test)]
mod tests;
