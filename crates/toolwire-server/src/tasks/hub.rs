//! Who waits for a task to change.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use toolwire_store::{SessionKey, TaskId};

use super::recent::Recent;
use crate::Notifier;

/// Number of tasks whose sessions are remembered. Those before them are not looked at when wakes may have been lost.
const SESSIONS: usize = 4096;

/// Maximum number of tasks that are looked at again because the store was away.
const MISSED: usize = 4096;

/// The waits for changes of tasks on this node. A hundred of them cost the store as much as one.
#[derive(Clone, Debug)]
pub(crate) struct Watches(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    watched: Mutex<HashMap<TaskId, Watched>>,
    heard: Mutex<Heard>,
    /// Tells sessions and listeners.
    notifier: Notifier,
}

/// Tasks that were heard of, for times in which nothing is heard or seen.
#[derive(Debug)]
struct Heard {
    /// The sessions on this node that tasks were made in.
    sessions: Recent<SessionKey>,
    /// The tasks whose change could not be looked at.
    missed: BTreeSet<TaskId>,
}

#[derive(Debug)]
struct Watched {
    /// Grows with each change that may have been.
    changes: watch::Sender<u64>,
    watchers: usize,
    /// What the store said last.
    rev: Option<Seen>,
}

/// A revision, or that the task is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen(Option<u64>);

impl Watches {
    pub(super) fn new(notifier: Notifier) -> Self {
        let heard = Heard { sessions: Recent::new(SESSIONS), missed: BTreeSet::new() };
        Self(Arc::new(Inner { watched: Mutex::default(), heard: Mutex::new(heard), notifier }))
    }

    /// Waits for changes of a task from now on.
    pub(crate) fn watch(&self, id: TaskId) -> Watch {
        let mut watched = self.lock();
        let entry = watched.entry(id).or_insert_with(|| Watched {
            changes: watch::channel(0).0,
            watchers: 0,
            rev: None,
        });
        entry.watchers += 1;
        let changes = entry.changes.subscribe();
        Watch { id, changes, watches: self.clone() }
    }

    /// A task may have changed.
    pub(super) fn changed(&self, id: TaskId, session: Option<SessionKey>) {
        if let Some(watched) = self.lock().get(&id) {
            watched.changes.send_modify(|changes| *changes += 1);
        }
        let wanted = self.0.notifier.task_changed(id, session) > 0;
        if let Some(session) = session.filter(|_| wanted) {
            self.heard().sessions.insert(id, session);
        }
    }

    /// A change of a task could not be looked at for lack of the store. It is told once more when the store is back.
    pub(super) fn missed(&self, id: TaskId) {
        let mut heard = self.heard();
        if heard.missed.len() < MISSED {
            heard.missed.insert(id);
        }
    }

    /// The store is back: what could not be looked at is told once more.
    pub(super) fn tell_missed(&self) {
        let missed: Vec<_> = {
            let mut heard = self.heard();
            let missed = std::mem::take(&mut heard.missed);
            missed.into_iter().map(|id| (id, heard.sessions.get(&id).copied())).collect()
        };
        for (id, session) in missed {
            self.changed(id, session);
        }
    }

    /// Forgets a task that has ended, and whose end was told.
    pub(super) fn forget(&self, id: &TaskId) {
        self.heard().sessions.remove(id);
    }

    /// Any task may have changed.
    pub(super) fn all_changed(&self) {
        for watched in self.lock().values() {
            watched.changes.send_modify(|changes| *changes += 1);
        }
        for id in self.ids() {
            self.0.notifier.task_changed(id, None);
        }
        let made: Vec<_> = self.heard().sessions.iter().map(|(id, session)| (id, *session)).collect();
        for (id, session) in made {
            self.0.notifier.task_changed(id, Some(session));
        }
    }

    /// The tasks that somebody waits for.
    pub(super) fn ids(&self) -> Vec<TaskId> {
        self.lock().keys().copied().collect()
    }

    /// Takes over what the store says, and wakes those for whom it is news.
    pub(super) fn compare(&self, id: TaskId, rev: Option<u64>) {
        let news = self.lock().get_mut(&id).is_some_and(|watched| {
            let news = watched.rev.replace(Seen(rev)) != Some(Seen(rev));
            if news {
                watched.changes.send_modify(|changes| *changes += 1);
            }
            news
        });
        if news {
            self.0.notifier.task_changed(id, None);
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Watched>> {
        self.0.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wait for changes of one task.
#[derive(Debug)]
pub(crate) struct Watch {
    id: TaskId,
    changes: watch::Receiver<u64>,
    watches: Watches,
}

impl Watch {
    /// Resolves when the task may have changed since this was made, or since it last resolved; at the latest two seconds
    /// after it has, also if wakes get lost.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has missed nothing.
    pub(crate) async fn changed(&mut self) {
        // The sender is in the table as long as this is.
        let _ = self.changes.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = self.watches.lock();
        if let Some(entry) = watched.get_mut(&self.id) {
            entry.watchers -= 1;
            if entry.watchers == 0 {
                watched.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_before_the_wait_is_not_missed_and_nothing_is_left_behind() {
        let watches = Watches::new(Notifier::default());
        let (one, two) = (TaskId::from_bytes([1; 24]), TaskId::from_bytes([2; 24]));
        let mut first = watches.watch(one);
        let mut second = watches.watch(one);
        let mut other = watches.watch(two);
        watches.changed(one, None);
        first.changed().await;
        second.changed().await;
        watches.compare(one, Some(4));
        first.changed().await;
        watches.compare(one, Some(4));
        let waits = tokio::time::timeout(std::time::Duration::ZERO, other.changed()).await;
        assert!(waits.is_err(), "it is about another task");
        second.changed().await;
        let waits = tokio::time::timeout(std::time::Duration::ZERO, first.changed()).await;
        assert!(waits.is_err(), "the same revision is no change");
        watches.all_changed();
        other.changed().await;
        drop((first, second, other));
        assert!(watches.lock().is_empty());
    }
}
