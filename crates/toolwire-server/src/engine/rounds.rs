//! The rounds of a request that asks: where they begin, and where one ends.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context as Task, Poll},
};

use toolwire_protocol::{
    RpcError,
    seal::Binding,
    wire::{InputRequests, InputRequiredResult, InputResponses},
};

use super::Call;
use crate::{
    Context, Principal, PrincipalKey, Reply,
    ask::{AskError, Asking, MAX_ROUNDS, NeedInput, live_rounds},
    dispatch::{Shielded, dispatch},
    handler::Answer,
};

/// What follows on a handler's poll.
pub(super) enum Next {
    /// The request is over.
    Done(Result<Reply, RpcError>),
    /// It goes on with this.
    Run(Answer),
}

/// Starts a round: the first, or one that brings answers.
pub(super) fn begin(cx: Context) -> Answer {
    let retry = cx.0.peek.request_state.is_some() || cx.0.peek.input_responses.is_some();
    if retry && cx.may_suspend() { Box::pin(resume(cx)) } else { dispatch(cx) }
}

async fn resume(cx: Context) -> Result<Reply, RpcError> {
    let peek = &cx.0.peek;
    let carried = match &peek.request_state {
        Some(token) => {
            let server = cx.server();
            let keys = server.state_keys();
            let (name, version, caller) = (&server.info().name, cx.0.version, cx.caller_key());
            Some(keys.open(name, version, &binding(&cx)?, caller.as_ref(), token).await?)
        }
        None => None,
    };
    let responses: Option<InputResponses> = match &peek.input_responses {
        Some(raw) => Some(
            serde_json::from_slice(raw)
                .map_err(|error| RpcError::invalid_params(format!("inputResponses: {error}")))?,
        ),
        None => None,
    };
    cx.journal().load(carried, responses);
    dispatch(cx).await
}

fn binding(cx: &Context) -> Result<Binding, RpcError> {
    let principal = cx.principal().map(Principal::key);
    Binding::of(cx.method().as_str(), cx.params(), principal.as_ref().map(PrincipalKey::as_bytes))
}

/// Whether the handler waits for answers and nothing else.
pub(crate) fn settled(cx: &Context, task: &Task<'_>) -> bool {
    cx.may_suspend() && cx.journal().is_settled(task.waker())
}

/// A handler whose round ends by itself when it waits for answers and nothing else.
pub(crate) fn ending_with_questions(cx: Context, mut work: Answer) -> Answer {
    if !cx.may_suspend() {
        return work;
    }
    Box::pin(poll_fn(move |task| match work.as_mut().poll(task) {
        Poll::Pending if settled(&cx, task) => Poll::Ready(suspend(&cx)),
        polled => polled,
    }))
}

/// Runs a handler until it is done, or waits for answers and nothing else.
pub(super) async fn until_settled(cx: &Context, mut work: Shielded) -> Option<Result<Reply, RpcError>> {
    poll_fn(|task| match Pin::new(&mut work).poll(task) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if settled(cx, task) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Ends a round: the questions go to the client, with everything there is to remember.
pub(super) fn suspend(cx: &Context) -> Result<Reply, RpcError> {
    let call = cx.call_name();
    let (questions, mut memory) = cx.journal().suspend();
    if memory.round > MAX_ROUNDS {
        return Err(RpcError::internal(format!(
            "the handler was not satisfied after {MAX_ROUNDS} rounds of questions"
        )));
    }
    memory.call = call;
    let server = cx.server();
    let sealed = server.state_keys().seal(&server.info().name, cx.0.version, &binding(cx)?, memory)?;
    let mut result = InputRequiredResult::new().request_state(sealed);
    let questions: InputRequests = questions.into_iter().collect();
    result.input_requests = (!questions.is_empty()).then_some(questions);
    Ok(Reply::InputRequired(result))
}

/// Runs the handler a second time before its questions go out, and refuses one that asks or does something else.
pub(super) async fn check_replay(cx: Context, asked: Option<Reply>) -> Result<Reply, RpcError> {
    let again = Call::again(&cx).await;
    let (first, second) = (cx.journal().footprint(), again.journal().footprint());
    match first.difference(&second) {
        None => asked.map_or_else(|| suspend(&cx), Ok),
        Some(difference) => {
            let target = cx.target().unwrap_or_default().to_owned();
            tracing::error!(target, difference, "a handler behaves differently when it is run again");
            Err(RpcError::internal(format!(
                "replay check: {target:?} behaves differently when it is run again with the same input: {difference}"
            )))
        }
    }
}

/// Asks what a handler has returned as questions.
pub(super) fn ask(cx: &Context, need: NeedInput) -> Next {
    match (cx.asking(), need.url_error(cx)) {
        (Asking::Rounds, _) => Next::Done(need.post(cx).and_then(|()| suspend(cx))),
        (_, Some(error)) => Next::Done(Err(error)),
        // A task asks by itself what its handler has returned.
        (Asking::Task, None) => Next::Done(Err(RpcError::internal("the request was answered already"))),
        (Asking::Live(asks), None) => Next::Run(Box::pin(live_rounds(cx.clone(), asks.clone(), need))),
        (Asking::Closed(why), None) => {
            let error = need.check(cx).err().unwrap_or(AskError::NoWay(why));
            Next::Done(Err(error.rpc_error()))
        }
    }
}

impl Context {
    /// Whether the request may be answered by questions.
    pub(crate) fn may_suspend(&self) -> bool {
        matches!(self.asking(), Asking::Rounds)
    }
}
