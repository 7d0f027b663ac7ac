//! A connection that reads a stream: the body of a response.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use toolwire_protocol::framing::sse::{encode_event, encode_retry};
use toolwire_transport::internal::AbortOnDrop;

use super::{
    event_log::LoggedEvent,
    id::EventId,
    stream::{Next, Stream},
};
use crate::server::body::event;

/// Reads a stream from some event on, until the stream ends or somebody else reads it.
#[derive(Debug)]
pub(super) struct Reader {
    stream: Arc<Stream>,
    connection: u64,
    /// The last event that the client has.
    cursor: u64,
    /// What comes from the log, before what comes live.
    replay: VecDeque<LoggedEvent>,
    /// Sent first of all: where to resume, and when.
    priming: Option<Duration>,
    /// What ends with the connection.
    owned: Vec<AbortOnDrop<()>>,
}

impl Reader {
    /// Becomes the connection of a stream that nobody has read yet.
    pub(super) fn first(stream: Arc<Stream>) -> Self {
        let connection = stream.connect();
        Self { stream, connection, cursor: 0, replay: VecDeque::new(), priming: None, owned: Vec::new() }
    }

    /// Becomes the connection of a stream of which the client has everything up to `cursor`.
    ///
    /// # Errors
    /// When the answer was sent and is not kept any more, so that resuming would wait for nothing.
    pub(super) async fn resume(stream: Arc<Stream>, cursor: u64) -> Result<Self, Gone> {
        // First to be told of what is new, then to look at what there was: so nothing falls between.
        let mut reader = Self::first(stream);
        reader.cursor = cursor;
        reader.replay = reader.stream.logged_after(cursor).await.into();
        let last = reader.stream.last();
        let missing = cursor < last && reader.replay.back().is_none_or(|event| event.sequence < last);
        if missing && reader.stream.ended().is_some() {
            return Err(Gone);
        }
        Ok(reader)
    }

    /// Starts with an event that carries nothing but an id, so that the client can resume even if it is cut off
    /// before the first message, and how long it should wait before it does.
    pub(super) fn primed(mut self, retry: Option<Duration>) -> Self {
        self.priming = retry;
        self
    }

    /// Ends these calls with the connection.
    pub(super) fn owning(mut self, calls: Vec<AbortOnDrop<()>>) -> Self {
        self.owned = calls;
        self
    }

    fn priming(&mut self) -> Option<Bytes> {
        let (retry, id) = (self.priming.take()?, self.id(self.cursor)?);
        let mut out = Vec::with_capacity(64);
        encode_retry(retry, &mut out);
        encode_event(Some(&id), None, b"", &mut out);
        Some(out.into())
    }

    fn id(&self, sequence: u64) -> Option<String> {
        self.stream.number().map(|stream| EventId { stream, sequence }.to_string())
    }

    /// The next event that the client does not have.
    fn poll_event(&mut self, task: &mut Context<'_>) -> Poll<Option<LoggedEvent>> {
        loop {
            let event = match self.replay.pop_front() {
                // A newer connection replays the same for itself.
                Some(_) if !self.stream.is_newest(self.connection) => return Poll::Ready(None),
                Some(event) => event,
                None => match ready!(self.stream.poll_next(self.connection, task)) {
                    Next::Event(event) => event,
                    Next::End => return Poll::Ready(None),
                },
            };
            if event.sequence > self.cursor {
                self.cursor = event.sequence;
                self.stream.set_given(event.sequence);
                return Poll::Ready(Some(event));
            }
        }
    }
}

/// What would have to be replayed is not kept any more.
#[derive(Debug)]
pub(super) struct Gone;

impl futures_core::Stream for Reader {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(priming) = self.priming() {
            return Poll::Ready(Some(priming));
        }
        let found = ready!(self.poll_event(task));
        Poll::Ready(found.map(|found| event(self.id(found.sequence).as_deref(), &found.message)))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stream.disconnect(self.connection);
    }
}
