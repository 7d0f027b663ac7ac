//! The waits of a run: put aside until what it waits for is there, or held in memory.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, sleep};
use toolwire_protocol::{
    RawJson, RpcError,
    journal::{Entry, Reply as Answered},
};
use toolwire_store::{Advance, OpenQuestion, Park, StoreError};

use super::{
    super::{
        Run,
        run::End,
        runs::RunPlace,
        vault::{Part, VaultError},
    },
    Driven, LONGEST_PAUSE,
};
use crate::ask::{NeedInput, Waits};

/// What a run that waits in memory waits for.
pub(super) struct Held {
    place: RunPlace,
    questions: Vec<HeldQuestion>,
}

struct HeldQuestion {
    key: String,
    wire: String,
    digest: String,
}

/// The answers of the lease that have been looked at. All of them come at each look, in order, and opening them takes time.
#[derive(Default)]
pub(super) struct Seen {
    count: usize,
    /// A hash of the last one: in a store that has lost some of them, others take their places.
    last: u64,
}

impl Seen {
    /// Returns the answers that have not been looked at, or all if those before are not what they were.
    fn new_of<'a>(&mut self, answers: &'a [RawJson]) -> &'a [RawJson] {
        let hash = |at: usize| {
            let mut hasher = DefaultHasher::new();
            answers.get(at)?.text().hash(&mut hasher);
            Some(hasher.finish())
        };
        let are_there = self.count.checked_sub(1).and_then(hash) == Some(self.last);
        let from = if are_there { self.count } else { 0 };
        *self = Self {
            count: answers.len(),
            last: answers.len().checked_sub(1).and_then(hash).unwrap_or_default(),
        };
        answers.get(from..).unwrap_or_default()
    }
}

impl Driven {
    /// Whether everything that the handler asks was asked when it was last held.
    pub(super) fn is_held_for_all(&self) -> bool {
        let Some(held) = &self.held else { return false };
        let asked = self.base.cx.journal().waits().questions;
        let known = |key: &str, digest: &str| {
            held.questions.iter().any(|question| question.key == key && question.digest == digest)
        };
        asked.len() == held.questions.len() && asked.iter().all(|asked| known(&asked.key, &asked.digest))
    }

    /// What the run waits for, as it is stored. Gives what is new in the journal by it.
    fn parked(&self, waits: Waits) -> Result<(Park, Vec<Entry>), Unable> {
        let mut entries = Vec::new();
        let mut park = Park::default();
        let folded = &self.base.folded;
        let mut asked = Vec::new();
        for question in waits.questions {
            let (wire, new) = folded.wire_for(&question.key, &question.digest);
            let text = RawJson::of(&question.request).map_err(|error| Unable::Question(error.to_string()))?;
            if new {
                let (key, digest) = (question.key, question.digest);
                entries.push(Entry::Ask { key, wire: wire.clone(), digest, q: Some(text.clone()) });
            }
            let sealed = self.base.vault.seal(Part::Question, &wire, text).map_err(Unable::Vault)?;
            park.open.push(OpenQuestion { key: wire.clone(), question: sealed });
            asked.push(wire);
        }
        let closed = folded.open.values().filter(|open| !asked.contains(&open.wire));
        let closed: Vec<_> = closed.map(|open| Entry::Closed { wire: open.wire.clone() }).collect();
        // A question that is asked anew has closed the old one by that.
        entries.splice(..0, closed);
        for (name, until) in &waits.timers {
            if !folded.timers.contains_key(name) {
                entries.push(Entry::Timer { name: name.clone(), until: *until });
            }
        }
        if waits.user != folded.memory.user {
            entries.push(Entry::User { v: waits.user });
        }
        let now = Run::now_ms(&*self.base.run);
        park.wake = waits.timers.values().min().map(|until| Duration::from_millis(until.saturating_sub(now)));
        for entry in &entries {
            park.entries.push(self.base.vault.seal_entry(entry.clone()).map_err(Unable::Vault)?);
        }
        Ok((park, entries))
    }

    /// Puts the run aside until what it waits for is there. Nothing of it stays in memory.
    pub(super) async fn park(mut self) {
        let waits = self.base.cx.journal().waits();
        self.stop();
        if self.flush().await.is_err() {
            return;
        }
        let note = self.base.run.take_note().and_then(|note| self.sealed_note(note).ok());
        let mut park = match self.parked(waits) {
            Ok((park, _)) => park,
            Err(error) => return self.finish(Err(error.rpc_error())).await,
        };
        park.note = note;
        match self.persist(Advance::Park(park)).await {
            Ok(_) => {
                // Not before: the places bound how many runs wait for a store that has no room.
                drop(self.base.place.take());
                // Answers may have come before the questions were put.
                self.base.service.ready.notify_one();
            }
            Err(error) if self.gives_way(&error) => self.release().await,
            Err(error) => self.finish_unless_lost(Unable::Store(error)).await,
        }
    }

