//! The questions and answers of one request, and what must not be done twice.
//!
//! Where questions go out in rounds, none of them can wait: it is written on the journal, the handler is dropped as soon
//! as it waits for nothing else, and the client gets what is on the journal. When it comes back with answers, the
//! handler runs again from its start and finds them here. A task works the same way, except that it is not its client that
//! keeps the journal, and that it may also wait for a time.

mod steps;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    task::Waker,
};

use toolwire_protocol::{
    RawJson, RpcError,
    journal::Folded,
    seal::Memory,
    wire::{InputRequest, InputResponses},
};

use self::steps::Step;
pub(crate) use self::steps::{Found, Unwritten};
use super::AskError;

/// What is known and what is asked in one run of a handler.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// What earlier runs have left; `None` in the first.
    before: Option<Memory>,
    /// What this run leaves: every question of it, answered or not, the answers it has accepted, its steps.
    now: Memory,
    /// The answers that came with this request.
    given: BTreeMap<String, RawJson>,
    /// Answers that came while the handler waits, with a digest of what they answer.
    fresh: BTreeMap<String, (String, Result<RawJson, RpcError>)>,
    /// What the client refused to answer.
    refused: BTreeMap<String, RpcError>,
    /// Steps that may run at most once and have begun, in earlier runs.
    begun_before: BTreeSet<String>,
    /// Those that have begun in this run.
    begun: BTreeSet<String>,
    /// Until when the task sleeps, as earlier runs have found.
    timers: BTreeMap<String, u64>,
    /// The waits of this run that are not over.
    sleeping: BTreeMap<String, Wait>,
    /// What this run has asked so far and got no answer to.
    open: Vec<Open>,
    /// The steps that this run has come by, remembered or not.
    steps_taken: BTreeSet<String>,
    /// How they stand.
    steps: BTreeMap<String, Step>,
    /// Steps of `once` that are running; while one is, the handler is not dropped.
    running: usize,
    /// Questions without a key of their own, counted.
    unnamed: usize,
    suspended: bool,
    driver: Option<Waker>,
    waiting: Vec<Waker>,
}

#[derive(Clone, Debug)]
struct Open {
    key: String,
    request: InputRequest,
}

/// A wait for a time.
#[derive(Clone, Copy, Debug)]
struct Wait {
    until: u64,
    /// Whether it is so long that nobody should be kept for it.
    parks: bool,
}

/// What a run of a task waits for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) questions: Vec<AskedQuestion>,
    /// Until when it sleeps, by name.
    pub(crate) timers: BTreeMap<String, u64>,
    /// What the handler wants to remember.
    pub(crate) user: Option<RawJson>,
}

/// A question that has no answer.
#[derive(Debug)]
pub(crate) struct AskedQuestion {
    pub(crate) key: String,
    pub(crate) digest: String,
    pub(crate) request: InputRequest,
}

/// What the journal knows of a question.
pub(crate) enum Lookup {
    Answered(RawJson),
    /// The client did not answer, and said why.
    Refused(RpcError),
    Open,
    Suspended,
}

impl Journal {
    /// Takes over what earlier rounds have left, and what the client has answered.
    pub(crate) fn load(&mut self, before: Option<Memory>, responses: Option<InputResponses>) {
        if let Some(memory) = &before {
            self.now = memory.for_next_run();
        }
        self.before = before;
        self.given.extend(responses.into_iter().flatten());
    }

    /// Takes over what the journal of a task comes to.
    pub(crate) fn load_folded(&mut self, folded: &Folded) -> Result<(), serde_json::Error> {
        for (key, error) in &folded.refused {
            self.refused.insert(key.clone(), error.decode()?);
        }
        self.begun_before.clone_from(&folded.begun);
        self.timers.clone_from(&folded.timers);
        self.load(Some(folded.memory.clone()), None);
        Ok(())
    }

    /// What there is to remember so far, and the steps that have begun and may not begin again.
    pub(crate) fn so_far(&self) -> (Memory, Vec<String>) {
        let unfinished = |name: &&String| !self.now.steps.contains_key(*name);
        (self.now.clone(), self.begun.iter().filter(unfinished).cloned().collect())
    }

    /// Which run of the handler this is.
    pub(crate) fn round(&self) -> u32 {
        self.before.as_ref().map_or(0, |before| before.round) + 1
    }

    /// A key for a question that has none of its own. The same in every run, as long as the handler asks in the
    /// same order.
    pub(crate) fn unnamed_key(&mut self, kind: &str) -> String {
        self.unnamed += 1;
        format!("{kind}-{}", self.unnamed)
    }

