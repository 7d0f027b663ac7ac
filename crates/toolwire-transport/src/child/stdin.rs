//! The child's standard input, which two may close: the writer, and whoever ends the process.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;

use crate::lock::lock;

/// The writer's view of the input; after it was closed, writing fails as it does for a broken pipe.
#[derive(Clone, Debug)]
pub(super) struct ChildInput(Arc<Mutex<Slot>>);

#[derive(Debug)]
struct Slot {
    stdin: Option<ChildStdin>,
    /// A writer that waits for the pipe must learn that it was closed.
    waiting: Option<Waker>,
}

impl ChildInput {
    pub(super) fn new(stdin: ChildStdin) -> Self {
        Self(Arc::new(Mutex::new(Slot { stdin: Some(stdin), waiting: None })))
    }

    /// Ends what the child can read.
    pub(super) fn close(&self) {
        let mut slot = lock(&self.0);
        slot.stdin = None;
        if let Some(waker) = slot.waiting.take() {
            waker.wake();
        }
    }

    fn poll_with<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut ChildStdin>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut slot = lock(&self.0);
        let Some(stdin) = &mut slot.stdin else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let result = poll(Pin::new(stdin), cx);
        slot.waiting = result.is_pending().then(|| cx.waker().clone());
        result
    }
}

impl AsyncWrite for ChildInput {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |stdin, cx| stdin.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |stdin, cx| stdin.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}
