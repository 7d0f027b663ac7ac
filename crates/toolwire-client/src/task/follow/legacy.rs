//! Following a task of 2025-11-25: `tasks/result` is held open, because the task's questions come while it is. When that
//! breaks, and now and then all the same, the task is looked at.

use std::{future::pending, time::Duration};

use serde::Deserialize;
use tokio::time::{Instant, sleep_until};
use toolwire_protocol::{
    ErrorCode, Method, Params, RawJson, RpcError,
    wire::{Meta, RelatedTaskMetadata, TaskRequestParams, TaskStatus, meta::RELATED_TASK},
};

use super::{
    super::{state::TaskState, trouble::Trouble},
    Follow, Look, SAFETY_POLL, maybe,
};
use crate::{
    client::{CallOutcome, InFlight},
    error::{Error, ErrorKind},
    link::{ExchangeError, Reply},
    settings::{LONGEST_RELISTEN_PAUSE, pause_up_to},
};

/// How long the result of a task that has ended may take before it is asked for again.
const RESULT_PATIENCE: Duration = Duration::from_secs(10);

/// The request that is answered with the result.
#[derive(Default)]
struct Held {
    flight: Option<InFlight>,
    since: Option<Instant>,
    /// How often in a row it has soon been over.
    breaks: u32,
    /// The error that it was answered with, until it is known whose that is.
    refused: Option<RpcError>,
    /// Since when the task is known to have ended.
    ended: Option<Instant>,
}

impl Held {
    async fn finished(&mut self) -> Reply {
        match &mut self.flight {
            Some(flight) => flight.finished().await,
            None => pending().await,
        }
    }

    /// It is over without a result. How long to wait before it is asked for again.
    fn broken(&mut self) -> Duration {
        self.flight = None;
        let lasted = self.since.take().is_some_and(|since| since.elapsed() >= LONGEST_RELISTEN_PAUSE);
        self.breaks = if lasted { 0 } else { self.breaks.saturating_add(1) };
        pause_up_to(self.breaks, LONGEST_RELISTEN_PAUSE)
    }
}

