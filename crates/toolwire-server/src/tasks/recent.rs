//! What is remembered of the tasks that came last.

use std::collections::BTreeMap;

use toolwire_store::TaskId;

/// Something about each of so many tasks. The oldest make room for new ones, since not every task is taken out at its end.
#[derive(Debug)]
pub(super) struct Recent<T> {
    most: usize,
    tasks: BTreeMap<TaskId, (u64, T)>,
    /// The tasks in the order in which they came.
    order: BTreeMap<u64, TaskId>,
    next: u64,
}

impl<T> Recent<T> {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, tasks: BTreeMap::new(), order: BTreeMap::new(), next: 0 }
    }

    /// Remembers something about a task, in the place of what was known.
    pub(super) fn insert(&mut self, id: TaskId, value: T) {
        self.remove(&id);
        if self.tasks.len() >= self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.tasks.remove(&oldest);
        }
        self.order.insert(self.next, id);
        self.tasks.insert(id, (self.next, value));
        self.next += 1;
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<&T> {
        self.tasks.get(id).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, id: &TaskId) -> Option<T> {
        let (number, value) = self.tasks.remove(id)?;
        self.order.remove(&number);
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, &T)> {
        self.tasks.iter().map(|(id, (_, value))| (*id, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_for_new_ones() {
        let id = |number| TaskId::from_bytes([number; 24]);
        let mut recent = Recent::new(3);
        for number in [1, 2, 3, 1, 4] {
            recent.insert(id(number), number);
        }
        assert_eq!(recent.get(&id(2)), None, "the first one came once more after it");
        assert_eq!(recent.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [1, 3, 4]);
        assert_eq!((recent.remove(&id(1)), recent.remove(&id(1))), (Some(1), None));
        recent.insert(id(5), 5);
        assert_eq!((recent.tasks.len(), recent.order.len()), (3, 3));
    }
}
