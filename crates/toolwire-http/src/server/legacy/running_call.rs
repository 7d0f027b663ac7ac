//! Running a request to its answer, whether or not anybody is still connected.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use toolwire_protocol::RpcError;
use toolwire_server::engine::{Call, EncodedResponse, Outcome};
use toolwire_transport::BoxFuture;

use super::{post_response::PostResponse, session::SessionSlot};
use crate::server::{Body, response};

/// A call and the POST that waits for its answer.
pub(crate) struct RunningCall {
    pub(super) call: Call,
    pub(super) post: Arc<PostResponse>,
    /// Its place in its session; without one it ends with its response.
    pub(super) slot: Option<SessionSlot>,
}

/// What is left to send when a call is over: its last messages, then the answer, unless it was cancelled.
struct Finished {
    messages: Vec<Bytes>,
    answer: Option<EncodedResponse>,
}

impl RunningCall {
    /// Sees the request through to its answer, which goes to its POST.
    pub(super) async fn start(mut self) {
        let first = poll_fn(|task| Poll::Ready(self.poll_first(task))).await;
        self.go_on(first).await;
    }

    /// Most are done after this.
    fn poll_first(&mut self, task: &mut Context<'_>) -> Poll<Finished> {
        let outcome = std::task::ready!(Pin::new(&mut self.call).poll(task));
        Poll::Ready(Finished { messages: self.call.last_messages(), answer: answer(outcome) })
    }

    /// Those that are not done get a task, which does not depend on the connection if there is a session to come
    /// back to.
    async fn go_on(self, first: Poll<Finished>) {
        let (post, resumable) = (Arc::clone(&self.post), self.slot.is_some());
        let task = match first {
            Poll::Ready(finished) if finished.messages.is_empty() => return self.finish(finished).await,
            // Its messages may have to wait for the connection, which is not there yet.
            Poll::Ready(finished) => tokio::spawn(self.finish(finished)),
            Poll::Pending => tokio::spawn(self.run()),
        };
        if !resumable {
            post.own(task.into());
        }
    }

    /// Drives the call and, beside it, sends what it says. A client that reads slowly holds up the messages, never
    /// the call: that has a deadline.
    async fn run(mut self) {
        let messages = self.call.messages();
        let (call, post) = (&mut self.call, &self.post);
        let drive = async {
            let outcome = (&mut *call).await;
            match &outcome {
                Outcome::Answered(_) => call.close_messages(),
                Outcome::Cancelled => drop(call.last_messages()),
            }
            outcome
        };
        let send = async {
            while let Some(message) = messages.next().await {
                post.send(message).await;
            }
        };
        let (outcome, ()) = tokio::join!(drive, send);
        self.finish(Finished { messages: Vec::new(), answer: answer(outcome) }).await;
    }

    /// Sends what is left to say, and the answer.
    async fn finish(self, finished: Finished) {
        for message in finished.messages {
            self.post.send(message).await;
        }
        match finished.answer {
            Some(answer) => self.post.answer_call(answer).await,
            None => self.post.withdraw().await,
        }
    }
}

fn answer(outcome: Outcome) -> Option<EncodedResponse> {
    match outcome {
        Outcome::Answered(answer) => Some(answer),
        Outcome::Cancelled => None,
    }
}

/// A request that was posted, on its way to its response.
pub(crate) enum PendingResponse {
    /// A handler is to work at it.
    Call(RunningCall),
    /// It takes longer, or its response is a stream. Boxed, because all requests would have room for this.
    Waiting(BoxFuture<'static, Response<Body>>),
    /// There is a response.
    Done,
}

impl PendingResponse {
    /// The response to an answer that is acknowledged when it is stored.
    pub(crate) fn stored(storing: BoxFuture<'static, Result<(), RpcError>>) -> Self {
        Self::Waiting(Box::pin(async move {
            match storing.await {
                Ok(()) => response::empty(StatusCode::ACCEPTED),
                Err(error) => response::error(StatusCode::SERVICE_UNAVAILABLE, None, &error),
            }
        }))
    }

    /// The response, if it is there at once.
    #[expect(clippy::result_large_err, reason = "it goes on with what it gets back")]
    fn at_once(self, task: &mut Context<'_>) -> Result<Response<Body>, Self> {
        let Self::Call(mut running) = self else { return Err(self) };
        let first = match running.poll_first(task) {
            Poll::Ready(Finished { messages, answer: Some(answer) }) if messages.is_empty() => {
                match running.post.answer_alone(answer) {
                    Ok(response) => return Ok(response),
                    Err(answer) => Poll::Ready(Finished { messages, answer: Some(answer) }),
                }
            }
            first => first,
        };
        Err(Self::Waiting(Box::pin(async move {
            let post = Arc::clone(&running.post);
            running.go_on(first).await;
            post.response().await
        })))
    }
}

impl Future for PendingResponse {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Response<Body>> {
        if let Self::Waiting(response) = &mut *self {
            return response.as_mut().poll(task);
        }
        match std::mem::replace(&mut *self, Self::Done).at_once(task) {
            Ok(response) => Poll::Ready(response),
            Err(Self::Done) => Poll::Pending,
            Err(later) => {
                *self = later;
                self.poll(task)
            }
        }
    }
}