    /// Looks for the answer to a question, or writes the question on the journal.
    pub(crate) fn look_up(
        &mut self,
        key: &str,
        digest: &str,
        request: &InputRequest,
        waker: &Waker,
    ) -> Lookup {
        if self.suspended {
            return Lookup::Suspended;
        }
        self.now.asked.insert(key.to_owned(), digest.to_owned());
        if let Some(answer) = self.answer(key, digest) {
            self.now.answers.insert(key.to_owned(), answer.clone());
            return Lookup::Answered(answer);
        }
        if let Some(error) = self.refusal(key, digest) {
            return Lookup::Refused(error);
        }
        // An answer to what was asked before under this key is not an answer to this.
        self.now.answers.remove(key);
        let new = !self.open.iter().any(|open| open.key == key);
        if new {
            self.open.push(Open { key: key.to_owned(), request: request.clone() });
        }
        // A handler that waits where it is may be polled any number of times.
        if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
        // Only for what is new, or a handler that waits where it is would never come to rest.
        if new && let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
        Lookup::Open
    }

    fn refusal(&self, key: &str, digest: &str) -> Option<RpcError> {
        if let Some((asked, Err(error))) = self.fresh.get(key)
            && asked == digest
        {
            return Some(error.clone());
        }
        let asked = self.before.as_ref().and_then(|before| before.asked.get(key));
        self.refused.get(key).filter(|_| asked.is_some_and(|asked| asked == digest)).cloned()
    }

    fn answer(&self, key: &str, digest: &str) -> Option<RawJson> {
        if let Some((asked, Ok(answer))) = self.fresh.get(key)
            && asked == digest
        {
            return Some(answer.clone());
        }
        let answer = self.given(key)?;
        match &self.before {
            // A question that has changed is asked anew and never takes an old answer.
            Some(before) => (before.asked.get(key).map(String::as_str) == Some(digest)).then_some(answer),
            None => Some(answer),
        }
    }

    /// Throws away an answer that did not fit. Says whether the question may be asked again.
    pub(crate) fn reject(&mut self, key: &str) -> bool {
        self.given.remove(key);
        self.fresh.remove(key);
        self.now.answers.remove(key);
        self.now.asked_twice.insert(key.to_owned())
    }

    /// Until when a wait takes, as an earlier run has found or as it does now. Its name stands for it alone.
    pub(crate) fn sleep_until(&mut self, name: &str, fresh: impl FnOnce() -> u64) -> Result<u64, AskError> {
        if matches!(self.steps.get(name), Some(Step::Running | Step::Given)) {
            return Err(AskError::StepNamedTwice(name.to_owned()));
        }
        self.steps_taken.insert(name.to_owned());
        self.steps.insert(name.to_owned(), Step::Given);
        let known = self.timers.get(name).copied();
        let known = known.or_else(|| self.now.steps.get(name)?.decode().ok());
        Ok(known.unwrap_or_else(fresh))
    }

    /// The handler waits.
    pub(crate) fn sleeps(&mut self, name: &str, until: u64, parks: bool) {
        let before = self.sleeping.insert(name.to_owned(), Wait { until, parks });
        if parks
            && before.is_none()
            && let Some(driver) = &self.driver
        {
            driver.wake_by_ref();
        }
    }

    /// It does so no more, because the time has come or for another reason.
    pub(crate) fn woke_up(&mut self, name: &str) {
        self.sleeping.remove(name);
    }

    /// A wait is over, and need not be repeated in another round.
    pub(crate) fn slept(&mut self, name: &str, until: RawJson) {
        self.now.steps.insert(name.to_owned(), until);
    }

    /// Whether the handler waits for answers and nothing else. To be asked after the handler was polled and
    /// is not done; `waker` is how to be told when that changes.
    pub(crate) fn is_settled(&mut self, waker: &Waker) -> bool {
        self.driver = Some(waker.clone());
        self.waits_for_something() && self.running == 0
    }

    fn waits_for_something(&self) -> bool {
        !self.open.is_empty() || self.sleeping.values().any(|wait| wait.parks)
    }

    /// What a run of a task waits for.
    pub(crate) fn waits(&mut self) -> Waits {
        let asked = |open: &Open| AskedQuestion {
            digest: self.now.asked.get(&open.key).cloned().unwrap_or_default(),
            key: open.key.clone(),
            request: open.request.clone(),
        };
        Waits {
            questions: self.open.iter().map(asked).collect(),
            timers: self.sleeping.iter().map(|(name, wait)| (name.clone(), wait.until)).collect(),
            user: self.now.user.clone(),
        }
    }

