//! The body of a response: nothing, something that is there as a whole, or a stream of server-sent events.

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
use toolwire_transport::ledger::Charge;

use super::io::OpenRequest;

mod until;

pub(crate) use until::Until;

/// How much of a body is given to the HTTP implementation at once. What it has been given, it keeps, whether the client
/// takes it or not.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;
/// The same on HTTP/2, where a client has to take as much within the limit `write_timeout`.
const STREAM_PIECE_BYTES: usize = 16 * 1024;
/// How long the last piece may be on HTTP/2. It is asked for when the client has taken what came before it, and after it
/// nobody can tell any more what is taken.
const LAST_PIECE_BYTES: usize = 1024;

/// The body of a response.
///
/// A stream is polled only when the connection has room for more, so a client that reads slowly holds up what
/// it reads and fills no memory. Dropping the body, as happens when the client goes away, drops the stream.
pub struct Body {
    /// What is next, before anything that the source gives.
    ready: Bytes,
    source: Option<Pin<Box<dyn Stream<Item = Bytes> + Send>>>,
    /// The request that this answers, which is open until the body has been taken.
    request: Option<OpenRequest>,
    /// Whether its response is still to be told that it is JSON.
    json: bool,
    /// How many bytes the stream has in memory from the start. Small, as a body is moved around.
    waiting: u32,
    /// What is charged for it until it was taken. Boxed, because a body is moved around, and most have none.
    charge: Option<Box<Charge>>,
}

impl Body {
    /// No content.
    pub const fn empty() -> Self {
        Self { ready: Bytes::new(), source: None, request: None, json: false, waiting: 0, charge: None }
    }

    /// Content that is there already.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self { ready: bytes.into(), source: None, request: None, json: false, waiting: 0, charge: None }
    }

    /// Whatever the stream gives, until it ends.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { source: Some(Box::pin(stream)), ..Self::empty() }
    }

    /// A JSON text, whose response is still to be given its media type.
    pub(crate) fn json(bytes: Bytes) -> Self {
        Self { json: true, ..Self::full(bytes) }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.source.is_some()
    }

    /// Keeps the note that a request is open until the body has been taken.
    pub(crate) fn hold(&mut self, request: OpenRequest) {
        self.request = Some(request);
    }

    /// Says how many bytes a stream has in memory from the start.
    pub(crate) fn set_waiting(&mut self, bytes: usize) {
        self.waiting = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// How many bytes are in memory that nobody else is charged for.
    pub(crate) fn weight(&self) -> usize {
        self.ready.len() + self.waiting as usize
    }

    /// The content that is there already.
    pub(crate) fn ready(&self) -> &Bytes {
        &self.ready
    }

    /// Keeps a charge until the whole of it was taken, or nobody wants it any more.
    pub(crate) fn keep_charge(&mut self, charge: Charge) {
        self.charge = Some(Box::new(charge));
    }

    /// Waits until something is there to be given; `None` at the end.
    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Option<()>> {
        while self.ready.is_empty() {
            let Some(source) = &mut self.source else { return Poll::Ready(None) };
            match ready!(source.as_mut().poll_next(task)) {
                Some(bytes) => self.ready = bytes,
                None => self.source = None,
            }
        }
        Poll::Ready(Some(()))
    }

    fn next_piece(&mut self) -> Bytes {
        let length = self.ready.len();
        let is_tracked = self.request.as_ref().is_some_and(OpenRequest::is_stream);
        if length <= if is_tracked { LAST_PIECE_BYTES } else { PIECE_BYTES } {
            return std::mem::take(&mut self.ready);
        }
        if !is_tracked {
            return self.ready.split_to(PIECE_BYTES);
        }
        let piece = self.ready.split_to(STREAM_PIECE_BYTES.min(length - LAST_PIECE_BYTES));
        if self.ready.len() <= LAST_PIECE_BYTES {
            // So that it does not keep the whole in memory.
            self.ready = Bytes::copy_from_slice(&self.ready);
        }
        piece
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(request) = &self.request {
            request.moves();
        }
        if ready!(self.poll_ready(task)).is_none() {
            return Poll::Ready(None);
        }
        let piece = self.next_piece();
        if let Some(request) = &self.request {
            request.waits();
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.source.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.source {
            None => SizeHint::with_exact(self.ready.len() as u64),
            Some(_) => SizeHint::default(),
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
        match self.source {
            None => write!(f, "Body({} bytes)", self.ready.len()),
            Some(_) => f.write_str("Body(stream)"),
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
