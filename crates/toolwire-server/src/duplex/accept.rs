//! Serving every client of a listener, to an orderly end.

use std::pin::pin;

use toolwire_transport::{Duplex, Listener};

use super::known_of;
use crate::{Server, engine::Acceptor};

impl Server {
    /// Serves every client that connects, until [`shutdown`](Self::shutdown). At most as many as the limit
    /// `connections` says are served at once; further ones wait to be accepted.
    ///
    /// At the end the listener is dropped first, so that nobody new comes in, and then running requests may finish
    /// within the limit `drain_timeout`. [Tasks](crate::TaskPolicy) that still run here are given back to their store, as by
    /// [`end_tasks`](Self::end_tasks).
    ///
    /// # Cancel safety
    /// Dropping the future ends every connection at once.
    pub async fn serve_listener<L>(&self, listener: L)
    where
        L: Listener,
        L::Connection: Duplex,
    {
        let place = self.begin_tasks();
        let mut acceptor = Acceptor::new(listener, self.limits().connections);
        let mut ended = pin!(self.until_shutdown());
        loop {
            let (connection, permit) = tokio::select! {
                biased;
                () = &mut ended => break,
                accepted = acceptor.accept() => accepted,
            };
            let server = self.clone();
            acceptor.spawn(async move {
                let extensions = known_of(&connection);
                if let Err(error) = server.serve_connection(connection, extensions).await {
                    tracing::debug!(%error, "a connection broke");
                }
                drop(permit);
            });
        }
        // Each of them ends by itself within its own time.
        let mut connections = acceptor.into_tasks();
        while connections.join_next().await.is_some() {}
        place.ended(false).await;
    }
}
