//! The questions a handler can ask, and what it may rely on in between.

use std::{
    future::{Future, poll_fn},
    marker::PhantomData,
};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use toolwire_protocol::{RawJson, journal::Entry, seal::Memory, wire::CreateMessageRequestParams};

use super::{
    Answer, AskError, DEFAULT_ASK_TIME, Elicit, ElicitUrl, ListRoots, Sample,
    elicit::Form,
    journal::{Found, Unwritten},
    sealing::random,
};
use crate::Context;

impl Context {
    /// Shows the user a form made of `T` and waits for the answer.
    ///
    /// `T` is a struct whose fields are texts, numbers, booleans, choices or lists of choices.
    ///
    /// # The rules
    ///
    /// A client of the modern era is not kept waiting: it gets the question as the result of its call, and when it
    /// comes back with the answer, the handler runs again **from its start**. So:
    ///
    /// 1. What stands before a question may run several times. Put effects after the last question, or into
    ///    [`once`](Self::once).
    /// 2. Ask the same thing when run again. A question that has changed is asked anew.
    /// 3. What runs beside a question (in a `join!`) is dropped when the question is asked, except `once` steps,
    ///    which are waited for.
    /// 4. Questions in one `join!` are asked together.
    ///
    /// `once` runs a step at most once as long as the client returns what it was given. A client that starts all over
    /// starts all over: for effects that must never happen twice, use [`idempotency_key`](Self::idempotency_key) with
    /// whoever carries them out, or [`StateKeys::single_use`](crate::StateKeys::single_use).
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use toolwire_server::{Answer, BoxError, Context, tool};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Confirm { yes: bool }
    ///
    /// async fn delete(cx: Context) -> Result<&'static str, BoxError> {
    ///     match cx.elicit::<Confirm>("Delete 12 files?").await? {
    ///         Answer::Accept(Confirm { yes: true }) => Ok("deleted"),
    ///         _ => Ok("kept"),
    ///     }
    /// }
    ///
    /// let route = tool("delete", delete).destructive();
    /// ```
    pub fn elicit<T: DeserializeOwned + JsonSchema + Send + 'static>(
        &self,
        message: impl Into<String>,
    ) -> Elicit<T> {
        Elicit {
            cx: self.clone(),
            message: message.into(),
            key: None,
            time: DEFAULT_ASK_TIME,
            fields: PhantomData,
        }
    }

    /// Asks the user to visit a URL, for what must not pass through the client: a login, a payment. The
    /// [rules](Self::elicit) of questions apply.
    pub fn elicit_url(&self, url: impl Into<String>, message: impl Into<String>) -> ElicitUrl {
        ElicitUrl {
            cx: self.clone(),
            url: url.into(),
            message: message.into(),
            key: None,
            time: DEFAULT_ASK_TIME,
        }
    }

    /// Asks the client's model. The [rules](Self::elicit) of questions apply.
    pub fn sample(&self, request: CreateMessageRequestParams) -> Sample {
        Sample { cx: self.clone(), request, key: None, time: DEFAULT_ASK_TIME }
    }

    /// Asks for the client's roots. The [rules](Self::elicit) of questions apply.
    pub fn roots(&self) -> ListRoots {
        ListRoots { cx: self.clone(), key: None, time: DEFAULT_ASK_TIME }
    }

    /// Does something once, even if the handler is run again: its result is remembered and `work` is not polled.
    ///
    /// A name stands for one step of a run. In a loop, name each turn: `format!("page {i}")`.
    ///
    /// # Errors
    /// When the result cannot be remembered or read back, or the name is used for a second step.
    pub async fn once<T>(&self, name: &str, work: impl Future<Output = T>) -> Result<T, AskError>
    where
        T: Serialize + DeserializeOwned,
    {
        let done: Result<T, std::convert::Infallible> = self.try_once(name, async { Ok(work.await) }).await?;
        let Ok(value) = done;
        Ok(value)
    }

    /// Like [`once`](Self::once) for something that may fail: only success is remembered, and what has failed may be
    /// tried again under its name.
    ///
    /// # Errors
    /// When the result cannot be remembered or read back, or the name is used for a second step. What `work` fails with is inside.
    pub async fn try_once<T, E>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, AskError>
    where
        T: Serialize + DeserializeOwned,
    {
        let found = self.journal().step(name)?;
        let step = match RunningStep::come_by(self, name, found).await? {
            Come::Known(known) => return known.decode().map(Ok).map_err(|error| unfit(name, &error)),
            Come::Runs(step) => step,
        };
        let outcome = work.await;
        if let Ok(value) = &outcome {
            step.record(RawJson::of(value).map_err(|error| unfit(name, &error))?).await?;
        }
        Ok(outcome)
    }

    /// Writes to the journal of the task, if the handler belongs to one.
    pub(super) async fn record(&self, entry: impl FnOnce() -> Entry) -> Result<(), AskError> {
        match self.task_run() {
            Some(run) => run.record(entry()).await,
            None => Ok(()),
        }
    }

    /// Like [`once`](Self::once) for something that must not happen twice, and rather not at all: when it has begun and its
    /// result is not known, it is not run again. That is so when the process was lost while it was under way, when its
    /// future was dropped (by a timeout or a `select!`), and when its result could not be remembered. Then the handler has
    /// to ask the other side, or a person.
    ///
    /// What has begun is remembered for the run of the handler, and in a task for all its runs. In a call that is not a
    /// task, the run after a round of questions knows results only.
    ///
    /// ```
    /// use toolwire_server::{AskError, BoxError, Context};
    ///
    /// async fn pay(cx: Context) -> Result<String, BoxError> {
    ///     match cx.at_most_once("pay", async { "receipt 12".to_owned() }).await {
    ///         Err(AskError::Interrupted(_)) => Ok("look at the account: it may have been paid".to_owned()),
    ///         paid => Ok(paid?),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`AskError::Interrupted`], and as [`once`](Self::once) does.
    pub async fn at_most_once<T>(&self, name: &str, work: impl Future<Output = T>) -> Result<T, AskError>
    where
        T: Serialize + DeserializeOwned,
    {
        let found = self.journal().step_at_most_once(name)?;
        let step = match RunningStep::come_by(self, name, found).await? {
            Come::Known(known) => return known.decode().map_err(|error| unfit(name, &error)),
            Come::Runs(step) => step,
        };
        self.begin_step(name).await?;
        let value = work.await;
        step.record(RawJson::of(&value).map_err(|error| unfit(name, &error))?).await?;
        Ok(value)
    }

    /// Notes that a step which may run at most once begins, before it does.
    async fn begin_step(&self, name: &str) -> Result<(), AskError> {
        let run = {
            // Looked at together, as where a step is recorded.
            let mut journal = self.journal();
            let run = self.task_run();
            if run.is_none() {
                journal.begin(name);
            }
            run
        };
        if let Some(run) = run {
            run.record(Entry::Begun { name: name.to_owned() }).await?;
            // Not before: a step whose future was dropped up to here has certainly not happened.
            self.journal().begin(name);
        }
        Ok(())
    }

    /// A text that is the same through all rounds of this call, and different for every other call and label. Give
    /// it to whoever carries out an effect, so that they can tell a repetition.
    pub fn idempotency_key(&self, label: &str) -> String {
        Memory::idempotency_key(&self.call_name(), label)
    }

    pub(crate) fn call_name(&self) -> String {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        self.journal().call(|| BASE64_URL_SAFE_NO_PAD.encode(random::<16>().unwrap_or_default()))
    }

    /// The answer to a form that was asked for with [`NeedInput`](crate::NeedInput); `None` when there is none yet.
    ///
    /// # Errors
    /// When the answer does not fit `T`.
    pub fn input<T: DeserializeOwned + JsonSchema>(&self, key: &str) -> Result<Option<Answer<T>>, AskError> {
        let Some(raw) = self.journal().given(key) else { return Ok(None) };
        let answer = Form::of::<T>()?.read(&raw).map_err(AskError::Invalid)?;
        self.journal().keep(key, raw);
        Ok(Some(answer))
    }

    /// The answer to any question that was asked with [`NeedInput`](crate::NeedInput), as it came.
    pub fn raw_input(&self, key: &str) -> Option<RawJson> {
        let raw = self.journal().given(key)?;
        self.journal().keep(key, raw.clone());
        Some(raw)
    }

    /// What was given to [`NeedInput::remember`](crate::NeedInput::remember) in the round before.
    pub fn remembered<S: DeserializeOwned>(&self) -> Option<S> {
        self.journal().user()?.decode().ok()
    }
}

