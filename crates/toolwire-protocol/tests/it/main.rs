//! Integration tests of the protocol crate, in one binary.

mod cost;
mod examples;
