//! What a connection does with each request: it notes that it is open, until its response has been taken.

use std::{
    convert::Infallible,
    future::Future,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{body::Incoming, rt::Executor};

use crate::server::{
    Body, HttpService, PeerAddr,
    drain::Late,
    io::{Activity, OpenRequest},
};

/// What all requests of a connection have in common.
pub(super) struct Exchanges {
    pub(super) service: HttpService,
    /// The address at which they come in.
    pub(super) local: Option<IpAddr>,
    /// The address from which they come.
    pub(super) peer: Option<PeerAddr>,
    /// Whether they come after the server was shut down.
    pub(super) late: bool,
    pub(super) activity: Activity,
}

impl Exchanges {
    /// Serves a request of HTTP/1.
    pub(super) fn one(&self, request: Request<Incoming>) -> Answering {
        let open = self.activity.request();
        self.start(open, request.map(|body| RequestBody { body, activity: self.activity.clone() }))
    }

    /// Serves a request of HTTP/2.
    pub(super) fn two(&self, request: Request<Incoming>) -> Answering {
        self.start(self.activity.stream(), request)
    }

    fn start<B>(&self, open: OpenRequest, mut request: Request<B>) -> Answering
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        if self.late {
            request.extensions_mut().insert(Late);
        }
        Answering { answer: self.service.call_at(self.local, request), open: Some(open) }
    }
}

/// A request being answered. Every response keeps the request open until it has been taken, refusals as well.
pub(super) struct Answering {
    answer: Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>,
    open: Option<OpenRequest>,
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(mut response) = ready!(self.answer.as_mut().poll(task));
        if let Some(open) = self.open.take() {
            response.body_mut().hold(open);
        }
        Poll::Ready(Ok(response))
    }
}

/// The body of a request of HTTP/1, which notices that the client has closed its side in the middle of it.
pub(super) struct RequestBody {
    body: Incoming,
    activity: Activity,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(task);
        if frame.is_pending() && self.activity.body_waits() {
            // The connection is polled by the same task, and is told of the end now.
            task.waker().wake_by_ref();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Spawns the streams of an HTTP/2 connection, so that each can be ended alone: a stream whose task is gone is reset.
#[derive(Clone)]
pub(super) struct StreamTasks(Activity);

/// Ends the streams when it is dropped.
pub(super) struct StreamOwner(Activity);

impl StreamTasks {
    pub(super) fn new(activity: Activity) -> Self {
        Self(activity)
    }

    pub(super) fn owner(&self) -> StreamOwner {
        StreamOwner(self.0.clone())
    }
}

impl<F> Executor<F> for StreamTasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    /// Comes right after the call of the service for the same request.
    fn execute(&self, stream: F) {
        self.0.started(tokio::spawn(stream).abort_handle());
    }
}

impl Drop for StreamOwner {
    fn drop(&mut self) {
        self.0.end_streams();
    }
}
