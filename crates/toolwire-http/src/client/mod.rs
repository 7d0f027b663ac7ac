//! Connects a [`Client`](toolwire_client::Client) to a server over HTTP, whatever the server speaks.
//!
//! [`Http`] is a [`Connector`](toolwire_client::Connector), and with the feature `ws` so is `WebSocket`. The client opens with a modern request; what comes
//! back decides whether it goes on like that, makes a legacy session, or, with the feature `sse2024`, opens the
//! event stream of the first revision.
//!
//! ```no_run
//! use toolwire_client::Client;
//! use toolwire_http::client::Http;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("host", "1.0").connect(Http::new("http://127.0.0.1:8080/mcp")?).await?;
//! println!("{}", client.version());
//! # Ok(())
//! # }
//! ```
//!
//! What it deliberately does not do: keep cookies, decompress, follow redirects to other origins, or fetch what a
//! schema refers to.

mod answer;
pub mod authorize;
mod builder;
mod connector;
mod endpoint;
mod events;
mod fault;
pub mod fetch;
mod link;
mod net;
mod settings;
#[cfg(feature = "sse2024")]
mod sse2024;
#[cfg(feature = "ws")]
mod websocket;

pub use builder::{HttpBuilder, HttpError};
pub use connector::{Http, Remote};
pub use settings::{CONNECT_TIMEOUT, HttpLimits, SEND_TIMEOUT};
#[cfg(feature = "ws")]
pub use websocket::{WebSocket, WebSocketBuilder};
