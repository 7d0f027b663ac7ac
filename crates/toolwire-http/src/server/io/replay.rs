//! The first bytes of a connection, which tell the version of HTTP, and a stream that gives them once more.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What an HTTP/2 connection begins with, and no request of HTTP/1 does.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The version of HTTP that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http1,
    Http2,
}

impl HttpVersion {
    /// What the first bytes say, if they say it already. Only the whole preface is HTTP/2: half of one has to be
    /// waited for by somebody with a clock, and the HTTP/2 implementation has none.
    fn of(first: &[u8]) -> Option<Self> {
        match first {
            first if first.starts_with(PREFACE) => Some(Self::Http2),
            first if PREFACE.starts_with(first) => None,
            _ => Some(Self::Http1),
        }
    }
}

/// A stream whose first bytes have been read, and are given again to whoever reads it next.
#[derive(Debug)]
pub(crate) struct Replay<S> {
    stream: S,
    first: [u8; PREFACE.len()],
    read: u8,
    given: u8,
}

impl<S: AsyncRead + Unpin> Replay<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, first: [0; PREFACE.len()], read: 0, given: 0 }
    }

    /// Reads until the version is known. How long that may take is for the caller to say.
    pub(crate) async fn version(&mut self) -> io::Result<HttpVersion> {
        poll_fn(|task| self.poll_version(task)).await
    }

    fn poll_version(&mut self, task: &mut Context<'_>) -> Poll<io::Result<HttpVersion>> {
        loop {
            let mut buf = ReadBuf::new(&mut self.first);
            buf.set_filled(self.read.into());
            ready!(Pin::new(&mut self.stream).poll_read(task, &mut buf))?;
            let (before, filled) = (usize::from(self.read), buf.filled());
            if filled.len() == before {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            let version = HttpVersion::of(filled);
            // There is room for no more than the preface.
            self.read = u8::try_from(filled.len()).unwrap_or(u8::MAX);
            if let Some(version) = version {
                return Poll::Ready(Ok(version));
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Replay<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.given == this.read {
            return Pin::new(&mut this.stream).poll_read(task, buf);
        }
        let again = this.first.get(this.given.into()..this.read.into()).unwrap_or_default();
        let count = again.len().min(buf.remaining());
        buf.put_slice(again.get(..count).unwrap_or_default());
        this.given += u8::try_from(count).unwrap_or(u8::MAX);
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        // What has come meanwhile is given along, so that nobody looks at half of a request first.
        match Pin::new(&mut this.stream).poll_read(task, buf) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Replay<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(task, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[test]
    fn the_first_bytes_tell_the_version() {
        let cases: [(&[u8], Option<HttpVersion>); 9] = [
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(HttpVersion::Http2)),
            (b"", None),
            (b"P", None),
            (b"PRI ", None),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", None),
            (b"PRI * HTTP/1", Some(HttpVersion::Http1)),
            (b"POST", Some(HttpVersion::Http1)),
            (b"GET ", Some(HttpVersion::Http1)),
            (b"\x16\x03\x01", Some(HttpVersion::Http1)),
        ];
        for (first, expected) in cases {
            assert_eq!(HttpVersion::of(first), expected, "{first:?}");
        }
    }

    #[tokio::test]
    async fn nothing_is_lost_however_the_bytes_come_and_are_read() {
        let all = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nand the first frames".as_slice();
        for (said, version) in [(all, HttpVersion::Http2), (b"POST /mcp HTTP/1.1\r\n", HttpVersion::Http1)] {
            for step in [1, 5, 24, 25, 100] {
                let (mut peer, ours) = duplex(1024);
                let mut ours = Replay::new(ours);
                let sending = async {
                    for piece in said.chunks(step) {
                        peer.write_all(piece).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    drop(peer);
                };
                let reading = async {
                    assert_eq!(ours.version().await.unwrap(), version);
                    let mut heard = vec![ours.read_u8().await.unwrap()];
                    ours.read_to_end(&mut heard).await.unwrap();
                    assert_eq!(heard, said, "{step}");
                };
                tokio::join!(sending, reading);
            }
        }
    }

    #[tokio::test]
    async fn what_comes_along_is_read_along() {
        let said = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let (mut peer, ours) = duplex(1024);
        let mut ours = Replay::new(ours);
        peer.write_all(said).await.unwrap();
        ours.version().await.unwrap();
        let mut buf = [0; 1024];
        assert_eq!(ours.read(&mut buf).await.unwrap(), said.len());
    }

    #[tokio::test]
    async fn a_client_that_leaves_first_is_an_error() {
        for said in [&b""[..], b"PRI * "] {
            let (mut peer, ours) = duplex(64);
            peer.write_all(said).await.unwrap();
            drop(peer);
            let error = Replay::new(ours).version().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
