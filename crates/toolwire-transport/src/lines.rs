//! One message per line over any pair of byte streams: what stdio, child processes and sockets share.
//!
//! A message is never copied after it was read. Small messages are gathered and written together; large
//! ones are written from where they are. What a line holds is not looked at.

use std::io::{self, IoSlice};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use toolwire_protocol::framing::DEFAULT_MAX_MESSAGE_BYTES;
use toolwire_protocol::framing::ndjson::{LineDecoder, LineTooLong, encode_line};

use crate::duplex::{Duplex, LocalPeer, ReceiveError, Sink, Source};

/// How much is asked for in one read: what a pipe holds on most systems.
const READ_BYTES: usize = 64 * 1024;

/// With less room than this left in the buffer, a read is not worth its system call.
const READ_MIN_BYTES: usize = 8 * 1024;

/// Above this a message is written without being copied, and that many gathered bytes are written out.
const GATHER_BYTES: usize = 64 * 1024;

/// A [`Duplex`] over a reader and a writer.
#[derive(Debug)]
pub struct Lines<R, W> {
    reader: R,
    writer: W,
    max_message_bytes: usize,
    peer: Option<LocalPeer>,
}

impl<R, W> Lines<R, W> {
    /// Frames `reader` and `writer`, with messages of up to [`DEFAULT_MAX_MESSAGE_BYTES`].
    pub const fn new(reader: R, writer: W) -> Self {
        Self { reader, writer, max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES, peer: None }
    }

    /// Sets the longest message that is received.
    ///
    /// In the worst case the read buffer takes about twice as much memory.
    #[must_use]
    pub const fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Says who is at the other end, where that is known to be a process on this machine.
    #[must_use]
    pub const fn local_peer(mut self, peer: LocalPeer) -> Self {
        self.peer = Some(peer);
        self
    }
}

impl<R, W> Duplex for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Source = LinesSource<R>;
    type Sink = LinesSink<W>;

    fn split(self) -> (LinesSource<R>, LinesSink<W>) {
        (LinesSource::new(self.reader, self.max_message_bytes), LinesSink::new(self.writer))
    }

    fn local_peer(&self) -> Option<LocalPeer> {
        self.peer
    }
}

/// The receiving half of [`Lines`].
#[derive(Debug)]
pub struct LinesSource<R> {
    reader: R,
    decoder: LineDecoder,
    buffer: BytesMut,
    ended: bool,
}

impl<R> LinesSource<R> {
    fn new(reader: R, max_message_bytes: usize) -> Self {
        let decoder = LineDecoder::new(max_message_bytes);
        Self { reader, decoder, buffer: BytesMut::new(), ended: false }
    }

    #[cold]
    fn too_long(&mut self, error: LineTooLong) -> ReceiveError {
        ReceiveError::TooLong { limit: error.limit, outline: Box::new(self.decoder.take_outline()) }
    }

    /// Makes room for a read; a long line doubles the buffer, so that it is moved only a few times.
    fn reserve(&mut self) {
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < READ_MIN_BYTES {
            self.buffer.reserve(READ_BYTES.max(self.buffer.len()));
        }
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> Source for LinesSource<R> {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        loop {
            let decoded = self.decoder.decode(&mut self.buffer);
            if let Some(line) = decoded.map_err(|error| self.too_long(error))? {
                return Ok(Some(line));
            }
            if self.ended {
                let last = self.decoder.finish(&mut self.buffer);
                return last.map_err(|error| self.too_long(error));
            }
            self.reserve();
            self.ended = self.reader.read_buf(&mut self.buffer).await? == 0;
        }
    }
}

/// The sending half of [`Lines`].
///
/// What is on its way is kept in order: the gathered bytes, then at most one large message and its newline.
/// It stays here until it is written, so that a dropped future leaves no half line behind.
#[derive(Debug)]
pub struct LinesSink<W> {
    writer: W,
    gathered: Vec<u8>,
    written: usize,
    large: Bytes,
    newline: &'static [u8],
}

impl<W> LinesSink<W> {
    const fn new(writer: W) -> Self {
        Self { writer, gathered: Vec::new(), written: 0, large: Bytes::new(), newline: b"" }
    }

    /// Puts a message behind the gathered ones; nothing large may be waiting.
    fn stage(&mut self, message: Bytes) {
        if message.len() <= GATHER_BYTES || message.contains(&b'\n') || message.contains(&b'\r') {
            encode_line(&message, &mut self.gathered);
        } else {
            self.large = message;
            self.newline = b"\n";
        }
    }

    fn is_staged_full(&self) -> bool {
        self.gathered.len() >= GATHER_BYTES || !self.newline.is_empty()
    }

    /// Forgets the first `count` bytes of what is staged.
    fn advance(&mut self, mut count: usize) {
        let from_gathered = count.min(self.gathered.len() - self.written);
        self.written += from_gathered;
        count -= from_gathered;
        let from_large = count.min(self.large.len());
        self.large.advance(from_large);
        if count > from_large {
            self.newline = b"";
        }
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> LinesSink<W> {
    async fn write_staged(&mut self) -> io::Result<()> {
        loop {
            let gathered = self.gathered.get(self.written..).unwrap_or_default();
            let written = if !self.newline.is_empty() {
                let parts = [IoSlice::new(gathered), IoSlice::new(&self.large), IoSlice::new(self.newline)];
                self.writer.write_vectored(&parts).await?
            } else if !gathered.is_empty() {
                self.writer.write(gathered).await?
            } else {
                break;
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(written);
        }
        self.gathered.clear();
        self.gathered.shrink_to(2 * GATHER_BYTES);
        self.written = 0;
        // A large message may be a view of a far larger buffer.
        self.large = Bytes::new();
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Sink for LinesSink<W> {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        if self.is_staged_full() {
            self.write_staged().await?;
        }
        self.stage(message);
        if self.is_staged_full() {
            self.write_staged().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.write_staged().await?;
        self.writer.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.writer.shutdown().await
    }
}
