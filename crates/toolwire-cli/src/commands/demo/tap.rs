//! A transport that notes what passes, so that the tour shows what was said and not what should have been.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde::Deserialize;
use toolwire::transport::{Duplex, ReceiveError, Sink, Source};

/// How many messages are kept, from the first on. A connection is made with three at most.
const MAX_KEPT: usize = 8;

/// What has passed through a [`Tapped`] transport.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap(Arc<Mutex<Vec<(Direction, Bytes)>>>);

/// Which way a message went, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Sent,
    Received,
}

impl Tap {
    /// Puts the tap on a transport.
    pub(super) fn on<D: Duplex>(&self, inner: D) -> Tapped<D> {
        Tapped { inner, tap: self.clone() }
    }

    /// The first messages, each by its method, or as the answer to one.
    pub(super) fn first_messages(&self) -> Vec<(Direction, String)> {
        #[derive(Deserialize)]
        struct Named {
            method: Option<String>,
        }

        let name = |message: &Bytes| match serde_json::from_slice(message) {
            Ok(Named { method: Some(method) }) => method,
            Ok(Named { method: None }) => "result".to_owned(),
            Err(_) => "not a message".to_owned(),
        };
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|(direction, message)| (*direction, name(message))).collect()
    }

    fn note(&self, direction: Direction, message: &Bytes) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            kept.push((direction, message.clone()));
        }
    }
}

/// A transport with a [`Tap`] on it.
#[derive(Debug)]
pub(super) struct Tapped<T> {
    inner: T,
    tap: Tap,
}

impl<D: Duplex> Duplex for Tapped<D> {
    type Source = Tapped<D::Source>;
    type Sink = Tapped<D::Sink>;

    fn split(self) -> (Self::Source, Self::Sink) {
        let (source, sink) = self.inner.split();
        (Tapped { inner: source, tap: self.tap.clone() }, Tapped { inner: sink, tap: self.tap })
    }
}

impl<S: Source> Source for Tapped<S> {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        let message = self.inner.receive().await?;
        if let Some(message) = &message {
            self.tap.note(Direction::Received, message);
        }
        Ok(message)
    }
}

impl<S: Sink> Sink for Tapped<S> {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.tap.note(Direction::Sent, &message);
        self.inner.send(message).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use toolwire::memory;

    use super::*;

    #[tokio::test]
    async fn the_first_messages_are_kept_and_all_pass() {
        let tap = Tap::default();
        let (near, far) = memory::pair();
        let (_source, mut sink) = tap.on(near).split();
        let (mut far_source, _far_sink) = far.split();
        for message in ["{\"method\":\"ping\"}", "{\"result\":{}}", "?"].iter().cycle().take(20) {
            sink.send(Bytes::from_static(message.as_bytes())).await.unwrap();
            sink.flush().await.unwrap();
            assert_eq!(far_source.receive().await.unwrap().unwrap(), message);
        }
        let seen = tap.first_messages();
        assert_eq!(seen.len(), MAX_KEPT);
        let names: Vec<_> = seen.iter().take(3).map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["ping", "result", "not a message"]);
        assert!(seen.iter().all(|(direction, _)| *direction == Direction::Sent));
    }
}