    /// Ends a run of a task: whoever still waits for an answer in it is told.
    pub(crate) fn end_run(&mut self) {
        self.suspended = true;
        for waiting in self.waiting.drain(..) {
            waiting.wake();
        }
    }

    /// Hands an answer, or why there is none, to a handler that waits for it where it is.
    pub(crate) fn answered(&mut self, key: &str, digest: &str, reply: Result<RawJson, RpcError>) {
        self.open.retain(|open| open.key != key);
        self.fresh.insert(key.to_owned(), (digest.to_owned(), reply));
        for waiting in self.waiting.drain(..) {
            waiting.wake();
        }
    }

    /// Ends the run: the questions for the client, and what to carry over.
    pub(crate) fn suspend(&mut self) -> (Vec<(String, InputRequest)>, Memory) {
        self.end_run();
        let questions = self.open.iter().map(|open| (open.key.clone(), open.request.clone())).collect();
        (questions, self.leave())
    }

    /// Returns what this run leaves to the next.
    fn leave(&mut self) -> Memory {
        let round = self.round();
        let user = self.now.user.take();
        self.take_over_left();
        let mut memory = self.now.clone();
        memory.round = round;
        memory.user = user;
        memory
    }

    /// Starts another run with the same knowledge, for those whose answers came without a retry.
    pub(crate) fn rerun(&mut self) {
        let left = self.leave();
        self.open.clear();
        self.steps.clear();
        self.steps_taken.clear();
        self.unnamed = 0;
        self.suspended = false;
        self.now = left.for_next_run();
        self.before = Some(left);
    }

    /// Writes a question of the handler's own making on the journal. It takes the place of one with its key that the
    /// handler no longer waits for.
    pub(crate) fn put(&mut self, key: String, request: InputRequest, digest: String) {
        self.open.retain(|open| open.key != key);
        self.now.asked.insert(key.clone(), digest);
        self.open.push(Open { key, request });
    }

    /// Adds an answer that came by another way than the request.
    pub(crate) fn give(&mut self, key: String, answer: RawJson) {
        self.given.insert(key, answer);
    }

    /// The answer to a question that was asked by hand.
    pub(crate) fn given(&self, key: &str) -> Option<RawJson> {
        self.given.get(key).or_else(|| self.now.answers.get(key)).cloned()
    }

    /// Keeps an answer that was read by hand for later rounds.
    pub(crate) fn keep(&mut self, key: &str, answer: RawJson) {
        self.now.answers.insert(key.to_owned(), answer);
    }

    pub(crate) fn set_user(&mut self, user: Option<RawJson>) {
        self.now.user = user;
    }

    pub(crate) fn user(&self) -> Option<RawJson> {
        self.before.as_ref().and_then(|before| before.user.clone())
    }

    /// What names this logical call through all its rounds.
    pub(crate) fn call(&mut self, fresh: impl FnOnce() -> String) -> String {
        if self.now.call.is_empty() {
            self.now.call = fresh();
        }
        self.now.call.clone()
    }

    /// What this run has asked and which steps it came by, to be compared with another run.
    pub(crate) fn footprint(&self) -> Footprint {
        Footprint { questions: self.now.asked.clone(), steps: self.steps_taken.clone() }
    }

    /// The journal as it was when this run began, except that steps which have been taken stay taken, and those that
    /// may run at most once have begun.
    pub(crate) fn as_before(&self) -> Self {
        let mut journal = Self { given: self.given.clone(), ..Self::default() };
        journal.load(self.before.clone(), None);
        journal.now.steps = self.now.steps.clone();
        journal.now.call.clone_from(&self.now.call);
        journal.begun_before = &self.begun_before | &self.begun;
        journal
    }
}

/// What one run of a handler has asked and done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    questions: BTreeMap<String, String>,
    steps: BTreeSet<String>,
}

impl Footprint {
    /// What is different in `again`, in words; `None` when nothing is.
    pub(crate) fn difference(&self, again: &Self) -> Option<String> {
        let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>().join(", ");
        if let Some(key) = self
            .questions
            .iter()
            .find(|(key, digest)| again.questions.get(*key).is_some_and(|other| other != *digest))
        {
            return Some(format!("the question {:?} was worded differently", key.0));
        }
        if self.questions != again.questions {
            return Some(format!(
                "it asked [{}], then [{}]",
                names(&self.questions),
                names(&again.questions)
            ));
        }
        let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
        (self.steps != again.steps)
            .then(|| format!("its steps were [{}], then [{}]", list(&self.steps), list(&again.steps)))
    }
}
