//! A typed request from beginning to end: the cache before it, the rounds within it, the task it may become.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolwire_protocol::{
    Method, MethodName, Params, RawJson, ServerCapability,
    caching::{CacheKey, CacheTicket},
    codec::{RequestEnvelope, RequestMeta},
    wire::{CreateTaskResult, InputRequiredResult, LoggingLevel, Meta, ResultType, TASKS_EXTENSION, Task},
};

use super::{
    Client,
    list_budget::ListBudget,
    operation::Operation,
    requester::{Failure, InFlight, OnProgress, Pace},
};
use crate::{
    error::{Delivery, Error, ErrorKind},
    link::{ExchangeError, Outgoing, Subject},
};

/// What one request is sent with, where it differs from the client's settings.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) timeout: Option<Duration>,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) meta: Option<Meta>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) fresh: bool,
    pub(crate) progress: Option<OnProgress>,
    /// What is left of the budget of the list that the result is a page of.
    pub(super) budget: Option<Box<ListBudget>>,
}

impl Options {
    /// Takes a page of a list into account before it is decoded.
    fn charge<T: Operation>(&mut self, text: &str) -> Result<(), Error> {
        self.budget.as_mut().map_or(Ok(()), |budget| budget.charge(T::METHOD, text))
    }
}

/// What a result turned out to be.
enum Answer<T> {
    Complete(T),
    NeedsInput(InputRequiredResult),
    Task(Box<Task>),
}

/// What a request came to.
pub(crate) enum Performed<T> {
    Done(T),
    /// The work goes on, and this is how it stands.
    Task(Box<Task>),
}

impl<T: Operation> Performed<T> {
    /// The result of what cannot become a task.
    pub(super) fn done(self) -> Result<T, Error> {
        match self {
            Self::Done(value) => Ok(value),
            Self::Task(_) => Err(Error::invalid_response(&T::METHOD.into(), "it became a task")),
        }
    }
}

impl Client {
    /// Whether the version has the method and the server advertised what it needs.
    pub(crate) fn check(&self, method: Method) -> Result<(), Error> {
        let info = method.info();
        let version = self.version();
        if !info.from_client(version) {
            return Err(Error::not_in_this_version(&method.into(), version));
        }
        match info.needs {
            Some(capability) if !self.advertises(capability) || !self.advertises_task_method(method) => {
                Err(Error::not_advertised(&method.into(), capability))
            }
            _ => Ok(()),
        }
    }

    /// Whether the server has what it may leave out although it has tasks.
    fn advertises_task_method(&self, method: Method) -> bool {
        let tasks = self.capabilities().tasks.as_ref();
        tasks.is_none_or(|tasks| match method {
            Method::ListTasks => tasks.list.is_some(),
            Method::CancelTask => tasks.cancel.is_some(),
            _ => true,
        })
    }

    fn advertises(&self, capability: ServerCapability) -> bool {
        let can = self.capabilities();
        match capability {
            ServerCapability::Tools => can.tools.is_some(),
            ServerCapability::Prompts => can.prompts.is_some(),
            ServerCapability::Resources => can.resources.is_some(),
            ServerCapability::ResourcesSubscribe => {
                can.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
            }
            ServerCapability::Completions => {
                can.completions.is_some() || !self.facts().completions_are_declared
            }
            ServerCapability::Logging => can.logging.is_some(),
            ServerCapability::Tasks => can.tasks.is_some() || can.has_extension(TASKS_EXTENSION),
            _ => true,
        }
    }

    /// Sends one request and waits for its result, whatever that is.
    pub(crate) async fn ask_once<P: Serialize + ?Sized + Sync>(
        &self,
        method: impl Into<MethodName>,
        params: &P,
        mut options: Options,
    ) -> Result<Params, Error> {
        let method = method.into();
        let mut pace = self.pace(&options);
        let about = |envelope, message: &Bytes| Subject::of_message(envelope, &method, message);
        self.ask(&method, params, &mut options, &mut pace, about).await
    }

    /// Sends a request without waiting for anything. `before` learns its id before it leaves.
    pub(crate) fn start<P: Serialize + ?Sized>(
        &self,
        method: Method,
        params: &P,
        before: impl FnOnce(&toolwire_protocol::RequestId),
    ) -> Result<InFlight, Error> {
        let method = MethodName::from(method);
        let requester = self.requester();
        let id = requester.next_id();
        let message = self.envelope().write(&id, &method, params, &RequestMeta::default());
        let message = message.map_err(|error| Error::invalid_params(&method, error))?;
        before(&id);
        let subject = Some(Box::new(Subject::nothing(self.envelope().clone())));
        Ok(requester.launch(Outgoing { id, method, message, subject }, true))
    }

    pub(crate) async fn explain(&self, method: Method, error: ExchangeError) -> Error {
        self.requester().explain(&method.into(), Failure::Exchange(error)).await
    }

    pub(crate) fn pace(&self, options: &Options) -> Pace {
        let limits = &self.settings().limits;
        Pace {
            idle: options.timeout.unwrap_or(limits.request_timeout),
            total: options.total_timeout.unwrap_or(limits.total_timeout),
        }
    }

