//! Accepting connections: one after the other, as many at once as there is room for.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::sleep,
};
use toolwire_transport::Listener;

/// How long to wait after a connection could not be accepted, which is mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener with room for so many connections at once, and the tasks that serve them. Dropping it ends them all.
///
/// What becomes of a connection is for the one who accepts to decide: it may be served, or be dropped at once.
#[derive(Debug)]
pub struct Acceptor<L> {
    listener: L,
    room: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// The room that one connection takes, until this is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl<L: Listener> Acceptor<L> {
    /// Accepts at most `limit` connections at once; further ones wait.
    pub fn new(listener: L, limit: usize) -> Self {
        let room = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self { listener, room, tasks: JoinSet::new() }
    }

    /// Waits for room, then for a client.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has accepted nobody.
    pub async fn accept(&mut self) -> (L::Connection, ConnectionPermit) {
        loop {
            tokio::select! {
                biased;
                // Tasks that are done are forgotten on the way.
                Some(_) = self.tasks.join_next() => {}
                accepted = next(&mut self.listener, &self.room) => return accepted,
            }
        }
    }

    /// Serves a connection in a task of its own.
    pub fn spawn(&mut self, serving: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(serving);
    }

    /// Stops listening. What is left are the tasks of the connections, which end when that is dropped.
    pub fn into_tasks(self) -> JoinSet<()> {
        self.tasks
    }
}

async fn next<L: Listener>(listener: &mut L, room: &Arc<Semaphore>) -> (L::Connection, ConnectionPermit) {
    // The semaphore is never closed, so there always is a permit in the end.
    let permit = ConnectionPermit { _permit: Arc::clone(room).acquire_owned().await.ok() };
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
