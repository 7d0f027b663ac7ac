//! Logging in to a server.
//!
//! Everything that decides is pure: [`flow`] ties the steps together, and whoever drives it brings network, browser,
//! clock and randomness.

pub mod authorize;
pub mod device;
pub mod discover;
mod error;
mod event;
pub mod flow;
pub mod register;
pub mod scopes;
pub mod token;

pub use self::{
    error::{AuthError, AuthErrorKind},
    event::{Event, Step, Verdict},
};
