//! The questions and answers of one request, and what must not be done twice.
//!
//! Where questions go out in rounds, none of them can wait: it is written on the journal, the handler is dropped as soon
//! as it waits for nothing else, and the client gets what is on the journal. When it comes back with answers, the
//! handler runs again from its start and finds them here.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::{Ready, ready},
    task::Waker,
};

use toolwire_protocol::{
    RawJson,
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
        // An answer to what was asked before under this key is not an answer to this.
        self.now.answers.remove(key);
        if !self.open.iter().any(|open| open.key == key) {
            self.open.push(Open { key: key.to_owned(), request: request.clone() });
        }
        self.waiting.push(waker.clone());
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
        Lookup::Open
    }

    fn answer(&self, key: &str, digest: &str) -> Option<RawJson> {
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

    /// Writes the result of a step down. To be awaited before the handler gets it: where a journal is kept elsewhere,
    /// that takes its time and may fail.
    pub(crate) fn record(&mut self, name: &str, result: RawJson) -> Ready<Result<(), AskError>> {
        self.now.steps.insert(name.to_owned(), result);
        self.steps.insert(name.to_owned(), Step::Given);
        ready(Ok(()))
    }

    /// A step runs no more, whether its result was recorded or not.
    pub(crate) fn step_ended(&mut self, name: &str) {
        self.running -= 1;
        if let Some(step @ Step::Running) = self.steps.get_mut(name) {
            *step = Step::Failed;
        }
        // It may have been the last thing that the handler waited for beside its questions.
        if self.running == 0
            && !self.open.is_empty()
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
        !self.open.is_empty() && self.running == 0
    }

    /// Ends the run: the questions for the client, and what to carry over.
    pub(crate) fn suspend(&mut self) -> (Vec<(String, InputRequest)>, Memory) {
        self.suspended = true;
        for waiting in self.waiting.drain(..) {
            waiting.wake();
        }
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

    async fn run(journal: &mut Journal, name: &str) {
        assert_eq!(journal.step(name), Ok(None));
        journal.record(name, result()).await.unwrap();
        journal.step_ended(name);
    }

    #[tokio::test]
    async fn a_name_stands_for_one_step_of_a_run() {
        let twice = Err(AskError::StepNamedTwice("a".to_owned()));
        let mut journal = Journal::default();
        assert_eq!(journal.step("a"), Ok(None));
        assert_eq!(journal.step("a"), twice, "while it runs");
        journal.step_ended("a");
        run(&mut journal, "a").await;
        assert_eq!(journal.step("a"), twice, "when it has given its result");
        assert_eq!(journal.step("b"), Ok(None));

        let (_, left) = journal.suspend();
        let mut again = Journal::default();
        again.load(Some(left), None);
        assert_eq!(again.step("a"), Ok(Some(result())), "in another run it is found");
        assert_eq!(again.step("a"), twice, "once");
        assert_eq!(again.step("b"), Ok(None), "it was never recorded");
    }

    #[tokio::test]
    async fn a_handler_that_a_layer_calls_again_finds_its_steps() {
        let mut journal = Journal::default();
        run(&mut journal, "a").await;
        assert_eq!(journal.step("b"), Ok(None));
        journal.called_again();
        assert_eq!(journal.step("a"), Ok(Some(result())));
        assert!(journal.step("b").is_err(), "it still runs");
        assert_eq!(journal.footprint().steps.len(), 2);
    }

    #[tokio::test]
    async fn a_rerun_starts_with_the_steps_of_the_one_before() {
        let mut journal = Journal::default();
        run(&mut journal, "a").await;
        journal.set_user(Some(result()));
        journal.rerun();
        assert_eq!((journal.round(), journal.user()), (2, Some(result())));
        assert_eq!(journal.step("a"), Ok(Some(result())));
        journal.rerun();
        assert_eq!((journal.round(), journal.user()), (3, None));
    }
}
