//! A server that the client starts as a child process and talks to over its standard input and output.
//!
//! The child gets a process group of its own, so that ending it also ends what it has started. Its standard
//! error is kept, so that an error about a dead server can say why it died. Lines on its standard output
//! that cannot be messages are skipped and counted.
//!
//! The end comes in steps: standard input is closed; after a while the group gets a TERM signal; after
//! another while a KILL signal. A child that is dropped without being closed gets the KILL at once. What can
//! not be helped from here: when this very process is killed, the child only notices that its input ends.
//! (Linux could do more, but its parent-death signal cannot be asked for without `unsafe` code.) Outside of
//! Unix there are no groups and no TERM signal: only the child itself is ended.
//!
//! A Tokio runtime with time and IO enabled is needed. Restarting is left to the layers above.

mod exit;
mod group;
mod handle;
mod junk;
mod process;
mod spawn_error;
mod stderr;
mod stdin;
mod supervisor;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::process::ChildStdout;

pub use exit::{Ending, ExitReport};
pub use handle::ChildHandle;
pub use junk::{JUNK_LINE_BYTES, JUNK_LINES, Junk};
pub use process::{ChildProcess, DEFAULT_STDIN_GRACE, DEFAULT_TERM_GRACE};
pub use spawn_error::SpawnError;
pub use stderr::{STDERR_LINE_BYTES, STDERR_LINES};

use crate::duplex::{Diagnostics, Duplex, ReceiveError, Sink, Source};
use crate::lines::{Lines, LinesSink, LinesSource};
use handle::{KillOnDrop, Shared};
use stdin::ChildInput;

/// A running child process.
///
/// Dropping it, or both of its halves, kills the child and its process group. To end it in an orderly way
/// call [`Sink::close`] or [`ChildHandle::shutdown`].
#[derive(Debug)]
pub struct Child {
    lines: Lines<ChildStdout, ChildInput>,
    kill_on_drop: Arc<KillOnDrop>,
}

impl Child {
    /// A handle to the process that outlives [`split`](Duplex::split).
    pub fn handle(&self) -> ChildHandle {
        ChildHandle::new(Arc::clone(self.kill_on_drop.shared()))
    }

    /// How the process ended, if it has.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.handle().exited()
    }
}

impl Duplex for Child {
    type Source = ChildSource;
    type Sink = ChildSink;

    fn split(self) -> (ChildSource, ChildSink) {
        let (source, sink) = self.lines.split();
        let kill_on_drop = Arc::clone(&self.kill_on_drop);
        (
            ChildSource { lines: source, kill_on_drop },
            ChildSink { lines: sink, kill_on_drop: self.kill_on_drop },
        )
    }

    fn diagnostics(&self) -> Option<Arc<dyn Diagnostics>> {
        Some(Arc::new(self.handle()))
    }
}

/// The receiving half of a [`Child`].
#[derive(Debug)]
pub struct ChildSource {
    lines: LinesSource<ChildStdout>,
    kill_on_drop: Arc<KillOnDrop>,
}

impl Source for ChildSource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        loop {
            match self.lines.receive().await? {
                Some(line) if junk::is_junk(&line) => self.shared().add_junk(&line),
                message => return Ok(message),
            }
        }
    }
}

impl ChildSource {
    fn shared(&self) -> &Shared {
        self.kill_on_drop.shared()
    }
}

/// The sending half of a [`Child`].
#[derive(Debug)]
pub struct ChildSink {
    lines: LinesSink<ChildInput>,
    kill_on_drop: Arc<KillOnDrop>,
}

impl Sink for ChildSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.lines.send(message).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.lines.flush().await
    }

    /// Closes the child's standard input, from when on it has a limited time to end by itself.
    async fn close(&mut self) -> io::Result<()> {
        let closed = self.lines.close().await;
        self.kill_on_drop.shared().ask_to_close();
        closed
    }
}