fn unfit(name: &str, error: &serde_json::Error) -> AskError {
    AskError::Limit(format!("the step {name:?} cannot be remembered: {error}"))
}

/// A step that the handler has come by.
enum Come<'a> {
    /// This is its result.
    Known(RawJson),
    Runs(RunningStep<'a>),
}

/// A step that runs, until its result is recorded. Until then the handler is not put aside.
struct RunningStep<'a> {
    cx: &'a Context,
    name: &'a str,
    /// Its result while that is being written. Whatever drops the step then leaves it to the next one of its name.
    unwritten: Option<Unwritten>,
}

impl<'a> RunningStep<'a> {
    /// Waits for the result of a step that was done in this run, if its future was dropped before that was written.
    async fn come_by(cx: &'a Context, name: &'a str, found: Found) -> Result<Come<'a>, AskError> {
        let step = || Self { cx, name, unwritten: None };
        match found {
            Found::Known(known) => Ok(Come::Known(known)),
            Found::Nothing => Ok(Come::Runs(step())),
            Found::Unwritten(unwritten) => step().written(unwritten).await.map(Come::Known),
        }
    }

    /// Writes its result down, before the handler gets it: a step whose result is known is never run again.
    async fn record(self, result: RawJson) -> Result<(), AskError> {
        let run = {
            // Looked at under the lock under which a call becomes a task: either the result moves into the task with
            // the journal, or it is written to the task.
            let mut journal = self.cx.journal();
            let Some(run) = self.cx.task_run() else {
                journal.record(self.name, result);
                return Ok(());
            };
            run
        };
        let written = run.record(Entry::step(self.name, result.clone()));
        self.written(Unwritten { result, written }).await.map(drop)
    }

    /// Waits until its result is written, and gives it.
    async fn written(mut self, unwritten: Unwritten) -> Result<RawJson, AskError> {
        let unwritten = self.unwritten.insert(unwritten);
        let written = poll_fn(|task| unwritten.written.as_mut().poll(task)).await;
        let result = unwritten.result.clone();
        self.unwritten = None;
        written?;
        self.cx.journal().record(self.name, result.clone());
        Ok(result)
    }
}

impl Drop for RunningStep<'_> {
    fn drop(&mut self) {
        self.cx.journal().step_ended(self.name, self.unwritten.take());
    }
}
