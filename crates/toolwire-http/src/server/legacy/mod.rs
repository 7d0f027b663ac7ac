//! Streamable HTTP as it was before 2026-07-28: sessions, and streams that can be resumed.
//!
//! * `sessions` holds who is known, and forgets who has gone.
//! * `session` is one client: its running requests and its streams.
//! * `stream` and `reader` are a stream and the one connection that reads it.
//! * `event_log` keeps what was sent, for those who come back.
//! * `reconnects` knows who was sent away and will come back.
//! * `running_call` sees a request through to its answer.
//! * `post_response` decides whether the answers of one POST leave as JSON or as a stream.
//! * `endpoint` puts them together behind the HTTP methods.
//!
//! What a request means is the business of the server behind it; whether it belongs to this era at all, of the
//! service in front.

mod batch;
mod denial;
mod endpoint;
mod event_log;
mod handle;
mod id;
mod post_response;
mod reader;
mod reconnects;
mod running_call;
mod session;
mod sessions;
#[cfg(feature = "sse2024")]
mod sse2024;
mod stream;

pub(crate) use endpoint::{LegacyEndpoint, LegacyRequest};
pub use event_log::{EventLog, EventLogLimits, LoggedEvent, MemoryEventLog};
pub use handle::LegacyStream;
pub use id::{SessionId, StreamKey};
pub(crate) use running_call::PendingResponse;
#[cfg(feature = "sse2024")]
pub(crate) use sse2024::{Sse2024, Sse2024Paths};

#[cfg(test)]
mod tests;
