//! Asking by hand: a handler that returns its questions instead of awaiting them.

use std::{collections::BTreeSet, future::poll_fn, pin::Pin, task::Poll};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use toolwire_protocol::{
    ErrorCode, Feature, RawJson, RpcError,
    journal::check_key,
    seal::Memory,
    wire::{
        CreateMessageRequestParams, ElicitRequestParams, ElicitRequestUrlParams, InputRequest,
        UrlElicitationRequiredData,
    },
};

use super::{AskError, Asks, DEFAULT_ASK_TIME, MAX_ROUNDS, check_capability, elicit::Form, live};
use crate::{
    CallerCan, Context, Reply,
    dispatch::dispatch,
    output::{IntoPrompt, IntoResource, IntoToolOutput, ResourceInfo},
};

/// Questions as the return value of a handler. The handler is called again when they are answered, and finds
/// the answers with [`Context::input`].
///
/// Most handlers are better off with [`Context::elicit`] and its siblings, which do this by themselves.
///
/// Each question has a key of its own. In a tool that has tasks, a key is not empty, has at most 256 bytes and no `#`.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwire_server::{Answer, BoxError, Context, NeedInput, Reply, IntoToolOutput, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Name { name: String }
///
/// async fn hello(cx: Context) -> Result<Reply, BoxError> {
///     match cx.input::<Name>("who")? {
///         None => Ok(NeedInput::new().elicit::<Name>("who", "What is your name?")?.into_tool_output()?),
///         Some(Answer::Accept(who)) => Ok(format!("Hello, {}!", who.name).into_tool_output()?),
///         Some(_) => Ok("Hello, stranger!".into_tool_output()?),
///     }
/// }
///
/// let route = tool("hello", hello);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct NeedInput {
    questions: Vec<(String, InputRequest)>,
    user: Option<RawJson>,
    /// Whether a client that cannot be asked in rounds is sent away with an error instead of being asked.
    url_first: bool,
}

impl NeedInput {
    /// No questions yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A form for the user.
    ///
    /// # Errors
    /// When `T` cannot be a form.
    pub fn elicit<T: DeserializeOwned + JsonSchema>(
        self,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<Self, AskError> {
        let request = Form::of::<T>()?.request(message.into());
        Ok(self.question(key, request))
    }

    /// A URL for the user to visit.
    pub fn elicit_url(
        self,
        key: impl Into<String>,
        url: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        self.question(key, ElicitRequestUrlParams::new(message, url))
    }

    /// Like [`elicit_url`](Self::elicit_url), but a client of 2025-11-25 gets the error that the revision has for
    /// this (-32042) and calls again when the user has been there. It brings no answer then, so the handler has
    /// to know by itself whether the user has.
    pub fn url_first(
        self,
        key: impl Into<String>,
        url: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { url_first: true, ..self.elicit_url(key, url, message) }
    }

    /// A question to a model.
    pub fn sample(self, key: impl Into<String>, request: CreateMessageRequestParams) -> Self {
        self.question(key, request)
    }

    /// A question for the roots.
    pub fn roots(self, key: impl Into<String>) -> Self {
        self.question(key, InputRequest::ListRoots(None))
    }

    /// Any question.
    pub fn question(mut self, key: impl Into<String>, request: impl Into<InputRequest>) -> Self {
        self.questions.push((key.into(), request.into()));
        self
    }

    /// Something to remember until the answers are there. Read it with [`Context::remembered`].
    ///
    /// # Errors
    /// When `state` cannot be serialised.
    pub fn remember<S: Serialize>(mut self, state: &S) -> Result<Self, AskError> {
        self.user = Some(RawJson::of(state).map_err(|error| AskError::Invalid(error.to_string()))?);
        Ok(self)
    }

    /// The error for a client that cannot be asked in rounds and has to send the user to a URL first; `None` to ask as
    /// usual.
    pub(crate) fn url_error(&self, cx: &Context) -> Option<RpcError> {
        if !self.url_first {
            return None;
        }
        let urls = self.questions.iter().filter_map(|(_, request)| match request {
            InputRequest::Elicit(ElicitRequestParams::Url(url)) => {
                let id = cx.idempotency_key(&url.url);
                Some(url.clone().elicitation_id(id))
            }
            _ => None,
        });
        let data = UrlElicitationRequiredData::new(urls.collect::<Vec<_>>());
        if cx.0.version.has(Feature::ElicitationComplete) && cx.caller().can(CallerCan::ElicitUrl) {
            let message = "the user has to visit a URL first";
            return Some(RpcError::new(ErrorCode::URL_ELICITATION_REQUIRED, message).with_data(&data));
        }
        let urls: Vec<_> = data.elicitations.iter().map(|url| url.url.as_str()).collect();
        Some(RpcError::invalid_request(format!("the user has to visit {} first", urls.join(" and "))))
    }

    /// Whether the caller has declared everything that is asked for.
    pub(crate) fn check(&self, cx: &Context) -> Result<(), AskError> {
        self.questions.iter().try_for_each(|(_, request)| check_capability(cx, request))
    }

    /// Checks that a task can ask these questions, before a user answers what could not be taken.
    fn check_keys(&self) -> Result<(), RpcError> {
        let mut seen = BTreeSet::new();
        for (key, _) in &self.questions {
            let why = match check_key(key) {
                Ok(()) if seen.insert(key) => continue,
                Ok(()) => "another question has this key; give each its own",
                Err(why) => why,
            };
            return Err(RpcError::internal(format!("the question {key:?} cannot be asked: {why}")));
        }
        Ok(())
    }

    /// Puts the questions on the journal, where the engine finds them.
    pub(crate) fn post(self, cx: &Context) -> Result<(), RpcError> {
        self.check(cx).map_err(|error| error.rpc_error())?;
        if cx.0.task.get().is_some() {
            self.check_keys()?;
        }
        for (key, request) in self.questions {
            let question = RawJson::of(&request).map_err(|error| RpcError::internal(error.to_string()))?;
            cx.journal().put(key, request, Memory::digest(&question));
        }
        cx.journal().set_user(self.user);
        Ok(())
    }
}

impl IntoToolOutput for NeedInput {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        Ok(Reply::NeedInput(self))
    }
}