    /// Asks what a handler has returned as questions.
    pub(super) async fn ask(self, need: NeedInput) {
        if self.base.live {
            let error = "a live task cannot return its questions, since it is not run again; await them";
            return self.finish(Err(RpcError::internal(error))).await;
        }
        match need.post(&self.base.cx) {
            Ok(()) => self.park().await,
            Err(error) => self.finish(Err(error)).await,
        }
    }

    /// Lets the run wait where it is.
    pub(super) async fn hold(&mut self) -> Result<(), Unable> {
        let waits = self.base.cx.journal().waits();
        self.flush().await.map_err(|_| Unable::Store(StoreError::Lost))?;
        let place = match self.held.take() {
            Some(held) => held.place,
            None => self.base.service.runs.waiting_place().ok_or(Unable::NoPlace)?,
        };
        let mut questions = Vec::new();
        for asked in &waits.questions {
            let (wire, _) = self.base.folded.wire_for(&asked.key, &asked.digest);
            questions.push(HeldQuestion { key: asked.key.clone(), wire, digest: asked.digest.clone() });
        }
        let (mut park, entries) = self.parked(waits)?;
        (park.hold, park.wake) = (true, None);
        self.persist(Advance::Park(park)).await.map_err(Unable::Store)?;
        for entry in &entries {
            self.base.folded.add(entry).map_err(|error| Unable::Question(error.to_string()))?;
        }
        self.held = Some(Held { place, questions });
        self.base.place = None;
        // Answers may have come before the questions were put.
        self.base.run.look();
        Ok(())
    }

    /// Hands answers that have come to a run that waits here.
    pub(super) async fn take_answers(&mut self) -> Result<(), End> {
        let service = Arc::clone(&self.base.service);
        let answers = match service.ask(service.tasks().answers(&self.base.lease)).await {
            Ok(answers) => answers,
            Err(StoreError::Lost) => return Err(End::Lost),
            Err(error) => {
                tracing::warn!(%error, "the answers to a task cannot be read");
                sleep(LONGEST_PAUSE).await;
                self.base.run.look();
                return Ok(());
            }
        };
        let Some(held) = &mut self.held else { return Ok(()) };
        let mut given = false;
        for answer in self.seen.new_of(&answers) {
            let Ok(entry) = self.base.vault.open_entry(answer) else { continue };
            let Entry::Answer { wire, reply } = &entry else { continue };
            // What is no longer asked is among the answers as well.
            let Some(at) = held.questions.iter().position(|question| question.wire == *wire) else {
                continue;
            };
            let question = held.questions.remove(at);
            let reply = match reply {
                Answered::Value(value) => Ok(value.clone()),
                Answered::Error(error) => {
                    Err(error.decode().unwrap_or_else(|_| RpcError::internal("the client did not answer")))
                }
            };
            // What was asked is answered once.
            let _ = self.base.folded.add(&entry);
            self.base.cx.journal().answered(&question.key, &question.digest, reply);
            given = true;
        }
        if given {
            // What goes on needs a place, and has its time from the beginning.
            if self.base.place.is_none() {
                self.base.place = service.runs.next_place().await;
            }
            if held.questions.is_empty() {
                self.held = None;
            }
            self.deadline.as_mut().reset(Instant::now() + self.base.run_time);
        }
        Ok(())
    }
}

/// Why a run cannot wait.
pub(super) enum Unable {
    Store(StoreError),
    Vault(VaultError),
    Question(String),
    NoPlace,
}

impl Unable {
    /// Whether the store has no room.
    pub(super) const fn is_for_room(&self) -> bool {
        matches!(self, Self::Store(StoreError::Full(_)))
    }

    pub(super) fn rpc_error(&self) -> RpcError {
        match self {
            Self::Store(error) => {
                RpcError::internal(format!("the questions of the task cannot be stored: {error}"))
            }
            Self::Vault(error) => error.rpc_error(),
            Self::Question(error) => RpcError::internal(format!("the question cannot be asked: {error}")),
            Self::NoPlace => {
                RpcError::internal("too many tasks wait in the memory of this process (limit live_tasks)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(texts: &[&str]) -> Vec<RawJson> {
        texts.iter().map(|text| RawJson::of(text).unwrap()).collect()
    }

    #[test]
    fn answers_are_looked_at_once_unless_the_store_has_lost_some() {
        let mut seen = Seen::default();
        let mut new = |texts: &[&str]| seen.new_of(&answers(texts)).len();
        assert_eq!(new(&[]), 0);
        assert_eq!(new(&["a"]), 1);
        assert_eq!(new(&["a"]), 0);
        assert_eq!(new(&["a", "b", "c"]), 2);
        assert_eq!(new(&["a", "b", "d"]), 3, "c is lost, and d has come in its place");
        assert_eq!(new(&["a"]), 1);
        assert_eq!(new(&["a", "b"]), 1);
    }
}
