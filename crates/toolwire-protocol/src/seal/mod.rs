//! `requestState`: what a server remembers of a multi round-trip request, kept by the client and unreadable
//! to it.
//!
//! The state is encrypted and authenticated, bound to the server, the protocol version, the caller and the
//! request, and it expires. A client that changes, swaps or keeps it gets one and the same error. Randomness
//! and the time are arguments: this module has neither.

mod binding;
mod keys;
mod memory;
mod state;
mod store;

pub use binding::Binding;
pub use keys::{KeyError, KeyRing, Opened};
pub use memory::Memory;
pub use state::RequestState;
pub use store::StorePlace;

use std::fmt;

/// How many random bytes one sealing takes.
pub const NONCE_BYTES: usize = 24;

/// The longest sealed state, in characters. A client has to carry it, so it should be small.
pub const MAX_SEALED_BYTES: usize = 16 * 1024;

/// A state that is not accepted. The reason is for our log alone: a client is always told the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsealable {
    /// Longer than any state we make.
    TooLong,
    /// Not something that we have made.
    Malformed,
    /// Sealed with a key we do not have.
    UnknownKey,
    /// Changed on the way, or sealed for another server or version.
    Forged,
    /// Too old.
    Expired,
    /// Made for another request or another caller.
    Foreign,
    /// Used before, where it may be used only once.
    Replayed,
}

impl Unsealable {
    /// What a client is told, whatever the reason.
    pub const MESSAGE: &'static str = "invalid or expired requestState; send the request again without it";
}

impl fmt::Display for Unsealable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the state is too long",
            Self::Malformed => "the state is malformed",
            Self::UnknownKey => "the state was sealed with an unknown key",
            Self::Forged => "the state does not authenticate",
            Self::Expired => "the state has expired",
            Self::Foreign => "the state belongs to another request or caller",
            Self::Replayed => "the state was used before",
        })
    }
}

impl std::error::Error for Unsealable {}

#[cfg(test)]
mod tests;
