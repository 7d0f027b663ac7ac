//! Who wants to hear of which tasks.

use std::collections::BTreeSet;

use toolwire_store::{SessionKey, TaskId};

use super::{Change, Notifier};

/// The tasks that a subscriber wants to hear of: those that were made in its session, or those that it has named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskFilter {
    pub(crate) session: Option<SessionKey>,
    pub(crate) ids: BTreeSet<TaskId>,
}

impl TaskFilter {
    pub(super) fn has(&self, id: &TaskId) -> bool {
        self.ids.contains(id)
    }
}

impl Notifier {
    /// A task may have changed, which was made in this session, if that is known. Returns how many want to hear of it.
    pub(crate) fn task_changed(&self, id: TaskId, session: Option<SessionKey>) -> usize {
        let change = Change::Task(id);
        self.tell(|subscriber| {
            let made_there =
                |filter: &mut super::Filter| session.is_some() && filter.tasks.session == session;
            subscriber.offer_if(&change, made_there)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Filter, *};

    fn id(byte: u8) -> TaskId {
        TaskId::from_bytes([byte; 24])
    }

    fn filter(session: Option<u8>, ids: &[u8]) -> Filter {
        let session = session.map(|byte| SessionKey::from_bytes([byte; 32]));
        let ids = ids.iter().map(|byte| id(*byte)).collect();
        Filter { tasks: TaskFilter { session, ids }, ..Filter::default() }
    }

    #[tokio::test]
    async fn a_task_is_told_to_its_session_and_to_those_who_named_it() {
        let notifier = Notifier::default();
        let (session, other) =
            (notifier.subscribe(filter(Some(1), &[])), notifier.subscribe(filter(Some(2), &[])));
        let (named, silent) =
            (notifier.subscribe(filter(None, &[7])), notifier.subscribe(Filter::unsolicited()));
        for _ in 0..3 {
            notifier.task_changed(id(7), Some(SessionKey::from_bytes([1; 32])));
            notifier.task_changed(id(8), None);
        }
        notifier.close();
        for subscriber in [&session, &named] {
            assert_eq!(subscriber.next().await, Some(Change::Task(id(7))));
            assert_eq!(subscriber.next().await, None);
        }
        for subscriber in [&other, &silent] {
            assert_eq!(subscriber.next().await, None);
        }
    }

    #[tokio::test]
    async fn one_who_reads_nothing_is_not_kept_every_task_for() {
        let notifier = Notifier::default();
        let subscriber = notifier.subscribe(filter(Some(1), &[]));
        for number in 0..2000_u32 {
            let mut bytes = [0; 24];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            notifier.task_changed(TaskId::from_bytes(bytes), Some(SessionKey::from_bytes([1; 32])));
        }
        assert!(subscriber.pending().len() <= super::super::subscriber::UPDATES);
    }
}
