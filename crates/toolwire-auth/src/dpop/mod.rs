//! Proofs that a token is used by whoever it was given to (RFC 9449).
