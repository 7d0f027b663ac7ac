//! A stream that notes what is read from it: any byte is a sign of life, and those of a message that is not complete
//! are counted and charged.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use toolwire_transport::ledger::{BufferCharge, UNCHARGED_BYTES};

use super::fragments::Fragments;

/// The state of reading: if anything came since the last look, and the unfinished bytes of a message.
#[derive(Debug, Default)]
pub(super) struct Ear {
    heard: AtomicBool,
    covered: AtomicBool,
    /// The number of bytes that have come of a message that is not complete. Only the task that reads changes it, so this takes
    /// no atomic addition.
    unfinished: AtomicUsize,
    /// The charge for them, if there is a ledger.
    charge: Mutex<Option<BufferCharge>>,
}

impl Ear {
    pub(super) fn new(charge: Option<BufferCharge>) -> Self {
        Self { charge: Mutex::new(charge), ..Self::default() }
    }

    /// Notes that bytes have come. An error means that they may not be held.
    fn hear(&self, bytes: usize) -> io::Result<()> {
        self.heard.store(true, Ordering::Relaxed);
        let unfinished = self.unfinished.load(Ordering::Relaxed).saturating_add(bytes);
        self.unfinished.store(unfinished, Ordering::Relaxed);
        if unfinished > UNCHARGED_BYTES { self.charge(unfinished) } else { Ok(()) }
    }

    /// Charges what has come of a message.
    #[cold]
    fn charge(&self, unfinished: usize) -> io::Result<()> {
        match &mut *self.charge.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(charge) if charge.amount() < unfinished => charge.set(unfinished).map_err(io::Error::other),
            _ => Ok(()),
        }
    }

    /// Gives back the charge for a message that took so many bytes, which is not here any more.
    pub(super) fn release(&self, came: usize) {
        if came > UNCHARGED_BYTES
            && let Some(charge) = &mut *self.charge.lock().unwrap_or_else(PoisonError::into_inner)
        {
            charge.set_unchecked(self.unfinished.load(Ordering::Relaxed));
        }
    }

    /// Returns whether a message has begun that is not complete.
    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished.load(Ordering::Relaxed) > 0
    }

    /// Notes that a message is complete. Of the next one, at most what one read takes may be there already; it is not
    /// counted, and has no clock until more of it comes: how much of a read were the heads of frames is not known.
    /// Returns the number of bytes that were counted.
    pub(super) fn complete(&self) -> usize {
        let came = self.unfinished.load(Ordering::Relaxed);
        self.unfinished.store(0, Ordering::Relaxed);
        came
    }

    /// Notes that so many bytes were part of no message.
    pub(super) fn discount(&self, bytes: usize) {
        let unfinished = self.unfinished.load(Ordering::Relaxed).saturating_sub(bytes);
        self.unfinished.store(unfinished, Ordering::Relaxed);
    }

    /// Nobody can be blamed for silence while this side does not listen.
    pub(super) fn has_heard(&self) -> bool {
        self.heard.swap(false, Ordering::Relaxed) || self.covered.load(Ordering::Relaxed)
    }

    /// Says that this side does not listen for now, because it is behind, or that it does again.
    pub(super) fn cover(&self, covered: bool) {
        self.covered.store(covered, Ordering::Relaxed);
    }
}

/// A stream whose reading is noticed, and whose long frames are cut.
#[derive(Debug)]
pub(super) struct Heard<S> {
    stream: S,
    ear: Arc<Ear>,
    fragments: Fragments,
}

impl<S> Heard<S> {
    /// A stream of messages of at most `limit` bytes.
    pub(super) fn new(stream: S, ear: Arc<Ear>, limit: usize) -> Self {
        Self { stream, ear, fragments: Fragments::new(limit) }
    }

    /// The stream alone.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, ear, fragments } = &mut *self;
        let before = buf.filled().len();
        loop {
            match ready!(fragments.poll_read(stream, task, buf))? {
                // The end, or the head of a piece.
                0 => return Poll::Ready(Ok(())),
                read => ear.hear(read)?,
            }
            // Nothing in the buffer would mean the end, but it was a part of a head that is kept until the rest has come.
            if buf.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
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
