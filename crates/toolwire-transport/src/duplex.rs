//! What every transport offers: two halves that carry whole messages.
//!
//! The halves are plain generic types, so that nothing is boxed on the way of a message. What a transport
//! knows beside its messages, such as why a child process ended, is behind [`Diagnostics`].

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use toolwire_protocol::framing::Outline;
use toolwire_protocol::framing::ndjson::LineTooLong;

use crate::ledger::{Ledger, LimitReached};

/// A boxed future, for the few places where a trait object has to be asynchronous.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection to one peer that carries whole messages both ways.
pub trait Duplex: Send + 'static {
    /// The half that receives.
    type Source: Source;
    /// The half that sends.
    type Sink: Sink;

    /// Takes the connection apart into its two halves, which then live in different tasks.
    fn split(self) -> (Self::Source, Self::Sink);

    /// What the transport can tell about its other side; ask before [`split`](Self::split).
    fn diagnostics(&self) -> Option<Arc<dyn Diagnostics>> {
        None
    }

    /// Who is at the other end, if that is a process on this machine that nobody else can speak for; ask before
    /// [`split`](Self::split). A transport that does not know says nothing, and its peer is a stranger.
    fn local_peer(&self) -> Option<LocalPeer> {
        None
    }

    /// Whether a server process is expected to end with this connection, because its peer has started it.
    #[doc(hidden)]
    fn ends_process(&self) -> bool {
        false
    }
}

/// A process on the same machine, at the other end of a pipe or a socket that only it can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalPeer {
    /// The user it belongs to, where the system tells.
    pub uid: Option<u32>,
}

impl LocalPeer {
    /// Somebody at the other end of a pipe.
    pub const fn new() -> Self {
        Self { uid: None }
    }

    /// A process of this user.
    #[must_use]
    pub const fn with_uid(uid: u32) -> Self {
        Self { uid: Some(uid) }
    }
}

/// The receiving half of a [`Duplex`].
pub trait Source: Send + 'static {
    /// Waits for the next whole message; `Ok(None)` means that the peer will send no more.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it is ready has taken no message.
    fn receive(&mut self) -> impl Future<Output = Result<Option<Bytes>, ReceiveError>> + Send;

    /// Charges to `ledger` from now on what was read and is not received yet, if that is more than a small constant.
    /// A source that buffers no more than that has nothing to do.
    #[doc(hidden)]
    fn charge_to(&mut self, _ledger: &Ledger) {}
}

/// The sending half of a [`Duplex`].
///
/// `send` may keep a message back until `flush`, so that a writer with many messages makes few system calls.
pub trait Sink: Send + 'static {
    /// Accepts one message, waiting while the peer is behind.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped may or may not have accepted its message, but never half of it.
    fn send(&mut self, message: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Writes out everything that was accepted.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Flushes and tells the peer that nothing more will come.
    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Charges to `ledger` from now on what was sent and is not written yet, if that is more than a small constant.
    /// A sink that buffers no more than that has nothing to do.
    #[doc(hidden)]
    fn charge_to(&mut self, _ledger: &Ledger) {}
}

/// What a transport can tell and do beside moving messages.
pub trait Diagnostics: fmt::Debug + Send + Sync {
    /// Why the connection ended, in words for a person; `None` when the transport cannot tell.
    fn why_closed(&self) -> BoxFuture<'static, Option<String>>;

    /// Ends the other side in an orderly way and waits until it is gone.
    fn shutdown(&self) -> BoxFuture<'static, ()>;
}

/// Why [`Source::receive`] has no message.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The peer sent a message over the limit, which was dropped. The connection goes on.
    TooLong {
        /// The limit in bytes.
        limit: usize,
        /// The outline of the message, by which it can be answered.
        outline: Box<Outline>,
    },
    /// A message that is not complete would have exceeded a limit on the bytes that are held, and was dropped. The
    /// connection goes on.
    Busy {
        /// The limit.
        reached: LimitReached,
        /// The outline of the message, by which it can be answered.
        outline: Box<Outline>,
    },
    /// A message was not complete in time. The connection is over.
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// The connection is broken.
    Io(io::Error),
}

impl ReceiveError {
    /// A message was over the limit, and nothing is known of it.
    pub fn too_long(limit: usize) -> Self {
        Self::TooLong { limit, outline: Box::default() }
    }

    /// What could be told of a message that was dropped; `None` when it is not about a message.
    pub const fn outline(&self) -> Option<&Outline> {
        match self {
            Self::TooLong { outline, .. } | Self::Busy { outline, .. } => Some(outline),
            Self::TimedOut { .. } | Self::Io(_) => None,
        }
    }

    /// Whether the connection is over, rather than one message lost.
    pub const fn is_fatal(&self) -> bool {
        !matches!(self, Self::TooLong { .. } | Self::Busy { .. })
    }
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { limit, .. } => LineTooLong { limit: *limit }.fmt(f),
            Self::Busy { reached, .. } => reached.fmt(f),
            Self::TimedOut { limit } => write!(f, "a message was not complete within {limit:?}"),
            Self::Io(_) => f.write_str("the connection broke while receiving"),
        }
    }
}

impl std::error::Error for ReceiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLong { .. } | Self::Busy { .. } | Self::TimedOut { .. } => None,
            Self::Io(error) => Some(error),
        }
    }
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
