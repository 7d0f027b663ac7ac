//! What was sent on the streams of a session, kept for clients that were cut off and come back.
//!
//! An event is in the log before it is on the wire. So whatever a client may have seen, or missed, is there
//! when it asks for what came after the last event it has. The log only stores: who is connected, and who is
//! to be woken, is known to the streams.

mod memory;

use std::{fmt, io};

use bytes::Bytes;
use toolwire_transport::{BoxFuture, ledger::Ledger};

use super::id::{SessionId, StreamKey};

pub use memory::{EventLogLimits, MemoryEventLog};

/// One event that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct LoggedEvent {
    /// Its place in the stream. Later events have higher numbers; some numbers may be left out.
    pub sequence: u64,
    /// The JSON-RPC message.
    pub message: Bytes,
}

/// Keeps the events of legacy streams, so that they can be resumed.
///
/// [`MemoryEventLog`] is used unless another one is given. An implementation must be bounded by itself; what it
/// has let go of cannot be resumed, which is all that is lost.
pub trait EventLog: fmt::Debug + Send + Sync + 'static {
    /// Keeps an event. It is sent when the future is done, and it is sent all the same when this fails.
    fn append<'a>(&'a self, stream: &'a StreamKey, event: LoggedEvent) -> BoxFuture<'a, io::Result<()>>;

    /// Keeps an event of a session whose bytes are on `ledger`, below that of its caller. A log that shares its room among
    /// callers has use for it.
    #[doc(hidden)]
    fn append_charged<'a>(
        &'a self,
        stream: &'a StreamKey,
        event: LoggedEvent,
        ledger: &Ledger,
    ) -> BoxFuture<'a, io::Result<()>> {
        let _ = ledger;
        self.append(stream, event)
    }

    /// Lets go of events that are charged to `ledger` until so many bytes fit there, which are about to be sent on this
    /// stream. Must not block.
    #[doc(hidden)]
    fn make_room(&self, stream: &StreamKey, bytes: usize, ledger: &Ledger) {
        let _ = (stream, bytes, ledger);
    }

    /// The events of this stream, and of no other, that come after `sequence`, in order.
    fn after<'a>(
        &'a self,
        stream: &'a StreamKey,
        sequence: u64,
    ) -> BoxFuture<'a, io::Result<Vec<LoggedEvent>>>;

    /// Nothing more will be appended to the stream: from now on its events may expire. Must not block.
    fn end_stream(&self, stream: &StreamKey);

    /// The session is gone, and everything of it can be forgotten. Must not block. May be called again.
    fn forget(&self, session: &SessionId);

    /// Called every now and then, to let go of what has expired. Must not block.
    fn sweep(&self);
}

#[cfg(test)]
mod tests;
