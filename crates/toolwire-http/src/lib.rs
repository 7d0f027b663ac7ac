//! Streamable HTTP for MCP: both protocol eras on one endpoint.

pub mod server;
