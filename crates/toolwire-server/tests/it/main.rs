//! A server from the outside, over memory, line by line.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod access_hidden;
mod admission;
mod asking;
mod detached;
mod offers;
mod rough;
mod sessions;
mod tasks;
mod wire;
