//! Protecting a server: who is let in, and with which rights.
//!
//! [`ResourceServer`] describes a server that takes tokens, and makes a [`ResourceGuard`] of the description, which is
//! given to [`HttpBuilder::guard`](toolwire_http::server::HttpBuilder::guard). What it deliberately is not: an
//! authorization server, or a proxy for one.
//!
//! ```
//! use toolwire_auth::server::{Audience, Expiry, Invalid, PresentedToken, ResourceServer, Verified};
//! use toolwire_http::server::HttpService;
//! use toolwire_server::Server;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard = ResourceServer::new("https://files.example/mcp", "https://login.example")
//!     .verify(|token: PresentedToken| async move {
//!         // Whoever issued the token is asked here.
//!         let known = token.expose() == "swordfish";
//!         let found = Verified::new("alice", Audience::is("https://files.example/mcp"), Expiry::Unknown);
//!         if known { Ok(found.scopes(["files:read"])) } else { Err(Invalid::new("unknown")) }
//!     })
//!     .scopes(["files:read"])
//!     .build()?;
//! let server = Server::builder("files", "1.0").build()?;
//! let mcp = HttpService::builder(server).guard(guard).build()?;
//! # Ok(())
//! # }
//! ```

mod builder;
mod challenge;
mod credentials;
mod downstream;
mod dpop;
mod guard;
mod metadata;
mod tokens;
mod verify;

pub use builder::{GuardError, ResourceServer};
pub use downstream::{Downstream, DownstreamError};
pub use dpop::Dpop;
pub use guard::ResourceGuard;
pub use verify::{
    Audience, DangerousIntrospection, DangerousJwt, Expiry, FETCH_PAUSE, Introspection, Invalid, Jwt, LEEWAY,
    MAX_FRESH, MAX_SEEN_AGE, MAX_STALE, MAX_STATIC_KEYS, MIN_FRESH, PresentedToken, Scheme, Setting,
    SettingError, StaticKeys, StaticKeysError, Unavailable, Verified, Verify, VerifyError,
};
