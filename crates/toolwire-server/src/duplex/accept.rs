//! Serving every client of a listener: how many at once, and to an orderly end.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::sleep,
};
use toolwire_transport::Listener;

use crate::Server;

/// How long to wait after a connection could not be accepted, which is mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// Serves every client that connects, until [`shutdown`](Self::shutdown). At most as many as the limit
    /// `connections` says are served at once; further ones wait to be accepted.
    ///
    /// At the end the listener is dropped first, so that nobody new comes in, and then running requests may finish
    /// within the limit `drain_timeout`.
    ///
    /// # Cancel safety
    /// Dropping the future ends every connection at once.
    pub async fn serve_all<L: Listener>(&self, mut listener: L) {
        let room = Arc::new(Semaphore::new(self.limits().connections.min(Semaphore::MAX_PERMITS)));
        let mut connections = JoinSet::new();
        let mut ended = pin!(self.until_shutdown());
        loop {
            let (connection, permit) = tokio::select! {
                biased;
                () = &mut ended => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&mut listener, &room) => accepted,
            };
            let server = self.clone();
            connections.spawn(async move {
                if let Err(error) = server.serve(connection).await {
                    tracing::debug!(%error, "a connection broke");
                }
                drop(permit);
            });
        }
        drop(listener);
        // Each of them ends by itself within its own time.
        while connections.join_next().await.is_some() {}
    }
}

/// Waits for room, then for a client.
async fn accept<L: Listener>(
    listener: &mut L,
    room: &Arc<Semaphore>,
) -> (L::Connection, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so there always is a permit in the end.
    let permit = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok(connection) => return (connection, permit),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
