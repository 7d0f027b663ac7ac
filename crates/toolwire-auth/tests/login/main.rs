//! Logging in, using and renewing against a small authorization server on this machine.

mod attacks;
mod renewal;
mod world;
