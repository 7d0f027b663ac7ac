//! One who listens, and what it has not read yet.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use tokio::sync::Notify;

use super::{Change, Custom, Filter, Notifier, Reader, custom::Waiting};
use crate::Principal;

/// How many changes wait for one subscriber until it is no longer told which resources below its URI have changed, only
/// that some have. Otherwise one who subscribes to everything and reads nothing would be kept everything for.
pub(super) const UPDATES: usize = 256;

/// One listener's unread changes.
#[derive(Debug)]
pub(crate) struct Subscriber {
    filter: Mutex<Filter>,
    pending: Mutex<BTreeSet<Change>>,
    custom: Mutex<Waiting>,
    reader: Mutex<Option<Reader>>,
    changed: Notify,
    notifier: Notifier,
}

impl Subscriber {
    pub(super) fn new(filter: Filter, notifier: Notifier) -> Self {
        Self {
            filter: Mutex::new(filter),
            pending: Mutex::default(),
            custom: Mutex::default(),
            reader: Mutex::default(),
            changed: Notify::new(),
            notifier,
        }
    }

    /// Looks whether there is something to tell.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Says whether the subscriber will hear of it.
    pub(super) fn offer(&self, change: &Change) -> bool {
        self.offer_if(change, |_| false)
    }

    /// The same for a change that the subscriber may want for another reason, too.
    pub(super) fn offer_if(&self, change: &Change, wanted: impl FnOnce(&mut Filter) -> bool) -> bool {
        if !self.update(|filter| filter.wants(change) || wanted(filter)) {
            return false;
        }
        let change = match change {
            Change::Updated(uri) if self.is_full() => {
                // What is hidden is not told in other words either.
                let above = if self.conceals(change) { None } else { self.above(uri) };
                let Some(above) = above else { return false };
                Change::Updated(above)
            }
            // Whoever does not read hears of it when it asks.
            Change::Task(_) if self.is_full() => return false,
            change => change.clone(),
        };
        self.pending().insert(change);
        self.changed.notify_one();
        true
    }

    fn is_full(&self) -> bool {
        self.pending().len() >= UPDATES
    }

    fn above(&self, uri: &str) -> Option<String> {
        self.update(|filter| filter.covering(uri).cloned())
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, BTreeSet<Change>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says for whom changes are read.
    pub(crate) fn read_by(&self, reader: Reader) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }

    /// For whom changes are read, if that is known.
    pub(crate) fn principal(&self) -> Option<Principal> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.principal().cloned()
    }

    /// Whether the change is of something that does not exist for whoever reads.
    fn conceals(&self, change: &Change) -> bool {
        let Change::Updated(uri) = change else { return false };
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reader.is_some_and(|reader| reader.conceals(uri))
    }

    pub(super) fn offer_custom(&self, custom: &Custom) -> bool {
        if !self.update(|filter| filter.wants_custom(custom.method())) {
            return false;
        }
        let taken = self.custom.lock().unwrap_or_else(PoisonError::into_inner).push(custom);
        if taken {
            self.changed.notify_one();
        } else {
            tracing::debug!(method = custom.method(), "a subscriber is slow; a notification was dropped");
        }
        taken
    }

    /// Changes what the subscriber wants.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut Filter) -> T) -> T {
        change(&mut self.filter.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next change; `None` when the server shuts down.
    pub(crate) async fn next(&self) -> Option<Change> {
        loop {
            let change = self.pending().pop_first();
            if let Some(change) = change {
                if self.conceals(&change) {
                    continue;
                }
                return Some(change);
            }
            if let Some(custom) = self.custom.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                return Some(Change::Custom(custom));
            }
            if self.notifier.0.closed.load(Ordering::Acquire) {
                return None;
            }
            self.changed.notified().await;
        }
    }
}
