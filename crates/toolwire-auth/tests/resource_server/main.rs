//! A server that takes tokens: real tokens, real HTTP messages, and everything that can be wrong with them.

#![expect(clippy::unwrap_used, reason = "tests")]

mod admits;
mod challenges;
mod downstream;
mod kit;
mod proofs;
mod unavailable;
