//! A thread that reads and one that writes, for what cannot be used without blocking.
//!
//! They are plain threads and not tasks of the runtime's blocking pool, because a runtime waits for those
//! when it ends, and a read from a terminal may never return.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::lock::lock;

/// How many bytes may be on their way between a thread and its owner.
const PENDING_BYTES: usize = 256 * 1024;

/// How much the reading thread asks for at once.
const READ_BYTES: usize = 64 * 1024;

/// What a thread and its owner share.
#[derive(Debug, Default)]
struct Channel {
    state: Mutex<State>,
    /// Tells the thread that its owner has changed something.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// How many of `bytes` the owner has read already.
    taken: usize,
    /// Set while the thread is inside a write.
    writing: bool,
    /// Set by the thread when nothing more can be done.
    ended: Option<End>,
    /// Set by the owner when it is gone.
    abandoned: bool,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    Failed(io::ErrorKind),
}

impl Channel {
    /// Blocks the thread until `ready` or until its owner is gone, then lets it `change` the state.
    fn wait<T>(&self, ready: impl Fn(&State) -> bool, change: impl FnOnce(&mut State) -> T) -> T {
        let waiting = |state: &mut State| !ready(state) && !state.abandoned;
        let mut state =
            self.changed.wait_while(lock(&self.state), waiting).unwrap_or_else(PoisonError::into_inner);
        let value = change(&mut state);
        state.wake();
        value
    }

    fn abandon(&self) {
        lock(&self.state).abandoned = true;
        self.changed.notify_one();
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn sleep<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn end(&mut self, result: io::Result<()>) {
        self.ended = Some(result.map_or_else(|error| End::Failed(error.kind()), |()| End::Done));
        self.wake();
    }
}

/// Reads a file in a thread of its own.
#[derive(Debug)]
pub(super) struct ThreadReader(Arc<Channel>);

impl ThreadReader {
    pub(super) fn spawn(file: File) -> Self {
        let channel = Arc::new(Channel::default());
        let theirs = Arc::clone(&channel);
        thread::spawn(move || {
            let result = read_all(file, &theirs);
            lock(&theirs.state).end(result);
        });
        Self(channel)
    }
}

fn read_all(file: File, channel: &Channel) -> io::Result<()> {
    let mut file = BufReader::with_capacity(READ_BYTES, file);
    loop {
        let read = match file.fill_buf() {
            Ok([]) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let count = read.len();
        let abandoned = channel.wait(
            |state| state.bytes.len() < PENDING_BYTES,
            |state| {
                state.bytes.extend_from_slice(read);
                state.abandoned
            },
        );
        file.consume(count);
        if abandoned {
            return Ok(());
        }
    }
}

impl AsyncRead for ThreadReader {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0.state);
        let waiting = state.bytes.get(state.taken..).unwrap_or_default();
        if waiting.is_empty() {
            return match state.ended {
                Some(End::Failed(kind)) => Poll::Ready(Err(kind.into())),
                Some(End::Done) => Poll::Ready(Ok(())),
                None => state.sleep(cx),
            };
        }
        let count = waiting.len().min(buf.remaining());
        buf.put_slice(waiting.get(..count).unwrap_or_default());
        state.taken += count;
        if state.taken == state.bytes.len() {
            state.bytes.clear();
            state.taken = 0;
            self.0.changed.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for ThreadReader {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Writes a file in a thread of its own.
#[derive(Debug)]
pub(super) struct ThreadWriter(Arc<Channel>);

impl ThreadWriter {
    pub(super) fn spawn(file: File) -> Self {
        let channel = Arc::new(Channel::default());
        let theirs = Arc::clone(&channel);
        thread::spawn(move || {
            let result = write_all(file, &theirs);
            lock(&theirs.state).end(result);
        });
        Self(channel)
    }

    fn poll_written(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0.state);
        match state.ended {
            Some(End::Failed(kind)) => Poll::Ready(Err(kind.into())),
            None if state.writing || !state.bytes.is_empty() => state.sleep(cx),
            Some(End::Done) | None => Poll::Ready(Ok(())),
        }
    }
}

fn write_all(mut file: File, channel: &Channel) -> io::Result<()> {
    loop {
        let bytes = channel.wait(
            |state| !state.bytes.is_empty(),
            |state| {
                state.writing = true;
                std::mem::take(&mut state.bytes)
            },
        );
        if bytes.is_empty() {
            return Ok(());
        }
        file.write_all(&bytes)?;
        let mut state = lock(&channel.state);
        state.writing = false;
        state.wake();
    }
}

impl AsyncWrite for ThreadWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.0.state);
        match state.ended {
            Some(End::Failed(kind)) => return Poll::Ready(Err(kind.into())),
            Some(End::Done) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            None => {}
        }
        let count = buf.len().min(PENDING_BYTES.saturating_sub(state.bytes.len()));
        if count == 0 && !buf.is_empty() {
            return state.sleep(cx);
        }
        state.bytes.extend_from_slice(buf.get(..count).unwrap_or_default());
        self.0.changed.notify_one();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = self.poll_written(cx);
        if written.is_ready() {
            self.0.abandon();
        }
        written
    }
}

impl Drop for ThreadWriter {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
