//! One message per line over any pair of byte streams: what stdio, child processes and sockets share.
//!
//! A message is never copied after it was read. Small messages are gathered and written together; large
//! ones are written from where they are. What a line holds is not looked at.

use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};
use toolwire_protocol::framing::DEFAULT_MAX_MESSAGE_BYTES;
use toolwire_protocol::framing::ndjson::{LineDecoder, LineTooLong, encode_line};

use crate::duplex::{Duplex, LocalPeer, ReceiveError, Sink, Source};
use crate::ledger::{Account, BufferCharge, Ledger, LimitReached};

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
    message_timeout: Option<Duration>,
    peer: Option<LocalPeer>,
}

impl<R, W> Lines<R, W> {
    /// Frames `reader` and `writer`, with messages of up to [`DEFAULT_MAX_MESSAGE_BYTES`].
    pub const fn new(reader: R, writer: W) -> Self {
        let max_message_bytes = DEFAULT_MAX_MESSAGE_BYTES;
        Self { reader, writer, max_message_bytes, message_timeout: None, peer: None }
    }

    /// Sets the longest message that is received.
    ///
    /// In the worst case the read buffer takes about twice as much memory.
    #[must_use]
    pub const fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets the timeout for receiving a message that has begun; there is none by default. With one, it has to be
    /// used in a Tokio runtime that has timers.
    #[must_use]
    pub const fn message_timeout(mut self, timeout: Duration) -> Self {
        self.message_timeout = Some(timeout);
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
        let source = LinesSource::new(self.reader, self.max_message_bytes, self.message_timeout);
        (source, LinesSink::new(self.writer))
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
    timeout: Option<Duration>,
    /// When the line that has begun has to be complete.
    deadline: Option<Instant>,
    charge: Option<BufferCharge>,
    /// Why the line that has begun is dropped, until that is reported. Boxed, because that is rare.
    refused: Option<Box<LimitReached>>,
}

impl<R> LinesSource<R> {
    fn new(reader: R, max_message_bytes: usize, timeout: Option<Duration>) -> Self {
        let decoder = LineDecoder::new(max_message_bytes);
        Self {
            reader,
            decoder,
            buffer: BytesMut::new(),
            ended: false,
            timeout,
            deadline: None,
            charge: None,
            refused: None,
        }
    }

    /// Reports a line that was dropped.
    #[cold]
    fn dropped(&mut self, error: LineTooLong) -> ReceiveError {
        self.deadline = None;
        // With a lower limit, the buffer was never large.
        if error.limit > READ_BYTES {
            self.release();
        }
        let outline = Box::new(self.decoder.take_outline());
        match self.refused.take() {
            Some(reached) => ReceiveError::Busy { reached: *reached, outline },
            None => ReceiveError::TooLong { limit: error.limit, outline },
        }
    }

    /// Makes room for a read; a long line doubles the buffer, so that it is moved only a few times.
    fn reserve(&mut self) {
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < READ_MIN_BYTES {
            self.buffer.reserve(READ_BYTES.max(self.buffer.len()));
        }
    }

    /// Notes that a line is handed out, for which `taken` bytes left the buffer.
    fn complete(&mut self, line: Bytes, taken: usize) -> Bytes {
        self.deadline = None;
        if taken > READ_BYTES { self.complete_large(line) } else { line }
    }

    #[cold]
    fn complete_large(&mut self, line: Bytes) -> Bytes {
        self.release();
        // A short line behind long blank ones would keep their memory.
        if line.len() > READ_BYTES { line } else { Bytes::copy_from_slice(&line) }
    }

    /// Notes that `taken` bytes left the buffer that were part of no message: blank lines, or a piece of one that is
    /// dropped. What is left has begun since.
    #[cold]
    fn skipped(&mut self, taken: usize) {
        self.deadline = None;
        if taken > READ_BYTES {
            self.release();
        }
    }

    /// Gives back the memory of a long line. What came behind it, at most one read, moves: otherwise a short line
    /// would keep the memory of the long one.
    #[cold]
    fn release(&mut self) {
        self.deadline = None;
        self.buffer = BytesMut::from(self.buffer.as_ref());
        if let Some(charge) = &mut self.charge {
            charge.set_unchecked(self.buffer.len());
        }
    }