impl IntoPrompt for NeedInput {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        Ok(Reply::NeedInput(self))
    }
}

impl IntoResource for NeedInput {
    fn into_resource(self, _: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        Ok(Reply::NeedInput(self))
    }
}

/// Asks the questions directly, runs the handler again with the answers, and so on.
pub(crate) async fn live_rounds(cx: Context, asks: Asks, mut need: NeedInput) -> Result<Reply, RpcError> {
    for _ in 0..MAX_ROUNDS {
        let questions = need.questions.clone();
        need.post(&cx)?;
        for (key, answer) in ask_all(&cx, &asks, questions).await? {
            cx.journal().give(key, answer);
        }
        cx.journal().rerun();
        match dispatch(cx.clone()).await? {
            Reply::NeedInput(next) => need = next,
            done => return Ok(done),
        }
    }
    Err(RpcError::internal(format!("the handler was not satisfied after {MAX_ROUNDS} rounds of questions")))
}

type Asked = Pin<Box<dyn Future<Output = Result<RawJson, AskError>> + Send>>;

/// Asks several questions at once.
async fn ask_all(
    cx: &Context,
    asks: &Asks,
    questions: Vec<(String, InputRequest)>,
) -> Result<Vec<(String, RawJson)>, RpcError> {
    let mut open: Vec<(String, Option<Asked>)> = Vec::new();
    for (key, request) in questions {
        let (cx, asks) = (cx.clone(), asks.clone());
        let asked: Asked = Box::pin(async move { live::ask(&cx, &asks, &request, DEFAULT_ASK_TIME).await });
        open.push((key, Some(asked)));
    }
    let mut answers = Vec::new();
    poll_fn(|task| {
        for (key, slot) in &mut open {
            let Some(asked) = slot else { continue };
            match asked.as_mut().poll(task) {
                Poll::Ready(Ok(answer)) => answers.push((key.clone(), answer)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.rpc_error())),
                Poll::Pending => continue,
            }
            *slot = None;
        }
        if open.iter().all(|(_, slot)| slot.is_none()) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(answers)
}
