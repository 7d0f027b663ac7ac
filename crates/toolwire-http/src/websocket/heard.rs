//! A stream that remembers whether anything came: even a piece of a long message is a sign of life.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Whether anything was heard since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Ear {
    heard: AtomicBool,
    covered: AtomicBool,
}

impl Ear {
    /// Nobody can be blamed for silence while this side does not listen.
    pub(super) fn has_heard(&self) -> bool {
        self.heard.swap(false, Ordering::Relaxed) || self.covered.load(Ordering::Relaxed)
    }

    /// Says that this side does not listen for now, because it is behind, or that it does again.
    pub(super) fn cover(&self, covered: bool) {
        self.covered.store(covered, Ordering::Relaxed);
    }
}

/// A stream whose reading is noticed.
#[derive(Debug)]
pub(super) struct Heard<S> {
    stream: S,
    ear: Arc<Ear>,
}

impl<S> Heard<S> {
    pub(super) const fn new(stream: S, ear: Arc<Ear>) -> Self {
        Self { stream, ear }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(task, buf);
        if buf.filled().len() > before {
            self.ear.heard.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
