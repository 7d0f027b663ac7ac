//! The standard input and output of this process, for a server that was started by its client.
//!
//! The protocol gets copies of both descriptors, and the originals are pointed elsewhere: standard output at
//! standard error, standard input at nothing. A stray `println!`, or a child that writes to the output
//! it inherited, then shows up among the logs instead of breaking the stream.
//!
//! Pipes and sockets are read and written without blocking; files and terminals, where that is not possible,
//! by a thread each. On Windows there are only threads, and `println!` is not kept away from the protocol.
//!
//! A message may take any time to arrive: there is one client, which has started this process and may end it, and whose
//! unfinished line is in nobody's way. Its bytes are counted like those of others.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

mod threads;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use toolwire_protocol::framing::DEFAULT_MAX_MESSAGE_BYTES;

use crate::duplex::{Duplex, LocalPeer, ReceiveError, Sink, Source};
use crate::ledger::Ledger;
use crate::lines::{Lines, LinesSink, LinesSource};

#[cfg(unix)]
use unix as system;
#[cfg(not(unix))]
use windows as system;

/// Whether the descriptors were taken; there is only one pair of them in a process.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// Takes standard input and output for the protocol; the same as [`Stdio::claim`].
pub fn stdio() -> io::Result<Stdio> {
    Stdio::claim()
}

/// The standard input and output of this process as a [`Duplex`].
#[derive(Debug)]
pub struct Stdio {
    descriptors: system::Descriptors,
    max_message_bytes: usize,
}

impl Stdio {
    /// Takes standard input and output for the protocol.
    ///
    /// Do it before anything reads from standard input: what [`std::io::stdin`] has buffered is lost to us.
    ///
    /// # Errors
    ///
    /// When they were taken before, and when the system refuses to duplicate them.
    pub fn claim() -> io::Result<Self> {
        if CLAIMED.swap(true, Ordering::SeqCst) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "standard input and output are already taken: a process can serve only one client on stdio",
            ));
        }
        let descriptors = system::Descriptors::claim().inspect_err(|_| {
            CLAIMED.store(false, Ordering::SeqCst);
        })?;
        Ok(Self { descriptors, max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES })
    }

    /// Sets the longest message that is received.
    ///
    /// In the worst case the read buffer takes about twice as much memory.
    #[must_use]
    pub const fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }
}

impl Duplex for Stdio {
    type Source = StdioSource;
    type Sink = StdioSink;

    /// Takes the two halves apart.
    ///
    /// Inside a Tokio runtime, which must have its IO driver enabled, pipes and sockets are used without
    /// blocking. Outside of one, threads do the work.
    fn split(self) -> (StdioSource, StdioSink) {
        let (input, output) = self.descriptors.open();
        let (source, sink) = Lines::new(input, output).max_message_bytes(self.max_message_bytes).split();
        (StdioSource(source), StdioSink(sink))
    }

    fn local_peer(&self) -> Option<LocalPeer> {
        Some(LocalPeer::new())
    }

    fn ends_process(&self) -> bool {
        true
    }
}

/// The receiving half of [`Stdio`]; its end means that the client wants the server to go.
#[derive(Debug)]
pub struct StdioSource(LinesSource<system::Input>);

/// The sending half of [`Stdio`].
#[derive(Debug)]
pub struct StdioSink(LinesSink<system::Output>);

impl Source for StdioSource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        self.0.receive().await
    }

    fn charge_to(&mut self, ledger: &Ledger) {
        self.0.charge_to(ledger);
    }
}

impl Sink for StdioSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.0.send(message).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.0.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.close().await
    }

    fn charge_to(&mut self, ledger: &Ledger) {
        self.0.charge_to(ledger);
    }
}
