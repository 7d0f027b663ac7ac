//! All tasks, and the indexes by which they are found.

use std::{
    collections::{BTreeSet, HashMap, hash_map},
    sync::Arc,
};

use super::super::MemoryLimits;
use crate::{
    Claim, Entry, KeyId, Owner, Quota, StoreError, TaskId, Topic,
    record::{Record, Source},
};

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    tasks: HashMap<TaskId, Stored>,
    /// By owner, and then by age.
    owned: BTreeSet<(Owner, u64, TaskId)>,
    /// What can be claimed, now or later, by what a node needs for it.
    due: HashMap<Arc<Needs>, BTreeSet<Due>>,
    expiry: BTreeSet<(u64, TaskId)>,
    /// What each quota has.
    shares: HashMap<Quota, Share>,
    bytes: usize,
    /// Numbers the tasks in the order of their creation, so that of two that are due the older one comes first.
    created: u64,
}

/// What one quota has of the store.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// How many of its tasks have not ended.
    open: usize,
    /// How many tasks it has, ended ones included.
    tasks: usize,
    bytes: usize,
}

/// What new tasks may fill of a limit of bytes. The rest is for the results and the journals of those that are there.
const fn for_new(bytes: usize) -> usize {
    bytes - bytes / 4
}

/// Returns the part of a limit that one quota may have. Half of it is left to others even while there are none: what they
/// bring must have room at once, and what is kept may stay for a day.
fn share_of(all: usize, given: Option<usize>, has_others: bool) -> usize {
    given.unwrap_or_else(|| (all / if has_others { 4 } else { 2 }).max(1))
}

#[derive(Clone, Debug)]
struct Stored {
    record: Record,
    journal: Vec<(Entry, Source)>,
    needs: Arc<Needs>,
    number: u64,
    /// What the indexes have.
    due_ms: Option<u64>,
    until_ms: u64,
    weight: usize,
    counted: bool,
}

/// When, which of several at that time, and who.
type Due = (u64, u64, TaskId);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Needs {
    tool: String,
    revision: u32,
    format: u32,
    key: Option<KeyId>,
}

impl Needs {
    fn of(record: &Record) -> Self {
        let request = &record.request;
        Self {
            tool: request.tool.clone(),
            revision: request.revision,
            format: record.format,
            key: record.key,
        }
    }

    fn are_met_by(&self, claim: &Claim) -> bool {
        let serves = |(tool, revision): &(String, u32)| *tool == self.tool && *revision == self.revision;
        self.format <= claim.format
            && self.key.is_none_or(|key| claim.keys.contains(&key))
            && claim.serves.iter().any(serves)
    }
}

impl State {
    pub(super) fn get(&self, id: &TaskId, now: u64) -> Option<&Record> {
        self.tasks.get(id).map(|stored| &stored.record).filter(|record| !record.has_expired(now))
    }

    pub(super) fn of(&self, owner: &Owner, id: &TaskId, now: u64) -> Option<&Record> {
        self.get(id, now).filter(|record| record.owner == *owner)
    }

    /// The entries of a journal from a place on.
    pub(super) fn journal(&self, id: &TaskId, from: usize) -> &[(Entry, Source)] {
        self.tasks.get(id).and_then(|stored| stored.journal.get(from..)).unwrap_or_default()
    }

