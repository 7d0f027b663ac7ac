//! The two descriptors on Unix, opened the fastest way that disturbs nobody.
//!
//! Whether a descriptor blocks is a property of the open file description, which other processes may share:
//! making a terminal non-blocking breaks the shell behind it. So only pipes and sockets are switched, and on
//! Linux an anonymous pipe is opened a second time, which gives a description of our own.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::runtime::Handle;

use super::threads::{ThreadReader, ThreadWriter};

/// The protocol's own copies of the two descriptors.
#[derive(Debug)]
pub(super) struct Descriptors {
    input: OwnedFd,
    output: OwnedFd,
}

impl Descriptors {
    pub(super) fn claim() -> io::Result<Self> {
        let nothing = File::open("/dev/null")?;
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(Self { input, output })
    }

    pub(super) fn open(self) -> (Input, Output) {
        (Input::open(self.input), Output::open(self.output))
    }
}

#[derive(Debug)]
pub(super) enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Thread(ThreadReader),
}

impl Input {
    fn open(fd: OwnedFd) -> Self {
        Self::without_blocking(&fd).unwrap_or_else(|| Self::Thread(ThreadReader::spawn(fd.into())))
    }

    fn without_blocking(fd: &OwnedFd) -> Option<Self> {
        Handle::try_current().ok()?;
        if let Some(path) = path_of_anonymous_pipe(fd)
            && let Ok(pipe) = pipe::OpenOptions::new().open_receiver(path)
        {
            return Some(Self::Pipe(pipe));
        }
        match kind(fd)? {
            Kind::Pipe => pipe::Receiver::from_owned_fd(fd.try_clone().ok()?).ok().map(Self::Pipe),
            Kind::Socket => socket(fd).map(Self::Socket),
        }
    }
}

#[derive(Debug)]
pub(super) enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Thread(ThreadWriter),
    Closed,
}

impl Output {
    fn open(fd: OwnedFd) -> Self {
        Self::without_blocking(&fd).unwrap_or_else(|| Self::Thread(ThreadWriter::spawn(fd.into())))
    }

    fn without_blocking(fd: &OwnedFd) -> Option<Self> {
        Handle::try_current().ok()?;
        if let Some(path) = path_of_anonymous_pipe(fd)
            && let Ok(pipe) = pipe::OpenOptions::new().open_sender(path)
        {
            return Some(Self::Pipe(pipe));
        }
        match kind(fd)? {
            Kind::Pipe => pipe::Sender::from_owned_fd(fd.try_clone().ok()?).ok().map(Self::Pipe),
            Kind::Socket => socket(fd).map(Self::Socket),
        }
    }
}

/// Where an anonymous pipe can be opened again, on a system that has such a place.
///
/// A named pipe is left out: opened anew when its other end is gone already, it would never report that.
fn path_of_anonymous_pipe(fd: &OwnedFd) -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let target = std::fs::read_link(&path).ok()?;
    target.to_str()?.starts_with("pipe:[").then_some(path)
}

enum Kind {
    Pipe,
    Socket,
}

/// What may be switched to non-blocking; nothing that is also our standard error, which has to block.
fn kind(fd: &OwnedFd) -> Option<Kind> {
    let metadata = File::from(fd.try_clone().ok()?).metadata().ok()?;
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
    if (metadata.dev(), metadata.ino()) == (stderr.dev(), stderr.ino()) {
        return None;
    }
    let file_type = metadata.file_type();
    if file_type.is_fifo() { Some(Kind::Pipe) } else { file_type.is_socket().then_some(Kind::Socket) }
}

/// A stream socket of any family: only reading and writing is done with it.
fn socket(fd: &OwnedFd) -> Option<UnixStream> {
    let socket = StdUnixStream::from(fd.try_clone().ok()?);
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buf),
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Thread(thread) => Pin::new(thread).poll_read(cx, buf),
        }
    }
}

/// Calls the same method of whatever the output is.
macro_rules! forward {
    ($output:expr, $method:ident($($argument:expr),*)) => {
        match $output {
            Output::Pipe(pipe) => Pin::new(pipe).$method($($argument),*),
            Output::Socket(socket) => Pin::new(socket).$method($($argument),*),
            Output::Thread(thread) => Pin::new(thread).$method($($argument),*),
            Output::Closed => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    };
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        forward!(self.get_mut(), poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        forward!(self.get_mut(), poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Pipe(_) | Self::Socket(_))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self.get_mut(), poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let output = self.get_mut();
        if matches!(output, Self::Closed) {
            return Poll::Ready(Ok(()));
        }
        ready!(forward!(output, poll_shutdown(cx)))?;
        // Shutting a pipe down does nothing: the other side sees the end when the descriptor is closed.
        *output = Self::Closed;
        Poll::Ready(Ok(()))
    }
}
