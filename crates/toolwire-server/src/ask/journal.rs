//! The questions and answers of one request, and what must not be done twice.
//!
//! In the modern era a question cannot wait: it is written on the journal, the handler is dropped as soon as it
//! waits for nothing else, and the client gets what is on the journal. When it comes back with answers, the
//! handler runs again from its start and finds them here.

use std::{
    collections::{BTreeMap, BTreeSet},
    task::Waker,
};

use toolwire_protocol::{
    RawJson,
    seal::RequestState,
    wire::{InputRequest, InputResponses},
};

/// What is known and what is asked in one run of a handler.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// What was carried over from earlier rounds; `None` in the first.
    carried: Option<RequestState>,
    /// The answers that came with this request.
    given: BTreeMap<String, RawJson>,
    /// What this run has asked so far and got no answer to.
    open: Vec<Open>,
    /// Every question of this run, answered or not.
    asked: BTreeMap<String, String>,
    /// Answers that were accepted in this run, to be carried over.
    answers: BTreeMap<String, RawJson>,
    steps: BTreeMap<String, RawJson>,
    /// The steps that this run has come by, remembered or not.
    steps_taken: BTreeSet<String>,
    asked_twice: BTreeSet<String>,
    /// Steps of `once` that are running; while one is, the handler is not dropped.
    running: usize,
    /// Questions without a key of their own, counted.
    unnamed: usize,
    call: Option<String>,
    suspended: bool,
    user: Option<RawJson>,
    driver: Option<Waker>,
    waiting: Vec<Waker>,
}

#[derive(Clone, Debug)]
struct Open {
    key: String,
    request: InputRequest,
}

/// What the journal knows of a question.
pub(crate) enum Lookup {
    Answered(RawJson),
    Open,
    Suspended,
}

impl Journal {
    /// Takes over what earlier rounds have left, and what the client has answered.
    pub(crate) fn load(&mut self, carried: Option<RequestState>, responses: Option<InputResponses>) {
        if let Some(state) = &carried {
            self.answers = state.answers.clone();
            self.steps = state.steps.clone();
            self.asked_twice = state.asked_twice.clone();
            self.call = Some(state.call.clone());
        }
        self.carried = carried;
        self.given.extend(responses.into_iter().flatten());
    }

    /// Which run of the handler this is.
    pub(crate) fn round(&self) -> u32 {
        self.carried.as_ref().map_or(0, |carried| carried.round) + 1
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
        self.asked.insert(key.to_owned(), digest.to_owned());
        if let Some(answer) = self.answer(key, digest) {
            self.answers.insert(key.to_owned(), answer.clone());
            return Lookup::Answered(answer);
        }
        // An answer to what was asked before under this key is no answer to this.
        self.answers.remove(key);
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
        let answer = self.given.get(key).or_else(|| self.answers.get(key))?;
        match &self.carried {
            // A question that has changed is asked anew and never takes an old answer.
            Some(state) => (state.asked.get(key).map(String::as_str) == Some(digest)).then(|| answer.clone()),
            None => Some(answer.clone()),
        }
    }

    /// Throws away an answer that did not fit. Says whether the question may be asked again.
    pub(crate) fn reject(&mut self, key: &str) -> bool {
        self.given.remove(key);
        self.answers.remove(key);
        self.asked_twice.insert(key.to_owned())
    }

    pub(crate) fn step(&mut self, name: &str) -> Option<RawJson> {
        self.steps_taken.insert(name.to_owned());
        self.steps.get(name).cloned()
    }

    pub(crate) fn step_started(&mut self) {
        self.running += 1;
    }

    pub(crate) fn step_ended(&mut self, name: &str, result: Option<RawJson>) {
        self.running -= 1;
        if let Some(result) = result {
            self.steps.insert(name.to_owned(), result);
        }
    }

    /// Whether the handler waits for answers and nothing else. To be asked after the handler was polled and
    /// is not done; `waker` is how to be told when that changes.
    pub(crate) fn is_settled(&mut self, waker: &Waker) -> bool {
        self.driver = Some(waker.clone());
        !self.open.is_empty() && self.running == 0
    }

    /// Ends the run: the questions for the client, and what to carry over.
    pub(crate) fn suspend(&mut self) -> (Vec<(String, InputRequest)>, RequestState) {
        self.suspended = true;
        for waiting in self.waiting.drain(..) {
            waiting.wake();
        }
        let questions = self.open.iter().map(|open| (open.key.clone(), open.request.clone())).collect();
        let mut state = RequestState::default();
        state.round = self.round();
        state.call = self.call.clone().unwrap_or_default();
        state.asked = self.asked.clone();
        state.answers = self.answers.clone();
        state.steps = self.steps.clone();
        state.asked_twice.clone_from(&self.asked_twice);
        state.user = self.user.take();
        (questions, state)
    }

    /// Starts another run with the same knowledge, for those whose answers came without a retry.
    pub(crate) fn rerun(&mut self) {
        self.open.clear();
        self.unnamed = 0;
        self.suspended = false;
        let mut state = RequestState::default();
        state.round = self.round();
        state.asked = self.asked.clone();
        state.user = self.user.take();
        self.carried = Some(state);
    }

    /// Writes a question of the handler's own making on the journal.
    pub(crate) fn put(&mut self, key: String, request: InputRequest, digest: String) {
        self.asked.insert(key.clone(), digest);
        self.open.push(Open { key, request });
    }

    /// Adds an answer that came by another way than the request.
    pub(crate) fn give(&mut self, key: String, answer: RawJson) {
        self.given.insert(key, answer);
    }

    /// The answer to a question that was asked by hand.
    pub(crate) fn given(&self, key: &str) -> Option<RawJson> {
        self.given.get(key).or_else(|| self.answers.get(key)).cloned()
    }

    /// Keeps an answer that was read by hand for later rounds.
    pub(crate) fn keep(&mut self, key: &str, answer: RawJson) {
        self.answers.insert(key.to_owned(), answer);
    }

    pub(crate) fn set_user(&mut self, user: Option<RawJson>) {
        self.user = user;
    }

    pub(crate) fn user(&self) -> Option<RawJson> {
        self.carried.as_ref().and_then(|carried| carried.user.clone())
    }

    /// What names this logical call through all its rounds.
    pub(crate) fn call(&mut self, fresh: impl FnOnce() -> String) -> String {
        self.call.get_or_insert_with(fresh).clone()
    }

    /// What this run has asked and which steps it came by, to be compared with another run.
    pub(crate) fn footprint(&self) -> Footprint {
        Footprint { questions: self.asked.clone(), steps: self.steps_taken.clone() }
    }

    /// The journal as it was when this run began, except that steps which have been taken stay taken.
    pub(crate) fn as_before(&self) -> Self {
        let mut journal = Self { given: self.given.clone(), ..Self::default() };
        journal.load(self.carried.clone(), None);
        journal.steps = self.steps.clone();
        journal.call.clone_from(&self.call);
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
