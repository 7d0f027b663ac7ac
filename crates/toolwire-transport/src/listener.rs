//! What waits for clients: a place that gives one connection after the other.

use std::future::Future;
use std::io;

/// A place where clients connect.
///
/// How many are served at once, and what becomes of them, is for the one who accepts to decide. Dropping it makes the
/// place free again.
pub trait Listener: Send + 'static {
    /// A connection to one client. If it carries messages both ways, as a [`Duplex`](crate::Duplex), a server can serve it
    /// as it is.
    type Connection: Send + 'static;

    /// Waits for the next client. An error is about that one client or passes with time; the next may be accepted.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it is ready has accepted nobody.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}
