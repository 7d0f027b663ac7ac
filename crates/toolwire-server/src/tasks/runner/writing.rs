//! The writes of a run to the store: steps and progress as they come, each tried again where that may help.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use toolwire_protocol::RawJson;
use toolwire_store::{Advance, StoreError, TaskNote, TaskStore};

use super::{
    super::{
        run::{End, Progress, Wanted},
        vault::{Part, VaultError},
    },
    Driven, LONGEST_PAUSE,
};
use crate::ask::AskError;

/// Progress is written no more often than this.
const NOTE_PACE: Duration = Duration::from_secs(1);

/// The number of characters that are shown of a message.
const SHOWN_CHARS: usize = 200;

/// The pause before a write is tried for the second time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// A write that is under way.
pub(super) struct Writing {
    done: Pin<Box<dyn Future<Output = Result<u64, StoreError>> + Send>>,
    wanted: Vec<Wanted>,
}

impl Driven {
    /// Goes on with the write that is under way. Returns why the run has to end, if it does.
    pub(super) fn poll_writing(&mut self, task: &mut Task<'_>) -> Option<End> {
        let writing = self.writing.as_mut()?;
        let Poll::Ready(written) = writing.done.as_mut().poll(task) else { return None };
        let writing = self.writing.take()?;
        self.written(writing.wanted, written).err()
    }

    /// Tells those who wait for a write what became of it.
    fn written(&mut self, wanted: Vec<Wanted>, written: Result<u64, StoreError>) -> Result<(), End> {
        match written {
            Ok(_) => {
                for Wanted { entry, done } in wanted {
                    // What the handler records is found by name, and was refused if the name is taken.
                    if let Err(error) = self.base.folded.add(&entry) {
                        tracing::error!(%error, "a task has recorded something that contradicts its journal");
                    }
                    // Whoever asked for it may not wait any longer.
                    let _ = done.send(Ok(()));
                }
                Ok(())
            }
            Err(StoreError::Lost) => {
                for wanted in wanted {
                    // Whoever asked for it may be gone as well.
                    let _ = wanted.done.send(Err(AskError::Suspended));
                }
                Err(End::Lost)
            }
            // One of them is too large, and it should be the only one that is refused.
            Err(StoreError::TooLarge { .. }) if wanted.len() > 1 => {
                self.alone = wanted.len();
                self.base.run.put_back(wanted);
                Ok(())
            }
            Err(error) => {
                let remedy = match error {
                    StoreError::TooLarge { .. } => "; keep large results elsewhere and record where",
                    _ => "",
                };
                let why = format!("the step cannot be recorded: {error}{remedy}");
                for wanted in wanted {
                    let _ = wanted.done.send(Err(AskError::Limit(why.clone())));
                }
                Ok(())
            }
        }
    }

    /// Begins to write what has gathered, if something has. Says whether it did.
    pub(super) fn begin_writing(&mut self, task: &mut Task<'_>) -> bool {
        let most = if self.alone > 0 { 1 } else { usize::MAX };
        let wanted = self.base.run.take_entries(most);
        self.alone = self.alone.saturating_sub(wanted.len());
        if wanted.is_empty() {
            return self.begin_note(task);
        }
        let sealed = wanted.iter().map(|wanted| self.base.vault.seal_entry(wanted.entry.clone()));
        let done: Pin<Box<dyn Future<Output = _> + Send>> = match sealed.collect::<Result<Vec<_>, _>>() {
            Ok(entries) => Box::pin(self.persist(Advance::Record(entries))),
            Err(error) => Box::pin(std::future::ready(Err(StoreError::corrupt(error)))),
        };
        self.writing = Some(Writing { done, wanted });
        true
    }

    /// The same for progress, at its pace.
    fn begin_note(&mut self, task: &mut Task<'_>) -> bool {
        if !self.base.run.has_note() {
            return false;
        }
        if let Some(due) = &mut self.note_due
            && due.as_mut().poll(task).is_pending()
        {
            return false;
        }
        self.note_due = Some(Box::pin(sleep(NOTE_PACE)));
        let Some(Ok(note)) = self.base.run.take_note().map(|note| self.sealed_note(note)) else {
            return false;
        };
        self.writing =
            Some(Writing { done: Box::pin(self.persist(Advance::Note(note))), wanted: Vec::new() });
        true
    }

    pub(super) fn sealed_note(&self, progress: Progress) -> Result<TaskNote, VaultError> {
        let mut note = match progress.message {
            Some(text) => self.message(&text)?,
            None => TaskNote::default(),
        };
        (note.done, note.total) = (Some(progress.done), progress.total);
        Ok(note)
    }

    pub(super) fn message(&self, text: &str) -> Result<TaskNote, VaultError> {
        let text: String = text.chars().take(SHOWN_CHARS).collect();
        let text = RawJson::of(&text).map_err(|_| VaultError::NotJson)?;
        Ok(TaskNote::message(self.base.vault.seal(Part::Note, "", text)?))
    }

    /// Writes, and tries again until the outcome is known: what counts is the fence, not the time. A store that has no
    /// room may have some later, and what was done must not be lost for that, unless the run has to end.
    pub(super) fn persist(
        &mut self,
        step: Advance,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send + use<> {
        self.n += 1;
        let (service, lease, n) = (Arc::clone(&self.base.service), self.base.lease, self.n);
        let run = Arc::clone(&self.base.run);
        let until = self.persists_until(&step);
        async move {
            let mut pause = FIRST_PAUSE;
            let mut was_full = false;
            loop {
                let store: &Arc<dyn TaskStore> = service.tasks();
                match service.ask(store.advance(&lease, n, step.clone())).await {
                    // A store that has no room has refused for certain, so a run that has to end does not wait for it.
                    Err(StoreError::Full(why)) if run.has_end() => return Err(StoreError::Full(why)),
                    Err(error) if may_pass(&error, &step) && Instant::now() < until => {
                        if !error.is_unavailable() && !std::mem::replace(&mut was_full, true) {
                            tracing::warn!(task = ?lease.id, %error, "a write of a task waits for room");
                        }
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                    written => {
                        if written.is_ok() && !matches!(step, Advance::Record(_)) {
                            service.changed_here(&lease.id);
                        }
                        return written;
                    }
                }
            }
        }
    }

    /// Returns until when a write is tried. The handler waits for its steps within the time of its run; what the run
    /// comes to gets as much time again.
    fn persists_until(&self, step: &Advance) -> Instant {
        match step {
            Advance::Record(_) if self.base.place.is_some() => self.deadline.deadline(),
            _ => Instant::now() + self.base.run_time,
        }
    }

    /// Writes what is left to be written.
    pub(super) async fn flush(&mut self) -> Result<(), End> {
        loop {
            if let Some(writing) = self.writing.take() {
                let written = writing.done.await;
                self.written(writing.wanted, written)?;
            }
            let queued = poll_fn(|task| Poll::Ready(self.begin_writing(task))).await;
            if !queued {
                return Ok(());
            }
        }
    }
}

/// Whether a write that failed may succeed later. A note is not worth the wait for room.
fn may_pass(error: &StoreError, step: &Advance) -> bool {
    match error {
        StoreError::Unavailable(_) => true,
        StoreError::Full(_) => !matches!(step, Advance::Note(_)),
        _ => false,
    }
}
