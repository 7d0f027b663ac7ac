//! One task, and what can happen to it: the rules of [`TaskStore`](crate::TaskStore) for stores that read a record, change
//! it and write it back in one go. Nothing here knows of other tasks, takes the time, or keeps a journal.
//!
//! For the stores of this project. Not part of the API.

use std::{sync::Arc, time::Duration};

use toolwire_protocol::{RawJson, wire::TaskStatus};

use crate::{
    Advance, Answer, Answered, Claim, Claimed, Entry, Finish, KeyId, Lease, Life, NewTask, NodeId,
    OpenQuestion, Outcome, Owner, Park, Quota, StoreError, TaskHead, TaskId, TaskNote, TaskRequest, TaskView,
    Token, Topic, life::milliseconds, limits::check_journal, pause_before_next,
};

/// What a task weighs beside the texts that it holds.
const OVERHEAD: usize = 1024;
/// What an entry of a journal or an answered key weighs beside its text.
const ENTRY_OVERHEAD: usize = 48;
/// What each task has room for in any case, so that a note, a cancellation or a short error never meets a full store.
const RESERVE: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Ready,
    Leased,
    Timed,
    Parked,
    Ended(TaskStatus),
}

#[derive(Clone, Debug)]
pub struct Record {
    pub owner: Owner,
    pub quota: Quota,
    pub format: u32,
    pub key: Option<KeyId>,
    pub request: Arc<TaskRequest>,
    pub phase: Phase,
    /// Since when, or from when on, it can be claimed.
    pub due_ms: Option<u64>,
    pub life: Life,
    pub fence: u64,
    pub attempt: u32,
    /// What was added to the journal since the record was read. Whoever keeps the journal takes it.
    pub added: Vec<(Entry, Source)>,
    /// How many entries the journal has, with what was added.
    pub entries: usize,
    pub node: Option<NodeId>,
    pub token: Option<Token>,
    pub lease_ms: u64,
    pub lease_until_ms: u64,
    /// The number of the last write of the lease.
    pub written: u64,
    /// Whether the run waits in the memory of its node.
    pub held: bool,
    /// How many entries the journal had when its lease began: those that the run is told of come after it. Stores keep
    /// it under this name.
    pub parked_at: usize,
    pub journal_bytes: usize,
    pub open: Vec<OpenQuestion>,
    pub answered: Vec<String>,
    pub note: TaskNote,
    pub outcome: Option<Outcome>,
    pub is_error: bool,
    pub poll_ms: u64,
    pub updated_ms: u64,
    pub rev: u64,
}

/// Where an entry of a journal came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Run,
    Answer,
}

impl Record {
    pub fn new(task: NewTask, now: u64) -> Self {
        let mut record = Self {
            owner: task.owner,
            quota: task.quota,
            format: task.format,
            key: task.key,
            request: Arc::new(task.request),
            phase: Phase::Ready,
            due_ms: Some(now),
            life: Life::new(now, task.keep, task.ttl),
            fence: 0,
            attempt: 0,
            added: Vec::new(),
            entries: 0,
            node: None,
            token: None,
            lease_ms: 0,
            lease_until_ms: 0,
            written: 0,
            held: false,
            parked_at: 0,
            journal_bytes: 0,
            open: Vec::new(),
            answered: Vec::new(),
            note: TaskNote::default(),
            outcome: None,
            is_error: false,
            poll_ms: milliseconds(task.poll),
            updated_ms: now,
            rev: 1,
        };
        record.extend(task.journal, Source::Run);
        if let Some(lease) = task.lease {
            record.lease(lease.node, lease.token, milliseconds(lease.lease), now);
        }
        record
    }

    /// What counts against the limit of bytes.
    pub fn weight(&self) -> usize {
        let questions: usize = self.open.iter().map(OpenQuestion::weight).sum();
        let answered: usize = self.answered.iter().map(|key| key.len() + ENTRY_OVERHEAD).sum();
        let journal = self.journal_bytes + self.entries * ENTRY_OVERHEAD;
        let end = self.outcome.as_ref().map_or(0, Outcome::weight) + self.note.weight();
        OVERHEAD + self.request.weight() + journal + questions + answered + end.max(RESERVE)
    }