    /// Charges the line that has begun, and gives the moment when it has to be complete.
    fn check_unfinished(&mut self) -> Result<Option<Instant>, ReceiveError> {
        if let Some(charge) = &mut self.charge
            && let Err(reached) = charge.set(self.buffer.len())
        {
            self.refuse(reached)?;
        }
        match self.timeout {
            Some(timeout) if !self.buffer.is_empty() => {
                if self.deadline.is_none() {
                    self.deadline = Instant::now().checked_add(timeout);
                }
            }
            _ => self.deadline = None,
        }
        Ok(self.deadline)
    }

    /// Drops the line that has begun, which may not be held. It is reported once its outline is known.
    #[cold]
    fn refuse(&mut self, reached: LimitReached) -> Result<(), ReceiveError> {
        self.refused = Some(Box::new(reached));
        let discarded = self.decoder.discard(&mut self.buffer);
        self.release();
        discarded.map_err(|error| self.dropped(error))
    }

    /// Ends it, without the line that has begun.
    #[cold]
    fn give_up(&mut self, error: ReceiveError) -> ReceiveError {
        self.ended = true;
        self.decoder = LineDecoder::new(self.decoder.limit());
        self.refused = None;
        self.buffer.clear();
        self.release();
        error
    }
}

impl<R: AsyncRead + Unpin> LinesSource<R> {
    async fn read(&mut self, deadline: Option<Instant>) -> Result<(), ReceiveError> {
        self.reserve();
        // No more than that at once, or what comes behind a long line could be as long.
        let mut room = (&mut self.buffer).limit(READ_BYTES);
        let reading = self.reader.read_buf(&mut room);
        let read = match deadline {
            None => reading.await,
            // Boxed, because that is rare, and every source would have room for the clock.
            Some(deadline) => match Box::pin(timeout_at(deadline, reading)).await {
                Ok(read) => read,
                Err(_) => return Err(ReceiveError::TimedOut { limit: self.timeout.unwrap_or_default() }),
            },
        };
        self.ended = read? == 0;
        Ok(())
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> Source for LinesSource<R> {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        loop {
            let before = self.buffer.len();
            let decoded = self.decoder.decode(&mut self.buffer);
            let taken = before - self.buffer.len();
            if let Some(line) = decoded.map_err(|error| self.dropped(error))? {
                return Ok(Some(self.complete(line, taken)));
            }
            if taken > 0 {
                self.skipped(taken);
            }
            if self.ended {
                let last = self.decoder.finish(&mut self.buffer).map_err(|error| self.dropped(error))?;
                self.release();
                return Ok(last);
            }
            let deadline = self.check_unfinished()?;
            self.read(deadline).await.map_err(|error| self.give_up(error))?;
        }
    }

    fn charge_to(&mut self, ledger: &Ledger) {
        self.charge = Some(BufferCharge::new(ledger, Account::RequestBytes));
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
    charge: Option<BufferCharge>,
}

impl<W> LinesSink<W> {
    const fn new(writer: W) -> Self {
        Self { writer, gathered: Vec::new(), written: 0, large: Bytes::new(), newline: b"", charge: None }
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
        if let Some(charge) = &mut self.charge {
            charge.set_unchecked(0);
        }
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
            if let Some(charge) = &mut self.charge {
                charge.set_unchecked(self.gathered.len() + self.large.len());
            }
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

    fn charge_to(&mut self, ledger: &Ledger) {
        self.charge = Some(BufferCharge::new(ledger, Account::AnswerBytes));
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{duplex, sink};

    use super::*;

    #[tokio::test]
    async fn a_long_blank_line_leaves_no_memory_behind() {
        let (mut near, far) = duplex(8 * READ_BYTES);
        let (mut source, _) = Lines::new(far, sink()).split();
        let mut blank = vec![b' '; 5 * READ_BYTES];
        blank.push(b'\n');
        near.write_all(&blank).await.unwrap();
        tokio::select! {
            biased;
            received = source.receive() => panic!("there is no message: {received:?}"),
            () = std::future::ready(()) => {}
        }
        assert!(source.buffer.capacity() <= 2 * READ_BYTES, "{}", source.buffer.capacity());
        blank.extend_from_slice(b"{}\n");
        near.write_all(&blank).await.unwrap();
        let line = source.receive().await.unwrap().unwrap();
        assert!(line == "{}" && line.is_unique(), "a short line keeps the memory of a long one");
    }
}
