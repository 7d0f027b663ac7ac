//! Logging in, using and renewing against a small authorization server on this machine.

#![expect(clippy::unwrap_used, reason = "tests")]

mod attacks;
mod browser;
mod clocks;
mod logout;
mod renewal;
mod whole;
mod world;
