//! Streamable HTTP for MCP: both protocol eras on one endpoint.
//!
//! The server side is `server`: one path that every client can call, old or new. The client side, with the feature
//! `client`, is `client`: it calls every server, old or new. With the feature `ws`, both can do it by WebSocket too.
//!
//! ```no_run
//! use toolwire_http::server::serve_http;
//! use toolwire_server::{Server, tool};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build()?;
//! serve_http(server, "127.0.0.1:3000").await?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;
#[cfg(all(feature = "ws", any(feature = "client", feature = "server")))]
mod websocket;
