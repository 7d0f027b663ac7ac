//! The end of many connections: each of them is told, and all of them are waited for.
//!
//! hyper-util has this too, but not for connections that may become something else, as WebSockets do.

use tokio::sync::watch;

/// Tells connections to come to their end.
#[derive(Debug)]
pub(crate) struct Closing(watch::Sender<()>);

/// What a connection has to be told by. Everything has ended when all of these are gone.
#[derive(Debug)]
pub(crate) struct Told(watch::Receiver<()>);

impl Closing {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// For one connection.
    pub(crate) fn told(&self) -> Told {
        Told(self.0.subscribe())
    }

    /// Tells all of them, and waits until they have ended.
    pub(crate) async fn close(self) {
        self.0.send_replace(());
        self.0.closed().await;
    }
}

impl Told {
    /// Waits until it is time to come to an end.
    pub(crate) async fn closing(&mut self) {
        // Whoever could tell may be gone as well, which means the same.
        let _ = self.0.changed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everybody_is_told_and_waited_for() {
        let closing = Closing::new();
        let (mut one, two) = (closing.told(), closing.told());
        let ended = tokio::spawn(async move {
            one.closing().await;
            drop(one);
        });
        let mut closed = Box::pin(closing.close());
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
        let closing = Closing::new();
        let mut told = closing.told();
        drop(closing);
        told.closing().await;
    }
}
