//! A stream that ends at some time, whatever it has to say.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Sleep, sleep_until};
use toolwire_server::engine::EndsAt;

pub(crate) struct Until<S> {
    stream: S,
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> Until<S> {
    pub(crate) fn new(stream: S, end: Option<EndsAt>) -> Self {
        Self { stream, end: end.map(|EndsAt(end)| Box::pin(sleep_until(end))) }
    }
}

impl<S: Stream<Item = Bytes> + Unpin> Stream for Until<S> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Looked at first: a stream that always has something to say would never end.
        if self.end.as_mut().is_some_and(|end| end.as_mut().poll(task).is_ready()) {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.stream).poll_next(task)
    }
}
