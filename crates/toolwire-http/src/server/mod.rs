//! A [`Server`](toolwire_server::Server) on HTTP: both protocol eras on one path, told apart request by request.
//!
//! [`HttpService`] is a [`tower_service::Service`], so it can be mounted in any router; [`HttpService::bind`] and
//! [`serve_http`] are for those who want none. What it deliberately does not do: authenticate. A [`Guard`] does that, or
//! a layer in front of it that leaves a [`Principal`] in the extensions of the request.
//!
//! # Behind another HTTP server
//! What is about connections is the business of whoever serves them, as axum does for a router: the limits
//! `connections`, `connections_per_address`, `header_timeout`, `headers`, `header_bytes`, `write_timeout` and
//! `requests_per_connection` are then theirs to have, and so is the end: after
//! [`Server::shutdown`](toolwire_server::Server::shutdown) listen streams end by themselves and running requests are
//! answered within `drain_timeout`, but when the connections themselves are closed is for that server to say.
//!
//! # Closed connections
//! Closing its response cancels a request of 2026-07-28. Over HTTP/2 that is resetting the stream. Over HTTP/1 it is
//! closing the connection, which is not told apart from closing only the sending half of it until something is written:
//! a client that sends a request, shuts down its side and reads is answered, a client that has gone is noticed with
//! the next event, at the latest after `keep_alive`, and one that resets the connection is noticed at once.

mod body;
mod builder;
mod config;
mod connection;
mod cors;
mod documents;
mod drain;
mod edge;
mod entry;
mod extract;
mod graceful;
mod guard;
mod io;
mod legacy;
mod modern;
mod pages;
mod peer;
mod poll_on_wake;
mod read;
mod response;
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
pub use documents::Documents;
pub use extract::HttpRequest;
pub use guard::{Admission, Denied, Guard, Lacking};
#[doc(hidden)]
pub use guard::{LEEWAY, UNKNOWN_EXPIRY};
pub use legacy::{EventLog, EventLogLimits, LegacyStream, LoggedEvent, MemoryEventLog, SessionId, StreamKey};
pub use peer::PeerAddr;
pub use serve::{Serve, Serving, serve_http};
pub use service::HttpService;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
pub use toolwire_server::Principal;
