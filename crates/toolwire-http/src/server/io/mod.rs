//! A connection that cannot be held up for ever by a peer that does nothing.

mod idle;

pub(crate) use idle::{Idle, Serving};

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

/// What an HTTP/2 connection begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream with two clocks that the HTTP implementation does not have: one until it is known which version of
/// HTTP the peer speaks, and one for a peer that takes nothing of what is written.
pub(crate) struct TimedIo<S> {
    stream: S,
    /// Is told of what is written.
    idle: Idle,
    opening: Option<PrefaceTimeout>,
    write_time: Duration,
    /// Runs while a write waits for the peer.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The time until the first bytes have told the version.
struct PrefaceTimeout {
    matched: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> TimedIo<S> {
    pub(crate) fn new(stream: S, idle: Idle, open_time: Duration, write_time: Duration) -> Self {
        let opening = PrefaceTimeout { matched: 0, deadline: Box::pin(sleep(open_time)) };
        Self { stream, idle, opening: Some(opening), write_time, stalled: None }
    }

    /// Lets a write wait, but not for ever.
    fn watch<T>(&mut self, task: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.stalled.take().is_some() {
                self.idle.written();
            }
            return polled;
        }
        let (limit, idle) = (self.write_time, &self.idle);
        let stalled = self.stalled.get_or_insert_with(|| {
            idle.stalled();
            Box::pin(sleep(limit))
        });
        ready!(stalled.as_mut().poll(task));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl PrefaceTimeout {
    /// Takes the next bytes. Says whether the version is known by them.
    fn decided(&mut self, bytes: &[u8]) -> bool {
        let rest = PREFACE.get(self.matched..).unwrap_or_default();
        self.matched += bytes.len();
        bytes.is_empty() || bytes.len() >= rest.len() || !rest.starts_with(bytes)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(task, buf);
        if let Some(opening) = &mut this.opening {
            match &polled {
                Poll::Pending => {
                    ready!(opening.deadline.as_mut().poll(task));
                    return Poll::Ready(Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the client says nothing",
                    )));
                }
                Poll::Ready(_) if opening.decided(buf.filled().get(before..).unwrap_or_default()) => {
                    this.opening = None;
                }
                Poll::Ready(_) => {}
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(task, buf);
        if polled.is_ready() {
            self.idle.written();
        }
        self.watch(task, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(task, bufs);
        if polled.is_ready() {
            self.idle.written();
        }
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
