//! Cancellation of one request.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context as Task, Poll, Waker},
};

use tokio::sync::Notify;

/// A flag that can be raised once and waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    raised: AtomicBool,
    changed: Notify,
    /// Whoever drives the request.
    driver: Mutex<Option<Waker>>,
}

impl Cancel {
    pub(crate) fn cancel(&self) {
        self.0.raised.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
        let driver = self.0.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(driver) = driver {
            driver.wake();
        }
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

    /// The same for the one who drives the request; only the last one who polled is woken.
    pub(crate) fn poll_cancelled(&self, task: &Task<'_>) -> Poll<()> {
        let mut driver = self.0.driver.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *driver {
            Some(waiting) => waiting.clone_from(task.waker()),
            None => *driver = Some(task.waker().clone()),
        }
        drop(driver);
        // Looked at after the waker is there, so that no signal falls between the two.
        if self.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}
