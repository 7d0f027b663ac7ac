//! The questions a handler can ask, and what it may rely on in between.

use std::{future::Future, marker::PhantomData};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use toolwire_protocol::{RawJson, journal::Entry, seal::Memory, wire::CreateMessageRequestParams};

use super::{
    Answer, AskError, DEFAULT_ASK_TIME, Elicit, ElicitUrl, ListRoots, Sample, elicit::Form, sealing::random,
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
        let unfit = |error: serde_json::Error| {
            AskError::Limit(format!("the step {name:?} cannot be remembered: {error}"))
        };
        let known = self.journal().step(name)?;
        if let Some(known) = known {
            return known.decode().map(Ok).map_err(unfit);
        }
        let step = RunningStep { cx: self, name };
        let outcome = work.await;
        if let Ok(value) = &outcome {
            self.record_step(name, RawJson::of(value).map_err(unfit)?).await?;
        }
        drop(step);
        Ok(outcome)
    }

    /// Writes the result of a step down, before the handler gets it: a step whose result is known is never run again.
    async fn record_step(&self, name: &str, result: RawJson) -> Result<(), AskError> {
        self.record(|| Entry::step(name, result.clone())).await?;
        self.journal().record(name, result);
        Ok(())
    }

    /// Writes to the journal of the task, if the handler belongs to one.
    pub(super) async fn record(&self, entry: impl FnOnce() -> Entry) -> Result<(), AskError> {
        match self.task_run() {
            Some(run) => run.record(entry()).await,
            None => Ok(()),
        }
    }

    /// Like [`once`](Self::once) for something that must not happen twice, and rather not at all: when it is not known
    /// whether it has happened, because the process was lost while it was under way, it is not run again. Then the handler has
    /// to ask the other side, or a person.
    ///
    /// It makes a difference to tasks; in a call that is not one, a step is never interrupted without the whole call.
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
        let unfit = |error: serde_json::Error| {
            AskError::Limit(format!("the step {name:?} cannot be remembered: {error}"))
        };
        if self.journal().has_begun(name) {
            return Err(AskError::Interrupted(name.to_owned()));
        }
        let known = self.journal().step(name)?;
        if let Some(known) = known {
            return known.decode().map_err(unfit);
        }
        let step = RunningStep { cx: self, name };
        self.journal().begin(name);
        self.record(|| Entry::Begun { name: name.to_owned() }).await?;
        let value = work.await;
        self.record_step(name, RawJson::of(&value).map_err(unfit)?).await?;
        drop(step);
        Ok(value)
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

/// A step that runs, until its result is recorded. Until then the handler is not put aside.
struct RunningStep<'a> {
    cx: &'a Context,
    name: &'a str,
}

impl Drop for RunningStep<'_> {
    fn drop(&mut self) {
        self.cx.journal().step_ended(self.name);
    }
}
