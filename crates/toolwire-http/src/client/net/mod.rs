//! Connections to one origin: how they are made, kept and used again.
//!
//! [`Pool`] is what everything above sends its requests through. It knows HTTP and nothing of MCP. What it deliberately
//! does not do: follow redirects, keep cookies, decompress, or send anything again that may have reached the server.

mod body;
mod connection;
mod dial;
mod error;
mod idle;
mod origin;
mod pool;
mod proxy;
mod stream;
mod tcp;
#[cfg(test)]
mod tests;
#[cfg(feature = "client-tls")]
mod tls;

pub(super) use body::{Body, Response};
pub(super) use dial::{Dialer, Versions};
pub use error::{CertificateFault, FetchErrorKind};
pub(super) use error::{Kind, NetError, Shown};
pub(super) use origin::{Origin, Target, basic_credentials};
pub(super) use pool::{Bounds, Pool};
pub(super) use proxy::Proxy;
pub(super) use tcp::AddressFilter;
#[cfg(feature = "client-tls")]
pub(super) use tls::{Roots, TlsClient};
