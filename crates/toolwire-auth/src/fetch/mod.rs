//! Fetching metadata and tokens, from addresses that may be asked.
//!
//! Much of what OAuth fetches is named by somebody else: a challenge names metadata, metadata name an issuer, the
//! issuer's metadata name endpoints. [`Guarded`] sees to it that nobody can use this client to reach what only the
//! client can reach. What it deliberately does not do: keep cookies, send referrers or credentials of its own, follow
//! redirects to other origins, or repeat anything.

mod address;
#[cfg(any(feature = "client", feature = "server"))]
mod echo;
mod guarded;
mod limits;
mod message;

use std::{fmt, pin::Pin};

#[cfg(any(feature = "client", feature = "server"))]
pub(crate) use self::echo::send;
pub use self::{
    address::{Reach, Zone},
    guarded::Guarded,
    limits::FetchLimits,
    message::{FetchError, FetchErrorKind, NamedBy, Request, Response},
};

/// A future that can be sent to another task.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends one request. [`Guarded`] is what does it over the network; tests have others.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Sends a request, once, and reads its whole answer. A status that is no success is an answer, too.
    ///
    /// `reach` says how far inside the network it may lead.
    fn fetch<'a>(&'a self, request: Request, reach: &'a Reach)
    -> BoxFuture<'a, Result<Response, FetchError>>;
}
