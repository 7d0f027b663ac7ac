//! The endpoint over real sockets, with a client that hides nothing.

#![expect(clippy::unwrap_used, reason = "tests")]

mod addresses;
mod axum_router;
mod bare;
mod bind;
#[cfg(feature = "client")]
mod client_authorize;
#[cfg(feature = "client")]
mod client_fetch;
#[cfg(feature = "client")]
mod client_legacy;
#[cfg(feature = "client")]
mod client_modern;
#[cfg(feature = "client")]
mod client_observe;
#[cfg(feature = "client")]
mod client_probe;
#[cfg(feature = "client")]
mod client_proxy;
#[cfg(feature = "client")]
mod client_resume;
#[cfg(feature = "client")]
mod client_script;
#[cfg(all(feature = "client", feature = "sse2024"))]
mod client_sse2024;
#[cfg(all(feature = "client-tls", feature = "tls"))]
mod client_tls;
#[cfg(feature = "client")]
mod client_to_server;
#[cfg(all(feature = "client", feature = "ws"))]
mod client_websocket;
mod cors;
mod direct;
mod duplicated_headers;
mod edge;
mod fixture;
mod guard;
mod guard_kit;
mod guard_lacks;
mod guard_streams;
mod half_closed;
mod host;
mod hostile;
mod http2;
mod legacy_asks;
mod legacy_batch;
mod legacy_kit;
mod legacy_lifecycle;
mod legacy_sockets;
#[cfg(feature = "sse2024")]
mod legacy_sse2024;
mod legacy_streams;
mod limits;
mod listen;
mod modern;
mod pages;
mod port;
mod serving;
mod tasks;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "ws")]
mod websocket;

use std::time::{Duration, Instant};

use tokio::task::yield_now;
use toolwire_http::server::HttpService;
use toolwire_server::Server;

/// The timeout for everything that a test expects to happen at once, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Creates an endpoint for tests that call the service themselves, without an address.
fn unaddressed(server: Server) -> HttpService {
    HttpService::builder(server).without_peer_addresses().build().unwrap()
}

/// Waits until `met` returns `true`, and lets other tasks run in between.
///
/// # Panics
///
/// Panics with `missing` if that takes longer than [`PATIENCE`].
async fn until(missing: &str, mut met: impl AsyncFnMut() -> bool) {
    // The clock of the runtime may be paused.
    let began = Instant::now();
    while !met().await {
        assert!(began.elapsed() < PATIENCE, "{missing}");
        yield_now().await;
    }
}
