//! A connection that cannot be held up for ever by a peer that does nothing.

mod activity;
mod replay;

pub(crate) use activity::{Activity, OpenRequest, Patience};
pub(crate) use replay::{HttpVersion, Replay};

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// How long after something was written to a client that has closed its side it is looked whether that came back.
const ECHO_TIME: Duration = Duration::from_millis(500);

/// A stream with a clock that the HTTP implementation does not have, for a peer that takes nothing of what is written.
///
/// It also hides from HTTP/1 that the peer has closed its side, as long as that peer waits for an answer, or has not taken
/// all of one: it may have nothing more to say, and still read. Whether it has gone altogether shows when something is
/// written.
pub(crate) struct TimedIo<S> {
    stream: S,
    /// Is told when the peer does not read.
    activity: Activity,
    write_timeout: Duration,
    /// Runs while a write waits for the peer.
    stalled: Option<Pin<Box<Sleep>>>,
    half_closed: bool,
    /// Runs after something was written to a peer that has closed its side.
    echo: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedIo<S> {
    pub(crate) fn new(stream: S, activity: Activity, write_timeout: Duration) -> Self {
        Self { stream, activity, write_timeout, stalled: None, half_closed: false, echo: None }
    }

    /// Lets a write wait, but not for ever.
    fn watch<T>(&mut self, task: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.stalled.take().is_some() {
                self.activity.resumed();
            }
            return polled;
        }
        let (limit, activity) = (self.write_timeout, &self.activity);
        let stalled = self.stalled.get_or_insert_with(|| {
            activity.stalled();
            Box::pin(sleep(limit))
        });
        ready!(stalled.as_mut().poll(task));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }

    /// Sees to it that somebody looks whether what was written has come back.
    fn expect_echo(&mut self, task: &mut Context<'_>) {
        if self.half_closed {
            let echo = self.echo.insert(Box::pin(sleep(ECHO_TIME)));
            let _ = echo.as_mut().poll(task);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(task, buf))?;
        let ended = buf.filled().len() == before && buf.remaining() > 0;
        if !ended || !this.activity.half_closed(this.stalled.is_some()) {
            return Poll::Ready(Ok(()));
        }
        if !this.half_closed {
            this.half_closed = true;
            // A request that waits for more of its body looks again, and finds that nothing more will come.
            task.waker().wake_by_ref();
        }
        if let Some(echo) = &mut this.echo
            && echo.as_mut().poll(task).is_ready()
        {
            this.echo = None;
        }
        // Reading says nothing but that it has ended, even if the connection is gone. Writing says it, even if it is
        // nothing that is written.
        match Pin::new(&mut this.stream).poll_write(task, &[]) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // Whoever waits for the answer looks again when it has been written.
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(task, buf);
        self.expect_echo(task);
        self.watch(task, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(task, bufs);
        self.expect_echo(task);
        self.watch(task, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(task);
        self.watch(task, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(task);
        self.watch(task, polled)
    }
}

#[cfg(test)]
mod tests;