    /// Whether its name is taken, also by one that nobody sees any more.
    pub(super) fn is_known(&self, id: &TaskId) -> bool {
        self.tasks.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is room for a new task.
    pub(super) fn has_room_for(
        &self,
        record: &Record,
        limit: usize,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let share = self.share(&record.quota);
        if share.open >= limit {
            return Err(StoreError::Full("open tasks of this caller"));
        }
        let others = self.has_others(&record.quota);
        if share.tasks >= share_of(limits.tasks, limits.caller_tasks, others) {
            return Err(StoreError::Full("tasks of this caller in memory"));
        }
        if self.tasks.len() >= limits.tasks {
            return Err(StoreError::Full("tasks in memory"));
        }
        let of_caller = share_of(limits.task_bytes, limits.caller_task_bytes, others);
        let most = (for_new(limits.task_bytes), for_new(of_caller));
        self.has_bytes(&record.quota, record.weight(), most)
    }

    /// Whether a task of this quota may become so much heavier.
    pub(super) fn has_room(
        &self,
        quota: &Quota,
        more: usize,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        if more == 0 {
            return Ok(());
        }
        let of_caller = share_of(limits.task_bytes, limits.caller_task_bytes, self.has_others(quota));
        self.has_bytes(quota, more, (limits.task_bytes, of_caller))
    }

    /// Whether the tasks of this quota stay within its share when one of them becomes so much heavier. Beyond it, a run
    /// does not wait for room as it does in a store that is full for all: it would keep its place from others.
    pub(super) fn is_within_share(
        &self,
        quota: &Quota,
        more: usize,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let limit = share_of(limits.task_bytes, limits.caller_task_bytes, self.has_others(quota));
        if more > 0 && self.share(quota).bytes.saturating_add(more) > limit {
            return Err(StoreError::TooLarge { what: "what the tasks of this caller take together", limit });
        }
        Ok(())
    }

    fn has_bytes(
        &self,
        quota: &Quota,
        more: usize,
        (most, most_of_caller): (usize, usize),
    ) -> Result<(), StoreError> {
        if self.share(quota).bytes.saturating_add(more) > most_of_caller {
            return Err(StoreError::Full("bytes of tasks of this caller in memory"));
        }
        if self.bytes.saturating_add(more) > most {
            return Err(StoreError::Full("bytes of tasks in memory"));
        }
        Ok(())
    }

    /// Returns whether tasks of other quotas are kept.
    fn has_others(&self, quota: &Quota) -> bool {
        self.shares.len() > usize::from(self.shares.contains_key(quota))
    }

    fn share(&self, quota: &Quota) -> Share {
        self.shares.get(quota).copied().unwrap_or_default()
    }

    pub(super) fn insert(&mut self, id: TaskId, record: Record) {
        self.created += 1;
        self.owned.insert((record.owner, record.life.created_ms, id));
        let needs = Arc::new(Needs::of(&record));
        let number = self.created;
        let stored = Stored {
            record,
            journal: Vec::new(),
            needs,
            number,
            due_ms: None,
            until_ms: 0,
            weight: 0,
            counted: false,
        };
        self.shares.entry(stored.record.quota).or_default().tasks += 1;
        self.tasks.insert(id, stored);
        self.update(&id, |_| ());
    }

    /// Changes a task that is there, and what the indexes have of it.
    pub(super) fn update<T>(&mut self, id: &TaskId, change: impl FnOnce(&mut Record) -> T) -> Option<T> {
        let stored = self.tasks.get_mut(id)?;
        let done = change(&mut stored.record);
        stored.journal.append(&mut stored.record.added);
        if stored.record.has_ended() {
            // Nobody will claim it again, and there is no operator who could look at it.
            stored.record.strip();
            stored.journal = Vec::new();
        }
        let (before, after) = (stored.due_ms, stored.record.due_ms);
        stored.due_ms = after;
        let (number, needs) = (stored.number, stored.needs.clone());
        let until = std::mem::replace(&mut stored.until_ms, stored.record.life.expires_ms());
        if until != stored.until_ms {
            self.expiry.remove(&(until, *id));
            self.expiry.insert((stored.until_ms, *id));
        }
        let weight = std::mem::replace(&mut stored.weight, stored.record.weight());
        self.bytes = self.bytes - weight + stored.weight;
        let counts = !stored.record.has_ended();
        let counted = std::mem::replace(&mut stored.counted, counts);
        let share = self.shares.entry(stored.record.quota).or_default();
        share.bytes = share.bytes - weight + stored.weight;
        share.open = share.open - usize::from(counted) + usize::from(counts);
        if before != after {
            self.requeue(&needs, *id, number, before, after);
        }
        Some(done)
    }

    fn requeue(
        &mut self,
        needs: &Arc<Needs>,
        id: TaskId,
        number: u64,
        before: Option<u64>,
        after: Option<u64>,
    ) {
        let queue = self.due.entry(needs.clone()).or_default();
        if let Some(due) = before {
            queue.remove(&(due, number, id));
        }
        if let Some(due) = after {
            queue.insert((due, number, id));
        }
        if queue.is_empty() {
            self.due.remove(needs);
        }
    }

    fn give_up_share(&mut self, stored: &Stored) {
        if let hash_map::Entry::Occupied(mut entry) = self.shares.entry(stored.record.quota) {
            let share = entry.get_mut();
            share.tasks -= 1;
            share.bytes -= stored.weight;
            share.open -= usize::from(stored.counted);
            if share.tasks == 0 {
                entry.remove();
            }
        }
    }

    /// The tasks that such a claim gets, those first that have been due for the longest time.
    pub(super) fn due(&self, claim: &Claim, now: u64) -> Vec<TaskId> {
        let mut due: Vec<Due> = Vec::new();
        for (_, queue) in self.due.iter().filter(|(needs, _)| needs.are_met_by(claim)) {
            let now_due = queue.iter().take_while(|(due_ms, ..)| *due_ms <= now);
            due.extend(now_due.filter(|(.., id)| self.get(id, now).is_some()).take(claim.max));
        }
        due.sort_unstable();
        due.truncate(claim.max);
        due.into_iter().map(|(.., id)| id).collect()
    }

    /// The tasks of an owner that come after a place, the newest first.
    pub(super) fn owned(
        &self,
        owner: &Owner,
        after: Option<(u64, TaskId)>,
        now: u64,
    ) -> impl Iterator<Item = (TaskId, &Record)> {
        let (first, last) = (TaskId::from_bytes([0; 24]), TaskId::from_bytes([u8::MAX; 24]));
        let (created, id) = after.unwrap_or((u64::MAX, last));
        let range = self.owned.range((*owner, 0, first)..(*owner, created, id)).rev();
        range.filter_map(move |(_, _, id)| Some((*id, self.get(id, now)?)))
    }

    /// Removes tasks that have expired, at most so many, and says which wakes to send.
    pub(super) fn expire(&mut self, now: u64, limit: usize) -> Vec<Topic> {
        let mut gone = Vec::new();
        while gone.len() < limit {
            let Some((until, id)) = self.expiry.first().copied() else { break };
            if until > now {
                break;
            }
            gone.extend(self.remove(&id));
        }
        gone
    }

    pub(super) fn remove(&mut self, id: &TaskId) -> Option<Topic> {
        let stored = self.tasks.remove(id)?;
        self.give_up_share(&stored);
        let record = stored.record;
        self.owned.remove(&(record.owner, record.life.created_ms, *id));
        self.expiry.remove(&(stored.until_ms, *id));
        self.bytes -= stored.weight;
        if stored.due_ms.is_some() {
            self.requeue(&stored.needs, *id, stored.number, stored.due_ms, None);
        }
        Some(record.topic(*id))
    }

    /// Whether no index knows of anything.
    #[cfg(test)]
    pub(super) fn has_no_traces(&self) -> bool {
        self.tasks.is_empty()
            && self.owned.is_empty()
            && self.due.is_empty()
            && self.expiry.is_empty()
            && self.shares.is_empty()
            && self.bytes == 0
    }
}
