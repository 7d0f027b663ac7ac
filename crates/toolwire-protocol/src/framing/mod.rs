//! How messages are told apart in a stream of bytes: one per line ([`ndjson`]) or one per server-sent
//! event ([`sse`]).
//!
//! Everything here is sans-IO: bytes go in, messages come out, and whoever owns the socket or the pipe
//! decides when to read. Nothing here looks into the JSON.

pub mod ndjson;
pub mod sse;

/// What can be said of a message that was too long to be kept.
pub use crate::envelope::Outline;

/// The largest message that is accepted unless the owner of a transport says otherwise: 4 MiB.
///
/// The limit holds for one line of a duplex transport as well as for one event of an event stream. It is
/// what keeps a peer that never ends its message from filling our memory.
pub const DEFAULT_MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