impl Follow<'_> {
    pub(super) async fn legacy(&mut self) -> Result<CallOutcome, Error> {
        let task = self.task;
        let client = task.client();
        let shortest = client.settings().limits.shortest_poll;
        let watch = client.host().watchers.watch(task.id());
        let mut held = Held::default();
        self.hold(&mut held)?;
        let mut looking: Look<'_> = None;
        let mut looked = Instant::now();
        let mut again = false;
        let mut trouble = Trouble::default();
        let mut due = looked + self.pace(&held);
        loop {
            tokio::select! {
                biased;
                reply = held.finished() => {
                    let pause = held.broken();
                    let now = Instant::now();
                    due = now + match reply {
                        Ok(result) => return self.finish(&result),
                        Err(ExchangeError::Rpc(error)) => {
                            held.refused = Some(error);
                            Duration::ZERO
                        }
                        Err(error @ ExchangeError::Link(_)) => {
                            let error = client.explain(Method::GetTaskPayload, error).await;
                            trouble.after(client, error)?.max(self.interval()).max(pause)
                        }
                    };
                }
                state = maybe(&mut looking) => {
                    looking = None;
                    let now = Instant::now();
                    due = now + match state {
                        Ok(state) => {
                            trouble.over();
                            self.publish(&state);
                            self.seen(&state, &mut held)?
                        }
                        Err(error) => match (error.kind(), held.refused.take()) {
                            (ErrorKind::TaskGone, Some(refused)) => return Err(self.whose(refused, error)),
                            (_, refused) => {
                                held.refused = refused;
                                trouble.after(client, error)?
                            }
                        },
                    };
                    if std::mem::take(&mut again) {
                        due = due.min(looked + shortest);
                    }
                }
                () = sleep_until(due), if looking.is_none() => {
                    looked = Instant::now();
                    looking = Some(Box::pin(task.get()));
                }
                news = watch.next() => {
                    self.progress(news.progress);
                    if news.changed && looking.is_some() {
                        again = true;
                    } else if news.changed {
                        due = due.min(looked + shortest);
                    }
                }
            }
        }
    }

    /// Asks for the result, which comes when there is one.
    fn hold(&self, held: &mut Held) -> Result<(), Error> {
        let params = TaskRequestParams::new(self.task.id());
        // One that may still be there is given up first.
        held.flight = None;
        held.flight = Some(self.task.client().start(Method::GetTaskPayload, &params, |_| ())?);
        held.since = Some(Instant::now());
        Ok(())
    }

    /// How often to look while the result is being waited for.
    fn pace(&self, held: &Held) -> Duration {
        match (held.ended, &self.publish) {
            (Some(_), _) => RESULT_PATIENCE,
            (None, Some(_)) => self.interval(),
            (None, None) => self.interval().max(SAFETY_POLL),
        }
    }

    /// The task stands like this. How long to wait before it is looked at again.
    fn seen(&self, state: &TaskState, held: &mut Held) -> Result<Duration, Error> {
        if state.status() == TaskStatus::Cancelled {
            return Err(self.cancelled(state.as_task()));
        }
        if let Some(refused) = held.refused.take() {
            if state.has_ended() {
                return Err(Error::from_rpc(&Method::CallTool.into(), refused));
            }
            // It goes on, so the refusal was about the request: it can be repeated if something was wrong for a moment.
            let error = Error::from_rpc(&Method::GetTaskPayload.into(), refused);
            let pause = Trouble::default().after(self.task.client(), error)?;
            return Ok(pause.max(self.interval()).max(pause_up_to(held.breaks, LONGEST_RELISTEN_PAUSE)));
        }
        if held.flight.is_none() {
            self.hold(held)?;
        }
        if state.has_ended() {
            let patience = self.task.client().settings().limits.request_timeout;
            match held.ended {
                None => held.ended = Some(Instant::now()),
                Some(ended) if ended.elapsed() >= patience => {
                    return Err(Error::timeout(&Method::GetTaskPayload.into(), patience));
                }
                // It may have been lost on a connection that nobody knows to be broken.
                Some(_) if held.since.is_some_and(|since| since.elapsed() >= RESULT_PATIENCE) => {
                    self.hold(held)?;
                }
                Some(_) => {}
            }
        }
        Ok(self.pace(held))
    }

    /// The server does not know the task any more. What it has said before may have been the task's own error.
    fn whose(&self, refused: RpcError, gone: Error) -> Error {
        if refused.code == ErrorCode::INVALID_PARAMS {
            return gone;
        }
        self.task.mark_ended();
        Error::from_rpc(&Method::CallTool.into(), refused)
    }

    /// The result has come.
    fn finish(&mut self, result: &Params) -> Result<CallOutcome, Error> {
        #[derive(Deserialize)]
        struct Related {
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        let method = Method::GetTaskPayload.into();
        let wrong = |why: &dyn std::fmt::Display| Error::invalid_response(&method, why);
        let related = result.decode::<Related>().map_err(|error| wrong(&error))?.meta;
        let related = related.and_then(|meta| meta.decode::<RelatedTaskMetadata>(RELATED_TASK)?.ok());
        if related.is_some_and(|related| related.task_id != self.task.id()) {
            return Err(wrong(&format_args!("it is about another task than {:?}", self.task.id())));
        }
        let raw = RawJson::parse(result.text()).map_err(|error| wrong(&error))?;
        let outcome = self.outcome(&raw)?;
        if let Some(mut task) = self.task.last_task().filter(|task| !task.status.is_terminal()) {
            task.status = if outcome.is_error() { TaskStatus::Failed } else { TaskStatus::Completed };
            task.status_message = None;
            let state = self.task.learn(task.into())?;
            self.publish(&state);
        }
        Ok(outcome)
    }
}
