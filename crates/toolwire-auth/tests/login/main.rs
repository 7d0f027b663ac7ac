//! Logging in, using and renewing against a small authorization server on this machine.

mod attacks;
mod logout;
mod renewal;
mod world;
