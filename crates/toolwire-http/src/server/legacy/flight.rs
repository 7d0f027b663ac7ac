//! Running a request to its answer, whether or not anybody is still connected.

use std::{future::Future as _, pin::Pin, sync::Arc, task::Poll, time::Duration};

use tokio::sync::OwnedSemaphorePermit;
use toolwire_protocol::RpcError;
use toolwire_server::engine::{Answered, Call};

use super::{post::Post, session::Berth};

/// A request and the room it takes.
pub(super) struct Flight {
    pub(super) call: Call,
    pub(super) post: Arc<Post>,
    /// Its place in its session; without one nobody can cancel it.
    pub(super) berth: Option<Berth>,
    /// Its place among all that run.
    pub(super) _room: OwnedSemaphorePermit,
    /// How long it may take.
    pub(super) time: Duration,
}

impl Flight {
    /// Sees the request through. Most are done at their first poll and need no task; the others get one, which
    /// does not depend on the connection.
    pub(super) async fn start(mut self) {
        match std::future::poll_fn(|task| Poll::Ready(Pin::new(&mut self.call).poll(task))).await {
            Poll::Ready(answered) if !self.call.has_messages() => self.land(answered).await,
            // Its messages may have to wait for the connection, which is not there yet.
            Poll::Ready(answered) => {
                tokio::spawn(self.land(answered));
            }
            Poll::Pending => {
                tokio::spawn(self.fly());
            }
        }
    }

    async fn fly(mut self) {
        let mut berth = self.berth.take();
        let cancelled = async {
            match &mut berth {
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
            answered = work(&mut self.call, &self.post) => self.land(answered).await,
            () = tokio::time::sleep(self.time) => self.overdue().await,
        }
        drop(berth);
    }

    /// Sends what is left to say, and the answer.
    async fn land(self, answered: Answered) {
        for message in self.call.last_messages() {
            Box::pin(self.post.send(message)).await;
        }
        self.post.answer(answered.body).await;
    }

    async fn overdue(self) {
        tracing::warn!(request = ?self.call.context(), "a handler took too long and was stopped");
        let limit = self.time.as_secs_f64();
        let answered = self.call.fail(RpcError::internal(format!("the handler took longer than {limit} s")));
        self.post.answer(answered.body).await;
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
