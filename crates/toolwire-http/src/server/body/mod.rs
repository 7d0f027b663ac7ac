//! The body of a response: nothing, one piece, or a stream of server-sent events.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use toolwire_protocol::framing::sse::encode_event;

use super::io::Serving;

/// The body of a response.
///
/// A stream is polled only when the connection has room for more, so a client that reads slowly holds up what
/// it reads and fills no memory. Dropping the body, as happens when the client goes away, drops the stream.
pub struct Body {
    kind: Kind,
    /// Lives as long as the body does.
    serving: Option<Serving>,
}

enum Kind {
    Full(Bytes),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// No content.
    pub const fn empty() -> Self {
        Self::of(Kind::Full(Bytes::new()))
    }

    /// One piece.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Full(bytes.into()))
    }

    /// Whatever the stream gives, until it ends.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Kind::Stream(Box::pin(stream)))
    }

    const fn of(kind: Kind) -> Self {
        Self { kind, serving: None }
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// Keeps the note that a request is being served until the body has been taken.
    pub(crate) fn hold(&mut self, serving: Option<Serving>) {
        self.serving = serving;
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.kind {
            Kind::Full(bytes) if bytes.is_empty() => None,
            Kind::Full(bytes) => Some(std::mem::take(bytes)),
            Kind::Stream(stream) => ready!(stream.as_mut().poll_next(task)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Full(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

/// The comment that keeps an idle stream open.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// One JSON-RPC message as one event with a single data line.
///
/// Line breaks in JSON stand only between its tokens, so they can become spaces.
pub(crate) fn event(id: Option<&str>, message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 64);
    if memchr::memchr2(b'\n', b'\r', message).is_none() {
        encode_event(id, None, message, &mut out);
    } else {
        let line: Vec<u8> =
            message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        encode_event(id, None, &line, &mut out);
    }
    out.into()
}

/// A stream of events that is never silent for longer than `interval`: comments fill the gaps.
pub(crate) struct KeepAlive<S> {
    stream: S,
    idle: IdleTimer,
}

impl<S: Stream<Item = Bytes> + Unpin> KeepAlive<S> {
    pub(crate) fn new(stream: S, interval: Duration) -> Self {
        Self { stream, idle: IdleTimer::new(interval) }
    }
}

impl<S: Stream<Item = Bytes> + Unpin> Stream for KeepAlive<S> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Poll::Ready(item) = Pin::new(&mut self.stream).poll_next(task) {
            self.idle.reset();
            return Poll::Ready(item);
        }
        self.idle.poll_elapsed(task).map(|()| Some(KEEP_ALIVE))
    }
}

/// Fires whenever nothing has happened for an interval.
pub(crate) struct IdleTimer {
    sleep: Pin<Box<Sleep>>,
    interval: Duration,
}

impl IdleTimer {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(interval)), interval }
    }

    pub(crate) fn reset(&mut self) {
        let next = Instant::now() + self.interval;
        self.sleep.as_mut().reset(next);
    }

    /// Ready once per interval; starts the next one by itself.
    pub(crate) fn poll_elapsed(&mut self, task: &mut Context<'_>) -> Poll<()> {
        ready!(self.sleep.as_mut().poll(task));
        self.reset();
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
