//! The legacy era: the handshake and what it remembers of a client.
//!
//! This is the only place in the server that knows sessions. Requests leave it as the same
//! [`Context`](crate::Context)s that modern requests become.

mod peer;

pub(crate) use peer::LegacyPeer;
