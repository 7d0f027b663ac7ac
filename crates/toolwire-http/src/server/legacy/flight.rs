//! Running a request to its answer, whether or not anybody is still connected.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use tokio::sync::OwnedSemaphorePermit;
use toolwire_protocol::RpcError;
use toolwire_server::engine::{Answered, Call};
use toolwire_transport::BoxFuture;

use super::{post::Post, session::Berth};
use crate::server::Body;

/// A request and the room it takes.
pub(crate) struct Flight {
    pub(super) call: Call,
    pub(super) post: Arc<Post>,
    /// Its place in its session; without one nobody can cancel it.
    pub(super) berth: Option<Berth>,
    /// Its place among all that run.
    pub(super) _room: OwnedSemaphorePermit,
    /// How long it may take.
    pub(super) time: Duration,
}

/// What is left to send when the handler is done: its last messages, then the answer.
struct Landing {
    messages: Vec<Bytes>,
    answer: Bytes,
}

impl Flight {
    /// Sees the request through to its answer, which goes to its POST.
    pub(super) async fn start(mut self) {
        let first = poll_fn(|task| Poll::Ready(self.poll_first(task))).await;
        self.go_on(first).await;
    }

    /// Most are done after this.
    fn poll_first(&mut self, task: &mut Context<'_>) -> Poll<Landing> {
        Pin::new(&mut self.call).poll(task).map(|answered| self.landing(answered))
    }

    fn landing(&self, answered: Answered) -> Landing {
        Landing { messages: self.call.last_messages(), answer: answered.body }
    }

    /// Those that are not done get a task, which does not depend on the connection.
    async fn go_on(self, first: Poll<Landing>) {
        match first {
            Poll::Ready(landing) if landing.messages.is_empty() => self.land(landing).await,
            // Its messages may have to wait for the connection, which is not there yet.
            Poll::Ready(landing) => {
                tokio::spawn(self.land(landing));
            }
            Poll::Pending => {
                tokio::spawn(self.fly());
            }
        }
    }

    async fn fly(mut self) {
        let berth = self.berth.take();
        let cancelled = async {
            match &berth {
                Some(berth) => berth.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancelled => {
                self.call.cancel();
                self.post.withdraw().await;
            }
            answered = work(&mut self.call, &self.post) => {
                let landing = self.landing(answered);
                self.land(landing).await;
            }
            () = tokio::time::sleep(self.time) => self.overdue().await,
        }
        drop(berth);
    }

    /// Sends what is left to say, and the answer.
    async fn land(self, landing: Landing) {
        for message in landing.messages {
            self.post.send(message).await;
        }
        self.post.answer(landing.answer).await;
    }

    async fn overdue(self) {
        tracing::warn!(request = ?self.call.context(), "a handler took too long and was stopped");
        let limit = self.time.as_secs_f64();
        let answered = self.call.fail(RpcError::internal(format!("the handler took longer than {limit} s")));
        self.post.answer(answered.body).await;
    }
}

/// A request that was posted, on its way to its response.
pub(crate) enum Posted {
    /// A handler is to work at it.
    Flight(Flight),
    /// It needed none.
    Answered(Arc<Post>, Bytes),
    /// It takes longer, or its response is a stream. Boxed, because all requests would have room for this.
    Waiting(BoxFuture<'static, Response<Body>>),
    /// There is a response.
    Done,
}

impl Posted {
    /// The response, if it is there at once.
    fn at_once(self, task: &mut Context<'_>) -> Result<Response<Body>, Self> {
        match self {
            Self::Flight(mut flight) => {
                let first = match flight.poll_first(task) {
                    Poll::Ready(Landing { messages, answer }) if messages.is_empty() => {
                        match flight.post.answer_alone(answer) {
                            Ok(response) => return Ok(response),
                            Err(answer) => Poll::Ready(Landing { messages, answer }),
                        }
                    }
                    first => first,
                };
                Err(Self::Waiting(Box::pin(async move {
                    let post = Arc::clone(&flight.post);
                    flight.go_on(first).await;
                    post.response().await
                })))
            }
            Self::Answered(post, answer) => post.answer_alone(answer).map_err(|answer| {
                Self::Waiting(Box::pin(async move {
                    post.answer(answer).await;
                    post.response().await
                }))
            }),
            other => Err(other),
        }
    }
}

impl Future for Posted {
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

/// Drives the handler, and passes on what it sends before its answer.
async fn work(call: &mut Call, post: &Post) -> Answered {
    loop {
        let message = call.take_message();
        let message = tokio::select! {
            biased;
            answered = &mut *call => return answered,
            Some(message) = message => message,
        };
        post.send(message).await;
    }
}
