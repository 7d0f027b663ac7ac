//! Serving every client of a listener, to an orderly end.

use std::pin::pin;

use toolwire_transport::{Duplex, Listener};

use crate::{Server, engine::Acceptor};

impl Server {
    /// Serves every client that connects, until [`shutdown`](Self::shutdown). At most as many as the limit
    /// `connections` says are served at once; further ones wait to be accepted.
    ///
    /// At the end the listener is dropped first, so that nobody new comes in, and then running requests may finish
    /// within the limit `drain_timeout`.
    ///
    /// # Cancel safety
    /// Dropping the future ends every connection at once.
    pub async fn serve_listener<L>(&self, listener: L)
    where
        L: Listener,
        L::Connection: Duplex,
    {
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
                if let Err(error) = server.serve(connection).await {
                    tracing::debug!(%error, "a connection broke");
                }
                drop(permit);
            });
        }
        // Each of them ends by itself within its own time.
        let mut connections = acceptor.into_tasks();
        while connections.join_next().await.is_some() {}
    }
}
