//! Graceful shutdown of many connections: each of them is told, and all of them are waited for.
//!
//! hyper-util has this too, but not for connections that may become something else, as WebSockets do.

use tokio::sync::watch;

/// Tells connections to come to their end.
#[derive(Debug)]
pub(crate) struct Shutdown(watch::Sender<()>);

/// What tells one connection to come to its end. All connections have ended when all of these are dropped.
#[derive(Debug)]
pub(crate) struct ShutdownSignal(watch::Receiver<()>);

impl Shutdown {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// For one connection.
    pub(crate) fn signal(&self) -> ShutdownSignal {
        ShutdownSignal(self.0.subscribe())
    }

    /// Tells all of them, and waits until they have ended.
    pub(crate) async fn shut_down(self) {
        self.0.send_replace(());
        self.0.closed().await;
    }
}

impl ShutdownSignal {
    /// Waits until it is time to come to an end.
    pub(crate) async fn received(&mut self) {
        // Whoever could tell may be gone as well, which means the same.
        let _ = self.0.changed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everybody_is_told_and_waited_for() {
        let shutdown = Shutdown::new();
        let (mut one, two) = (shutdown.signal(), shutdown.signal());
        let ended = tokio::spawn(async move {
            one.received().await;
            drop(one);
        });
        let mut closed = Box::pin(shutdown.shut_down());
        tokio::select! {
            biased;
            () = &mut closed => panic!("one of them goes on"),
            told = ended => told.unwrap(),
        }
        drop(two);
        closed.await;
    }

    #[tokio::test]
    async fn nobody_left_to_tell_means_the_end() {
        let shutdown = Shutdown::new();
        let mut signal = shutdown.signal();
        drop(shutdown);
        signal.received().await;
    }
}
