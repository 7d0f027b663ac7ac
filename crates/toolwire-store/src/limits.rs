//! How large what is stored may be. Stores refuse more with [`TooLarge`](crate::StoreError::TooLarge) before they
//! write anything.

use toolwire_protocol::RawJson;

use crate::{Advance, Answer, NewTask, OpenQuestion, Outcome, SessionRecord, StoreError, TaskNote};

/// How many bytes an entry of a journal, an answer or a question may have.
pub const ENTRY_BYTES: usize = 256 * 1024;
/// How many bytes the entries of a journal may have together.
pub const JOURNAL_BYTES: usize = 1024 * 1024;
/// How many entries a journal may have.
pub const JOURNAL_ENTRIES: usize = 1000;
/// How many questions of a task may be open.
pub const OPEN_QUESTIONS: usize = 100;
/// How many bytes the open questions of a task may have together.
pub const OPEN_BYTES: usize = 1024 * 1024;
/// How many bytes the key of a question may have.
pub const KEY_BYTES: usize = 1024;
/// How many bytes the result or the error of a task may have.
pub const OUTCOME_BYTES: usize = 4 * 1024 * 1024;
/// How many bytes the request of a task may have.
pub const REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// How many bytes the message of a note may have.
pub const NOTE_BYTES: usize = 16 * 1024;
/// How many bytes the record of a session may have.
pub const SESSION_BYTES: usize = 256 * 1024;
/// How many bytes an event of a log may have.
pub const EVENT_BYTES: usize = 16 * 1024 * 1024;

fn within(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit { Err(StoreError::TooLarge { what, limit }) } else { Ok(()) }
}

/// Looks at all that does not depend on what is stored already. Stores call it first.
pub trait Check {
    /// Whether every part of it is small enough.
    ///
    /// # Errors
    /// `TooLarge`, with what is too large.
    fn check(&self) -> Result<(), StoreError>;
}

impl Check for NewTask {
    fn check(&self) -> Result<(), StoreError> {
        within("the request of the task", self.request.weight(), REQUEST_BYTES)?;
        check_entries(&self.journal)
    }
}

impl Check for Advance {
    fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Record(entries) => check_entries(entries),
            Self::Note(note) => note.check(),
            Self::Park(park) => {
                check_entries(&park.entries)?;
                check_questions(&park.open)?;
                park.note.as_ref().map_or(Ok(()), Check::check)
            }
            Self::Finish(finish) => {
                within("the outcome of the task", finish.outcome.weight(), OUTCOME_BYTES)?;
                finish.note.as_ref().map_or(Ok(()), Check::check)
            }
            Self::Release => Ok(()),
        }
    }
}

impl Check for TaskNote {
    fn check(&self) -> Result<(), StoreError> {
        within("the note of the task", self.weight(), NOTE_BYTES)
    }
}

impl Check for [Answer] {
    fn check(&self) -> Result<(), StoreError> {
        self.iter().try_for_each(|answer| within("an answer", answer.entry.text().len(), ENTRY_BYTES))
    }
}

impl Check for SessionRecord {
    fn check(&self) -> Result<(), StoreError> {
        within("the record of the session", self.weight(), SESSION_BYTES)
    }
}

/// Whether a journal that has `bytes` in `count` entries may have these as well.
///
/// # Errors
/// `TooLarge` when it may not.
pub fn check_journal(bytes: usize, count: usize, more: &[RawJson]) -> Result<(), StoreError> {
    let added: usize = more.iter().map(|entry| entry.text().len()).sum();
    within("the journal of the task", bytes.saturating_add(added), JOURNAL_BYTES)?;
    within("the number of entries in the journal", count.saturating_add(more.len()), JOURNAL_ENTRIES)
}

/// Whether an event of a log is small enough.
///
/// # Errors
/// `TooLarge` when it is not.
pub fn check_event(bytes: usize) -> Result<(), StoreError> {
    within("an event", bytes, EVENT_BYTES)
}

fn check_entries(entries: &[RawJson]) -> Result<(), StoreError> {
    for entry in entries {
        within("an entry of the journal", entry.text().len(), ENTRY_BYTES)?;
    }
    check_journal(0, 0, entries)
}

fn check_questions(open: &[OpenQuestion]) -> Result<(), StoreError> {
    within("the number of open questions", open.len(), OPEN_QUESTIONS)?;
    for question in open {
        within("a question", question.question.text().len(), ENTRY_BYTES)?;
        within("the key of a question", question.key.len(), KEY_BYTES)?;
    }
    within("the questions of the task", open.iter().map(OpenQuestion::weight).sum(), OPEN_BYTES)
}

impl crate::TaskRequest {
    /// How many bytes of others it holds.
    pub(crate) fn weight(&self) -> usize {
        let values = [&self.params, &self.client, &self.principal, &self.carried];
        let values: usize = values.iter().map(|value| value.text().len()).sum();
        let progress = match &self.progress {
            Some(toolwire_protocol::RequestId::Str(text)) => text.len(),
            Some(_) | None => 0,
        };
        values + self.tool.len() + self.call.len() + progress
    }
}

impl OpenQuestion {
    pub(crate) fn weight(&self) -> usize {
        self.key.len() + self.question.text().len()
    }
}

impl Outcome {
    pub(crate) fn weight(&self) -> usize {
        let (Self::Result(value) | Self::Error(value)) = self;
        value.text().len()
    }
}

impl TaskNote {
    pub(crate) fn weight(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.text().len())
    }
}

impl SessionRecord {
    pub(crate) fn weight(&self) -> usize {
        self.client.text().len() + self.uris.iter().map(|uri| uri.len() + size_of::<String>()).sum::<usize>()
    }
}
