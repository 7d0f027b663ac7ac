//! Logging in to a server.
//!
//! Everything that decides is pure: [`flow`] ties the steps together, and whoever drives it brings network, browser,
//! clock and randomness.

mod account;
pub mod authorize;
mod authorizer;
mod builder;
mod credential;
pub mod device;
pub mod discover;
mod driver;
mod error;
mod event;
pub mod flow;
pub mod login;
pub mod register;
mod renew;
pub mod scopes;
mod skew;
pub mod store;
pub mod token;

pub use self::{
    account::{LoggedOut, Prospect, Revoked},
    builder::{ClientProof, DangerousBuilder, OAuth, OAuthBuilder},
    error::{AuthError, AuthErrorKind},
    event::{Event, Notice, Step, Verdict},
};
