//! OAuth for MCP, both ways: a server that lets in only those who belong, and a client that can log in.

pub mod challenge;
pub mod dpop;
pub mod fetch;
pub mod jose;

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;
