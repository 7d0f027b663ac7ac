//! Proofs that a token is used by whoever it was given to (RFC 9449).
//!
//! A client signs each request with a key that its token is bound to, and a server checks that: [`Proof`] makes one,
//! [`check`](check()) judges one, [`Nonces`] say how fresh it has to be. What has been checked is taken
//! [once](Proved::take).

mod check;
mod nonce;
mod proof;

#[cfg(test)]
mod tests;

pub use check::{Expected, MAX_PROOF_BYTES, ProofError, Proved, Target, WINDOW, check, single};
pub use nonce::{NONCE_PERIOD, Nonces};
pub use proof::Proof;

/// The header that a proof is in.
pub const PROOF_HEADER: &str = "dpop";

/// The header that a nonce is in.
pub const NONCE_HEADER: &str = "dpop-nonce";

/// The type of a proof.
const TYPE: &str = "dpop+jwt";