    /// By how much the weight may grow by this step, at most.
    pub fn growth(&self, step: &Advance) -> usize {
        let note = |note: &Option<TaskNote>| note.as_ref().map_or(0, TaskNote::weight);
        match step {
            Advance::Record(entries) => entries_weight(entries),
            Advance::Note(note) => note.weight().saturating_sub(RESERVE),
            Advance::Park(park) => {
                let questions: usize = park.open.iter().map(OpenQuestion::weight).sum();
                entries_weight(&park.entries) + questions + note(&park.note).saturating_sub(RESERVE)
            }
            Advance::Finish(finish) => {
                let ended = OVERHEAD + self.stripped().weight();
                (ended + finish.outcome.weight() + note(&finish.note)).saturating_sub(self.weight())
            }
            Advance::Release => 0,
        }
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    pub fn has_expired(&self, now: u64) -> bool {
        self.life.expires_ms() <= now
    }

    pub fn topic(&self, id: TaskId) -> Topic {
        Topic::Task { id, session: self.request.session }
    }

    pub fn head(&self, id: TaskId, now: u64) -> TaskHead {
        let status = match self.phase {
            Phase::Ended(status) => status,
            _ if self.open.is_empty() => TaskStatus::Working,
            _ => TaskStatus::InputRequired,
        };
        TaskHead {
            status,
            is_error: self.is_error,
            note: self.note.clone(),
            updated_ms: self.updated_ms,
            expires_ms: self.life.shown_ms(now),
            poll_ms: self.poll_ms,
            rev: self.rev,
            session: self.request.session,
            ..TaskHead::new(id, self.request.tool.clone(), self.life.created_ms)
        }
    }

    pub fn view(&self, id: TaskId, now: u64) -> TaskView {
        TaskView::new(self.head(id, now), self.open.clone(), self.outcome.clone())
    }

    /// Gives it to a node. Questions stay open: what is answered during the run counts when it parks.
    pub fn claim(&mut self, claim: &Claim, now: u64) {
        self.lease(claim.node, claim.token, milliseconds(claim.lease), now);
        self.life.work(now);
    }

    /// What the node that has just claimed it is told.
    pub fn claimed(&self, id: TaskId, token: Token, journal: Vec<Entry>, now: u64) -> Claimed {
        let lease = Lease { id, fence: self.fence, token };
        let request = TaskRequest::clone(&self.request);
        let mut claimed = Claimed::new(lease, self.owner, self.head(id, now), request, now);
        claimed.journal = journal;
        claimed.attempt = self.attempt;
        claimed.format = self.format;
        claimed.key = self.key;
        claimed
    }

    fn lease(&mut self, node: NodeId, token: Token, lease_ms: u64, now: u64) {
        self.phase = Phase::Leased;
        self.fence += 1;
        self.attempt = self.attempt.saturating_add(1);
        self.node = Some(node);
        self.token = Some(token);
        self.written = 0;
        self.held = false;
        self.parked_at = self.entries;
        self.prolong(lease_ms, now);
    }

    /// Whether this lease is the one that counts, whether or not a run still has it.
    fn knows(&self, lease: &Lease) -> bool {
        self.fence == lease.fence && self.token == Some(lease.token)
    }

    /// Whether a run with this lease goes on.
    pub fn is_run_by(&self, lease: &Lease) -> bool {
        self.knows(lease) && self.phase == Phase::Leased
    }

    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Renews a lease, and says whether it still holds.
    pub fn renew(&mut self, lease: &Lease, lease_ms: u64, now: u64) -> bool {
        let holds = self.is_run_by(lease);
        if holds {
            self.prolong(lease_ms, now);
        }
        holds
    }

    fn prolong(&mut self, lease_ms: u64, now: u64) {
        self.lease_ms = lease_ms;
        self.lease_until_ms = now.saturating_add(lease_ms);
        self.await_end_of_lease();
    }

    fn await_end_of_lease(&mut self) {
        let pause = pause_before_next(self.attempt, Duration::from_millis(self.lease_ms));
        self.due_ms = Some(self.lease_until_ms.saturating_add(milliseconds(pause)));
    }

    /// Whether a write is to be carried out. `Ok(false)` when it has been.
    pub fn admits(&self, lease: &Lease, n: u64) -> Result<bool, StoreError> {
        if !self.knows(lease) {
            return Err(StoreError::Lost);
        }
        if n == 0 || n < self.written {
            return Err(StoreError::Conflict);
        }
        if n == self.written {
            return Ok(false);
        }
        if self.phase == Phase::Leased { Ok(true) } else { Err(StoreError::Lost) }
    }

    /// Whether the journal has room for what the step adds to it.
    pub fn fits(&self, step: &Advance) -> Result<(), StoreError> {
        match step {
            Advance::Record(entries) | Advance::Park(Park { entries, .. }) => {
                check_journal(self.journal_bytes, self.entries, entries)
            }
            Advance::Note(_) | Advance::Finish(_) | Advance::Release => Ok(()),
        }
    }

    /// Carries out a write that was admitted and fits.
    pub fn advance(&mut self, n: u64, step: Advance, now: u64) {
        self.written = n;
        match step {
            Advance::Record(entries) => self.extend(entries, Source::Run),
            Advance::Note(note) => {
                self.note = note;
                self.touch(now);
            }
            Advance::Park(park) => self.park(park, now),
            Advance::Finish(finish) => self.finish(finish, now),
            Advance::Release => {
                self.attempt = self.attempt.saturating_sub(1);
                self.ready(now);
            }
        }
    }

    fn park(&mut self, park: Park, now: u64) {
        let progress = !park.entries.is_empty();
        self.extend(park.entries, Source::Run);
        let asked = !park.open.is_empty();
        self.open.clear();
        for question in park.open {
            let known = self.open.iter().any(|open| open.key == question.key);
            if !known && !self.answered.contains(&question.key) {
                self.open.push(question);
            }
        }
        if let Some(note) = park.note {
            self.note = note;
        }
        self.touch(now);
        self.held = park.hold;
        if self.held {
            return self.wait_or_work(now);
        }
        if !progress {
            self.attempt = self.attempt.saturating_sub(1);
        }
        match park.wake {
            _ if self.open.is_empty() && asked => self.ready(now),
            Some(wake) => {
                let due = now.saturating_add(milliseconds(wake));
                self.phase = Phase::Timed;
                self.due_ms = Some(due);
                self.life.sleep(now, due);
            }
            None if self.open.is_empty() => self.ready(now),
            None => {
                self.phase = Phase::Parked;
                self.due_ms = None;
                self.life.park(now);
            }
        }
    }

    /// A run that is held counts as parked as long as it waits for somebody.
    fn wait_or_work(&mut self, now: u64) {
        if self.open.is_empty() { self.life.work(now) } else { self.life.park(now) }
    }

    fn ready(&mut self, now: u64) {
        self.phase = Phase::Ready;
        self.held = false;
        self.due_ms = Some(now);
        self.life.work(now);
    }

    fn finish(&mut self, finish: Finish, now: u64) {
        let status = match &finish.outcome {
            Outcome::Result(_) => TaskStatus::Completed,
            Outcome::Error(_) => TaskStatus::Failed,
        };
        self.outcome = Some(finish.outcome);
        self.is_error = finish.is_error;
        if let Some(note) = finish.note {
            self.note = note;
        }
        self.life.end(now, finish.keep);
        self.end(status, now);
    }

    pub fn cancel(&mut self, why: TaskNote, now: u64) {
        self.fence += 1;
        self.token = None;
        self.note = why;
        self.life.end(now, Duration::ZERO);
        self.end(TaskStatus::Cancelled, now);
    }

    fn end(&mut self, status: TaskStatus, now: u64) {
        self.phase = Phase::Ended(status);
        self.due_ms = None;
        self.open = Vec::new();
        self.answered = Vec::new();
        self.touch(now);
    }

    /// Lets go of what only an operator would still want to know of a task that has ended.
    pub fn strip(&mut self) {
        self.added = Vec::new();
        self.entries = 0;
        self.journal_bytes = 0;
        self.request = Arc::new(self.stripped());
    }

    /// What a task still has to know of its request when it has ended.
    fn stripped(&self) -> TaskRequest {
        let null = RawJson::from(&serde_json::Value::Null);
        let mut request = TaskRequest::new(self.request.tool.clone(), self.request.version, null);
        request.session = self.request.session;
        request
    }

    /// Those of the answers whose questions are open, each once.
    pub fn wanted(&self, answers: Vec<Answer>) -> Vec<Answer> {
        let mut wanted: Vec<Answer> = Vec::new();
        for answer in answers {
            let is_open = self.open.iter().any(|open| open.key == answer.key);
            if is_open && !wanted.iter().any(|other| other.key == answer.key) {
                wanted.push(answer);
            }
        }
        wanted
    }

    /// Whether the journal has room for answers, and by how much they may make the task heavier.
    pub fn fits_answers(&self, wanted: &[Answer]) -> Result<usize, StoreError> {
        let entries: Vec<Entry> = wanted.iter().map(|answer| answer.entry.clone()).collect();
        check_journal(self.journal_bytes, self.entries, &entries)?;
        Ok(entries_weight(&entries) + wanted.len() * ENTRY_OVERHEAD)
    }

    /// Takes answers that are wanted and fit.
    pub fn answer(&mut self, wanted: Vec<Answer>, now: u64) -> Answered {
        let mut taken = Vec::with_capacity(wanted.len());
        for Answer { key, entry } in wanted {
            self.open.retain(|open| open.key != key);
            self.extend(vec![entry], Source::Answer);
            self.answered.push(key.clone());
            taken.push(key);
        }
        let left: Vec<String> = self.open.iter().map(|open| open.key.clone()).collect();
        if taken.is_empty() {
            return Answered::new(taken, left, false);
        }
        self.touch(now);
        let ready = left.is_empty() && matches!(self.phase, Phase::Parked | Phase::Timed);
        if ready {
            self.ready(now);
        } else if self.phase == Phase::Parked || self.held {
            self.wait_or_work(now);
        }
        Answered::new(taken, left, ready)
    }

    fn extend(&mut self, entries: Vec<Entry>, from: Source) {
        if entries.is_empty() {
            return;
        }
        self.journal_bytes += entries.iter().map(|entry| entry.text().len()).sum::<usize>();
        self.entries += entries.len();
        self.added.extend(entries.into_iter().map(|entry| (entry, from)));
        self.attempt = 0;
        if self.phase == Phase::Leased {
            self.await_end_of_lease();
        }
    }

    fn touch(&mut self, now: u64) {
        self.updated_ms = self.updated_ms.max(now);
        self.rev += 1;
    }
}

fn entries_weight(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.text().len() + ENTRY_OVERHEAD).sum()
}
