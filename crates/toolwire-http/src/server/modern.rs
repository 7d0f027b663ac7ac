//! A modern request: it stands alone, and closing its response cancels it.
//!
//! The response drives the call as long as it is neither answered nor says anything: most requests are answered at
//! once, as plain JSON with a status of its own, and need no task. With the first message, or when it takes long, the
//! response becomes a stream, and the call goes on in a task that ends with the body. A client that reads nothing
//! holds up its own messages and nothing else: neither the call's place nor its deadline depends on the body.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::{Response, StatusCode};
use tokio::time::Sleep;
use toolwire_server::engine::{Call, EncodedResponse, Messages, Outcome};
use toolwire_transport::internal::AbortOnDrop;

use super::{
    Body,
    body::{KeepAlive, event},
    read::Accepts,
    response,
};

/// A call on its way to its response. What happens first decides whether that is JSON or a stream.
pub(crate) struct Responding {
    /// `None` once there is a response.
    call: Option<Call>,
    accepts: Accepts,
    keep_alive: Duration,
    /// Set at the first poll that is not the last one: most requests need no clock.
    idle: Option<Pin<Box<Sleep>>>,
}

impl Responding {
    pub(crate) fn new(call: Call, accepts: Accepts, keep_alive: Duration) -> Self {
        Self { call: Some(call), accepts, keep_alive, idle: None }
    }

    /// The response to a call that is over.
    fn finished(&self, call: &Call, outcome: Outcome) -> Response<Body> {
        // Without an answer there is nobody left to read this.
        let Outcome::Answered(answer) = outcome else { return response::empty(StatusCode::ACCEPTED) };
        let before = call.last_messages();
        let Accepts { json, events } = self.accepts;
        // A stream cannot have a status of its own any more, so an error that has one stays JSON.
        if answer.status != 200 || !events || (json && before.is_empty()) {
            return response::encoded(answer);
        }
        let weight = answer.body.len() + before.iter().map(Bytes::len).sum::<usize>();
        let mut response = response::events(Finished::new(before, answer));
        response.body_mut().set_waiting(weight);
        response
    }

    /// Whether the call has sent something, or taken so long that the client wants to hear from us.
    fn poll_stream(&mut self, call: &Call, task: &mut Context<'_>) -> Poll<()> {
        if !self.accepts.events {
            // A client that takes no stream gets its answer alone.
            return Poll::Pending;
        }
        if call.poll_sent(task).is_ready() {
            return Poll::Ready(());
        }
        let keep_alive = self.keep_alive;
        self.idle.get_or_insert_with(|| Box::pin(tokio::time::sleep(keep_alive))).as_mut().poll(task)
    }
}

impl Future for Responding {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Response<Body>> {
        let Some(mut call) = self.call.take() else { return Poll::Pending };
        if let Poll::Ready(outcome) = Pin::new(&mut call).poll(task) {
            return Poll::Ready(self.finished(&call, outcome));
        }
        if self.poll_stream(&call, task).is_ready() {
            let events = Events { messages: call.messages(), _call: tokio::spawn(call.run()).into() };
            return Poll::Ready(response::events(KeepAlive::new(events, self.keep_alive)));
        }
        self.call = Some(call);
        Poll::Pending
    }
}

/// A call that goes on, as a stream of events: its messages, then its answer, then the end.
struct Events {
    messages: Messages,
    _call: AbortOnDrop<()>,
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.messages.poll_next(task).map(|message| message.map(|message| event(None, &message)))
    }
}

/// A call that is over, as a stream of events.
struct Finished(std::vec::IntoIter<Bytes>);

impl Finished {
    fn new(mut messages: Vec<Bytes>, answer: EncodedResponse) -> Self {
        messages.push(answer.body);
        Self(messages.into_iter())
    }
}

impl Stream for Finished {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(self.0.next().map(|message| event(None, &message)))
    }
}
