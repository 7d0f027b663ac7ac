//! Asking, whichever way the caller has for it; and the two questions that need no form.

use std::{
    fmt,
    future::{Future, IntoFuture, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use serde::de::DeserializeOwned;
use toolwire_protocol::{
    Feature, RawJson,
    journal::{Entry, check_key},
    seal::Memory,
    wire::{
        CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, InputRequest, ListRootsResult,
        Root,
    },
};

use super::{AskError, Asking, journal::Lookup, live};
use crate::{CallerCan, Context};

/// Asks one question and waits for its answer, which is not looked at yet.
pub(crate) async fn ask(
    cx: &Context,
    key: &str,
    request: &InputRequest,
    time: Duration,
) -> Result<RawJson, AskError> {
    match cx.asking() {
        Asking::Rounds | Asking::Task => wait(cx, key, request).await,
        Asking::Live(asks) => live::ask(cx, asks, request, time).await,
        Asking::Closed(why) => Err(AskError::NoWay(why)),
    }
}

/// Waits for an answer on the journal. If there is none yet, the round ends before this does.
async fn wait(cx: &Context, key: &str, request: &InputRequest) -> Result<RawJson, AskError> {
    let question = RawJson::of(request).map_err(|error| AskError::Invalid(error.to_string()))?;
    let digest = Memory::digest(&question);
    poll_fn(|task| match cx.journal().look_up(key, &digest, request, task.waker()) {
        Lookup::Answered(answer) => Poll::Ready(Ok(answer)),
        Lookup::Open => Poll::Pending,
        Lookup::Refused(error) => Poll::Ready(Err(AskError::Refused(error))),
        Lookup::Suspended => Poll::Ready(Err(AskError::Suspended)),
    })
    .await
}

/// Asks until the answer fits, at most twice.
pub(super) async fn ask_for<T>(
    cx: &Context,
    key: Option<String>,
    kind: &'static str,
    request: InputRequest,
    time: Duration,
    read: impl Fn(&RawJson) -> Result<T, String>,
) -> Result<T, AskError> {
    check_capability(cx, &request)?;
    let key = key.unwrap_or_else(|| cx.journal().unnamed_key(kind));
    if cx.0.task.get().is_some() {
        check_key(&key).map_err(|why| AskError::Invalid(format!("{key:?}: {why}")))?;
    }
    loop {
        let answer = ask(cx, &key, &request, time).await?;
        match read(&answer) {
            Ok(value) => return Ok(value),
            Err(reason) if cx.journal().reject(&key) => {
                tracing::debug!(key, reason, "an answer did not fit; the question is asked again");
                cx.record(|| Entry::Unfit { key: key.clone() }).await?;
            }
            Err(reason) => return Err(AskError::Invalid(reason)),
        }
    }
}

/// What the other side did not declare is never sent.
pub(crate) fn check_capability(cx: &Context, request: &InputRequest) -> Result<(), AskError> {
    let (can, required) = match request {
        InputRequest::Elicit(ElicitRequestParams::Url(_)) => {
            (CallerCan::ElicitUrl, r#"{"elicitation":{"url":{}}}"#)
        }
        InputRequest::Elicit(_) => (CallerCan::ElicitForm, r#"{"elicitation":{}}"#),
        InputRequest::CreateMessage(params) if params.tools.is_some() || params.tool_choice.is_some() => {
            (CallerCan::SampleWithTools, r#"{"sampling":{"tools":{}}}"#)
        }
        InputRequest::CreateMessage(_) => (CallerCan::Sample, r#"{"sampling":{}}"#),
        _ => (CallerCan::ListRoots, r#"{"roots":{}}"#),
    };
    if cx.caller().can(can) {
        return Ok(());
    }
    let required = RawJson::parse(required).map_err(|error| AskError::Invalid(error.to_string()))?;
    Err(AskError::Unsupported { required, coded: cx.0.version.has(Feature::MissingCapabilityCode) })
}

pub(super) fn decode<T: DeserializeOwned>(answer: &RawJson) -> Result<T, String> {
    answer.decode().map_err(|error| error.to_string())
}

/// A question whose settings can be changed before it is awaited.
macro_rules! question {
    ($(#[$doc:meta])* $name:ident, $output:ty, $run:ident) => {
        impl $name {
            /// Names the question. Give a name when a handler may ask in another order in another run.
            pub fn key(mut self, key: impl Into<String>) -> Self {
                self.key = Some(key.into());
                self
            }

            /// How long a client that is asked directly may take. By default ten minutes.
            pub fn timeout(mut self, time: Duration) -> Self {
                self.time = time;
                self
            }
        }

        impl IntoFuture for $name {
            type Output = Result<$output, AskError>;
            type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.$run())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("key", &self.key).finish_non_exhaustive()
            }
        }
    };
}
pub(super) use question;

/// A question to a model. Made by [`Context::sample`]; await it.
#[must_use]
pub struct Sample {
    pub(super) cx: Context,
    pub(super) request: CreateMessageRequestParams,
    pub(super) key: Option<String>,
    pub(super) time: Duration,
}

impl Sample {
    async fn run(self) -> Result<CreateMessageResult, AskError> {
        ask_for(&self.cx, self.key, "sample", self.request.into(), self.time, decode).await
    }
}

question!(Sample, CreateMessageResult, run);

/// A question for the client's roots. Made by [`Context::roots`]; await it.
#[must_use]
pub struct ListRoots {
    pub(super) cx: Context,
    pub(super) key: Option<String>,
    pub(super) time: Duration,
}

impl ListRoots {
    async fn run(self) -> Result<Vec<Root>, AskError> {
        let read = |answer: &RawJson| decode::<ListRootsResult>(answer).map(|result| result.roots);
        ask_for(&self.cx, self.key, "roots", InputRequest::ListRoots(None), self.time, read).await
    }
}

question!(ListRoots, Vec<Root>, run);
