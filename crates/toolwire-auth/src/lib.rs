//! OAuth for MCP, both ways: a server that lets in only those who belong, and a client that can log in.
//!
//! Three rules decide everything here. *Text stays text*: an [`Issuer`] and a [`Resource`] are kept and compared byte
//! for byte, and only an [`Endpoint`] is a parsed URL. *Refused is not unreachable*: no credential is dropped because
//! of a network fault. *A token has two readers*: whoever checks it, and the wire.

pub mod challenge;
pub mod clock;
pub mod dpop;
pub mod entropy;
pub mod fetch;
pub mod jose;
#[cfg(any(feature = "client", feature = "server"))]
mod metadata;
mod secret;
mod text;

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;

pub use self::{
    secret::{Secret, SecretError},
    text::{Endpoint, InvalidText, Issuer, MAX_IDENTIFIER_BYTES, Origins, Resource},
};
