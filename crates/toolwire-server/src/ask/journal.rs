//! The questions and answers of one request, and what must not be done twice.
//!
//! Where questions go out in rounds, none of them can wait: it is written on the journal, the handler is dropped as soon
//! as it waits for nothing else, and the client gets what is on the journal. When it comes back with answers, the
//! handler runs again from its start and finds them here. A task works the same way, except that it is not its client that
//! keeps the journal, and that it may also wait for a time.

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
    /// The same in this one.
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

/// How a step of this run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Running,
    /// The handler has its result.
    Given,
    /// It came to nothing, and may be tried again.
    Failed,
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

    /// Comes by a step: its result, if an earlier run has left one. A name stands for one step of a run, so one that is
    /// running or has given its result is refused.
    pub(crate) fn step(&mut self, name: &str) -> Result<Option<RawJson>, AskError> {
        match self.steps.get(name) {
            Some(Step::Running | Step::Given) => return Err(AskError::StepNamedTwice(name.to_owned())),
            Some(Step::Failed) | None => {}
        }
        self.steps_taken.insert(name.to_owned());
        let known = self.now.steps.get(name).cloned();
        self.steps.insert(name.to_owned(), if known.is_some() { Step::Given } else { Step::Running });
        self.running += usize::from(known.is_none());
        Ok(known)
    }

    /// Writes the result of a step down. Where a journal is kept elsewhere, it is written there before.
    pub(crate) fn record(&mut self, name: &str, result: RawJson) {
        self.now.steps.insert(name.to_owned(), result);
        self.steps.insert(name.to_owned(), Step::Given);
    }

    /// Whether a step that may run at most once has begun in an earlier run, and nobody knows what came of it.
    pub(crate) fn has_begun(&self, name: &str) -> bool {
        self.begun_before.contains(name) && !self.now.steps.contains_key(name)
    }

    /// A step that may run at most once begins.
    pub(crate) fn begin(&mut self, name: &str) {
        self.begun.insert(name.to_owned());
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

    /// A step runs no more, whether its result was recorded or not.
    pub(crate) fn step_ended(&mut self, name: &str) {
        self.running -= 1;
        if let Some(step @ Step::Running) = self.steps.get_mut(name) {
            *step = Step::Failed;
        }
        // It may have been the last thing that the handler waited for beside its questions.
        if self.running == 0
            && self.waits_for_something()
            && let Some(driver) = &self.driver
        {
            driver.wake_by_ref();
        }
    }

    /// A layer calls the handler, maybe not for the first time: what it has done before is remembered, and its names are
    /// free again.
    pub(crate) fn called_again(&mut self) {
        self.steps.retain(|_, step| *step == Step::Running);
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

    /// What this run leaves to the next.
    fn leave(&mut self) -> Memory {
        let round = self.round();
        let user = self.now.user.take();
        let mut memory = self.now.clone();
        memory.round = round;
        memory.user = user;
        memory
    }

    /// Starts another run with the same knowledge, for those whose answers came without a retry.
    pub(crate) fn rerun(&mut self) {
        self.open.clear();
        self.steps.clear();
        self.steps_taken.clear();
        self.unnamed = 0;
        self.suspended = false;
        let left = self.leave();
        self.now = left.for_next_run();
        self.before = Some(left);
    }

    /// Writes a question of the handler's own making on the journal.
    pub(crate) fn put(&mut self, key: String, request: InputRequest, digest: String) {
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

    /// The journal as it was when this run began, except that steps which have been taken stay taken.
    pub(crate) fn as_before(&self) -> Self {
        let mut journal = Self { given: self.given.clone(), ..Self::default() };
        journal.load(self.before.clone(), None);
        journal.now.steps = self.now.steps.clone();
        journal.now.call.clone_from(&self.now.call);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> RawJson {
        RawJson::parse("7").unwrap()
    }

    fn run(journal: &mut Journal, name: &str) {
        assert_eq!(journal.step(name), Ok(None));
        journal.record(name, result());
        journal.step_ended(name);
    }

    #[test]
    fn a_name_stands_for_one_step_of_a_run() {
        let twice = Err(AskError::StepNamedTwice("a".to_owned()));
        let mut journal = Journal::default();
        assert_eq!(journal.step("a"), Ok(None));
        assert_eq!(journal.step("a"), twice, "while it runs");
        journal.step_ended("a");
        run(&mut journal, "a");
        assert_eq!(journal.step("a"), twice, "when it has given its result");
        assert_eq!(journal.step("b"), Ok(None));

        let (_, left) = journal.suspend();
        let mut again = Journal::default();
        again.load(Some(left), None);
        assert_eq!(again.step("a"), Ok(Some(result())), "in another run it is found");
        assert_eq!(again.step("a"), twice, "once");
        assert_eq!(again.step("b"), Ok(None), "it was never recorded");
    }

    #[test]
    fn a_handler_that_a_layer_calls_again_finds_its_steps() {
        let mut journal = Journal::default();
        run(&mut journal, "a");
        assert_eq!(journal.step("b"), Ok(None));
        journal.called_again();
        assert_eq!(journal.step("a"), Ok(Some(result())));
        assert!(journal.step("b").is_err(), "it still runs");
        assert_eq!(journal.footprint().steps.len(), 2);
    }

    #[test]
    fn a_rerun_starts_with_the_steps_of_the_one_before() {
        let mut journal = Journal::default();
        run(&mut journal, "a");
        journal.set_user(Some(result()));
        journal.rerun();
        assert_eq!((journal.round(), journal.user()), (2, Some(result())));
        assert_eq!(journal.step("a"), Ok(Some(result())));
        journal.rerun();
        assert_eq!((journal.round(), journal.user()), (3, None));
    }
}
