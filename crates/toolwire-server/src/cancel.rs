//! Cancellation of one request.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// A flag that can be raised once and waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    raised: AtomicBool,
    changed: Notify,
}

impl Cancel {
    pub(crate) fn cancel(&self) {
        self.0.raised.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    pub(crate) async fn cancelled(&self) {
        // Registered before the flag is read, so that no signal falls between the two.
        let changed = self.0.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if !self.is_cancelled() {
            changed.await;
        }
    }
}
