//! The rounds within a request: answering what the server asks before it goes on.

use std::{future::poll_fn, task::Poll};

use tokio::time::sleep;
use toolwire_protocol::{
    MethodName, RawJson, RpcError,
    wire::{InputRequests, InputRequiredResult, InputResponses},
};
use toolwire_transport::BoxFuture;

use super::{Client, requester::Pace};
use crate::{
    error::{Delivery, Error, ErrorKind},
    settings::{MAX_QUESTIONS_PER_ROUND, pause},
};

impl Client {
    /// Answers what the server asked, or waits when it only asked to be called again.
    pub(super) async fn next_round(
        &self,
        method: &MethodName,
        input: InputRequiredResult,
        round: usize,
        pace: &mut Pace,
    ) -> Result<(Option<InputResponses>, Option<String>), Error> {
        let state = input.request_state;
        match input.input_requests.filter(|requests| !requests.is_empty()) {
            Some(requests) => {
                let responses = self.fulfil(requests).await.map_err(|(key, error)| {
                    let text =
                        format!("{method} needs an answer to {key:?} that this client cannot give: {error}");
                    Error::new(ErrorKind::Unanswerable, Delivery::Rejected, text)
                })?;
                Ok((Some(responses), state))
            }
            None if state.is_none() => {
                Err(Error::invalid_response(method, "it asks for input and does not say for which"))
            }
            None => {
                let pause = pause(u32::try_from(round).unwrap_or(u32::MAX));
                if pause >= pace.total {
                    return Err(Error::timeout(method, pace.total));
                }
                sleep(pause).await;
                pace.total -= pause;
                Ok((None, state))
            }
        }
    }

    /// Answers all questions of a round at the same time. One that cannot be answered ends it.
    async fn fulfil(&self, requests: InputRequests) -> Result<InputResponses, (String, RpcError)> {
        if requests.len() > MAX_QUESTIONS_PER_ROUND {
            let text = format!("{} questions at once are too many", requests.len());
            return Err((String::new(), RpcError::invalid_request(text)));
        }
        let answers = self.answer_each(requests, true).await;
        answers
            .into_iter()
            .map(|(key, answer)| match answer {
                Ok(answer) => Ok((key, answer)),
                Err(error) => Err((key, error)),
            })
            .collect()
    }

    /// Answers questions at the same time; with `strict`, no longer than until one of them cannot be answered.
    pub(crate) async fn answer_each(
        &self,
        requests: InputRequests,
        strict: bool,
    ) -> Vec<(String, Result<RawJson, RpcError>)> {
        let mut open: Vec<Question<'_>> = requests
            .into_iter()
            .map(|(key, request)| Question {
                key,
                state: QuestionState::Open(Box::pin(self.host().fulfil(request))),
            })
            .collect();
        poll_fn(|cx| {
            let mut waiting = false;
            for question in &mut open {
                if let QuestionState::Open(future) = &mut question.state {
                    match future.as_mut().poll(cx) {
                        Poll::Ready(answer) => {
                            let enough = strict && answer.is_err();
                            question.state = QuestionState::Done(answer);
                            if enough {
                                return Poll::Ready(());
                            }
                        }
                        Poll::Pending => waiting = true,
                    }
                }
            }
            if waiting { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        let answered = open.into_iter().filter_map(|question| match question.state {
            QuestionState::Done(answer) => Some((question.key, answer)),
            QuestionState::Open(_) => None,
        });
        answered.collect()
    }
}

struct Question<'a> {
    key: String,
    state: QuestionState<'a>,
}

enum QuestionState<'a> {
    Open(BoxFuture<'a, Result<RawJson, RpcError>>),
    Done(Result<RawJson, RpcError>),
}
