//! A response that is a stream of events.

use std::{fmt, time::Duration};

use bytes::Bytes;
use toolwire_protocol::framing::sse::{EventTooLarge, SseDecoder, SseEvent};

use super::net::Body;

/// The events of one response.
pub(super) struct EventStream {
    body: Body,
    decoder: SseDecoder,
    chunk: Bytes,
}

/// Why there is no next event.
#[derive(Debug)]
pub(super) enum StreamFault {
    /// The event was too large; the stream goes on after it.
    TooLarge(EventTooLarge),
    /// The stream is over in the middle of something.
    Broken(String),
}

/// Where a stream can be taken up again.
#[derive(Clone, Debug, Default)]
pub(super) struct Bookmark {
    /// The id of the last event that had one.
    pub(super) id: Option<String>,
    /// How long the server asked to wait.
    pub(super) retry: Option<Duration>,
}

impl EventStream {
    pub(super) fn new(body: Body, limit: usize) -> Self {
        Self { body, decoder: SseDecoder::new(limit), chunk: Bytes::new() }
    }

    /// Waits for the next event; `None` at the end.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no event.
    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, StreamFault> {
        loop {
            if let Some(event) = self.decoder.decode(&mut self.chunk).map_err(StreamFault::TooLarge)? {
                return Ok(Some(event));
            }
            match self.body.chunk().await {
                Ok(Some(chunk)) => self.chunk = chunk,
                Ok(None) => return Ok(None),
                Err(error) => return Err(StreamFault::Broken(error.to_string())),
            }
        }
    }

    /// Notes where the stream is.
    pub(super) fn mark(&self, bookmark: &mut Bookmark) {
        if let Some(id) = self.decoder.last_event_id() {
            bookmark.id = Some(id.to_owned());
        }
        if let Some(retry) = self.decoder.retry() {
            bookmark.retry = Some(retry);
        }
    }

    /// Nothing more is expected.
    pub(super) fn release(self) {
        self.body.discard();
    }
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(error) => error.fmt(f),
            Self::Broken(why) => write!(f, "the stream broke off: {why}"),
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}
