//! Clients that were sent away while their requests go on: a server that ends waits for them to come back.

use std::sync::Arc;

use tokio::sync::watch;

/// How many are away.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct PendingReconnects(Arc<watch::Sender<usize>>);

/// One client that is away, until this is dropped.
#[derive(Debug)]
pub(super) struct PendingReconnect(PendingReconnects);

impl PendingReconnects {
    /// Notes that one more is away.
    pub(super) fn expect_one(&self) -> PendingReconnect {
        self.0.send_modify(|count| *count += 1);
        PendingReconnect(self.clone())
    }

    /// Waits until everybody is back.
    pub(in crate::server) async fn all_back(&self) {
        // The sender lives in here, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for PendingReconnect {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