    async fn ask<P: Serialize + ?Sized + Sync>(
        &self,
        method: &MethodName,
        params: &P,
        options: &mut Options,
        pace: &mut Pace,
        about: impl FnOnce(RequestEnvelope, &Bytes) -> Subject,
    ) -> Result<Params, Error> {
        let log_level = options.log_level.or_else(|| self.settings().log_level);
        let meta = RequestMeta { progress_token: None, log_level, own: options.meta.as_ref() };
        let with_progress = options.progress.is_some();
        let request =
            self.requester().request_about(self.envelope(), method, params, meta, with_progress, about);
        let request = request.map_err(|error| Error::invalid_params(method, error))?;
        let failure = match self.requester().carry(request, true, options.progress.as_mut(), pace).await {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        Err(self.requester().explain(method, failure).await)
    }

    /// Does everything that belongs to a typed request, to its result or to the task that it has become.
    pub(crate) async fn begin<T: Operation>(
        &self,
        params: &mut T::Params,
        options: &mut Options,
    ) -> Result<Performed<T>, Error> {
        self.check(T::METHOD)?;
        let key = T::cache_key(params).filter(|_| self.facts().cache_hints);
        if let Some(key) = key.as_ref().filter(|_| !options.fresh)
            && let Some(stored) = self.host().with_cache(|cache, now| cache.fresh(key, CONTEXT, now))
            && let Ok(value) = stored.decode()
        {
            options.charge::<T>(stored.text())?;
            return Ok(Performed::Done(value));
        }
        let ticket = key.as_ref().map(|key| self.host().with_cache(|cache, _| cache.ticket(key)));
        let method = MethodName::from(T::METHOD);
        let mut pace = self.pace(options);
        let rounds = self.settings().limits.rounds;
        for round in 0..=rounds {
            let about = |envelope, _: &Bytes| T::subject(params, envelope);
            let result = self.ask(&method, &*params, options, &mut pace, about).await?;
            options.charge::<T>(result.text())?;
            let input = match self.decode::<T>(&method, params, &result)? {
                Answer::Task(task) => {
                    // What is left of the time, where the caller has set one.
                    options.total_timeout = options.total_timeout.map(|_| pace.total);
                    return Ok(Performed::Task(task));
                }
                Answer::Complete(mut value) => {
                    self.host().supports.learn(value.tools());
                    self.host().wrapped.learn(value.tools());
                    if T::tool(params).is_some_and(|tool| self.host().wrapped.has(tool)) {
                        value.mark_wrapped();
                    }
                    if let (Some(key), Some(ticket), 0) = (&key, ticket, round) {
                        self.keep(key, ticket, &value, &result);
                    }
                    return Ok(Performed::Done(value));
                }
                Answer::NeedsInput(input) => input,
            };
            let (responses, state) = self.next_round(&method, input, round, &mut pace).await?;
            T::answer(params, responses, state);
        }
        let text = format!("the server asked for input {} times in a row for one {method}", rounds + 1);
        Err(Error::new(ErrorKind::TooManyRounds, Delivery::Rejected, text).with_limit("rounds"))
    }

    /// Stores a result, if the server allows it.
    pub(crate) fn keep<T: Operation>(&self, key: &CacheKey, ticket: CacheTicket, value: &T, result: &Params) {
        let hint = value.hint();
        // The cache has to hear of results that are not stored as well: they end the life of older ones.
        let text = if hint.ttl_ms == 0 { "null" } else { result.text() };
        if let Ok(raw) = RawJson::parse(text) {
            self.host().with_cache(|cache, now| cache.insert(key, CONTEXT, hint, Arc::new(raw), ticket, now));
        }
    }

    /// Decodes a result, the likely way first.
    fn decode<T: Operation>(
        &self,
        method: &MethodName,
        params: &T::Params,
        result: &Params,
    ) -> Result<Answer<T>, Error> {
        let decoded = result.decode::<T>();
        if T::wishes_for_task(params)
            && decoded.is_err()
            && let Ok(created) = result.decode::<CreateTaskResult>()
        {
            return Ok(Answer::Task(Box::new(created.task)));
        }
        let kind = match &decoded {
            _ if !self.facts().result_types => None,
            Ok(value) => value.result_type().cloned(),
            Err(_) => result_type(result),
        };
        match kind {
            None | Some(ResultType::Complete) => decoded.map(Answer::Complete),
            Some(ResultType::InputRequired) if T::METHOD.info().multi_round_trip => {
                result.decode().map(Answer::NeedsInput)
            }
            Some(ResultType::Task) if T::tool(params).is_some() && self.host().follows_tasks() => {
                result.decode::<CreateTaskResult>().map(|created| Answer::Task(Box::new(created.task)))
            }
            Some(other) => {
                return Err(Error::invalid_response(
                    method,
                    format_args!("unexpected result type {:?}", other.as_str()),
                ));
            }
        }
        .map_err(|error| Error::invalid_response(method, error))
    }
}

/// What kind of result it is, where it could not be decoded as the one that was expected.
fn result_type(result: &Params) -> Option<ResultType> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "resultType")]
        kind: Option<ResultType>,
    }

    result.decode::<Kind>().ok()?.kind
}

/// A client has one authorization, so there is one context.
pub(crate) const CONTEXT: &str = "";
