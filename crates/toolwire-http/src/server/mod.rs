//! A [`Server`](toolwire_server::Server) on HTTP: both protocol eras on one path, told apart request by request.
//!
//! [`HttpService`] is a [`tower_service::Service`], so it can be mounted in any router; [`serve_http`] is for
//! those who want none. What it deliberately does not do: authenticate. A layer in front of it does that and
//! leaves a [`Principal`] in the extensions of the request.

mod body;
mod builder;
mod closing;
mod config;
mod connection;
mod cors;
mod edge;
mod io;
mod late;
mod legacy;
mod modern;
mod read;
mod response;
mod seldom;
mod serve;
mod service;
mod single;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "ws")]
mod upgrade;

pub use body::Body;
pub use builder::{HttpBuilder, HttpConfigError};
pub use config::{Cors, HttpLimits, Legacy};
pub use legacy::{EventLog, EventLogLimits, LegacyStream, LoggedEvent, MemoryEventLog, SessionId, StreamKey};
pub use serve::{Serve, serve_http};
pub use service::HttpService;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
pub use toolwire_server::Principal;
