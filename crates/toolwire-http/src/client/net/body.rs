//! The body of a response, and the connection that it keeps busy.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1::SendRequest,
};
use tokio::time::timeout;

use super::{error::NetError, pool::Pool};

/// A response whose body may still be coming.
pub(crate) type Response = http::Response<Body>;

/// How many empty pieces are passed over before others get their turn.
const MAX_EMPTY: usize = 32;

/// How many bytes are read to be able to use a connection again.
const MAX_REMAINDER_BYTES: usize = 64 * 1024;

/// How long the rest of a response may take before its connection is given up.
const REMAINDER_PATIENCE: Duration = Duration::from_secs(1);

/// What is still to come of a response. Dropping it before the end ends its connection, or its stream in HTTP/2.
pub(crate) struct Body {
    incoming: Incoming,
    lease: Option<Lease>,
}

/// What is given back when the body has come.
pub(super) enum Lease {
    Http1(SendRequest<Full<Bytes>>, Pool),
    Http2(#[expect(dead_code, reason = "it is counted")] Arc<()>),
}

impl Body {
    pub(super) fn new(incoming: Incoming, lease: Option<Lease>) -> Self {
        let mut body = Self { incoming, lease };
        body.return_if_over();
        body
    }

    /// How many bytes are still to come, if the server has said so.
    pub(crate) fn length(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// Whether everything has come.
    pub(crate) fn is_over(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// Waits for the next piece; `None` at the end.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken nothing.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, NetError>> {
        for _ in 0..MAX_EMPTY {
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers say nothing that anybody here would ask for.
                    if let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) {
                        self.return_if_over();
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Some(Err(error)) => {
                    self.lease = None;
                    return Poll::Ready(Err(error.into()));
                }
                None => {
                    self.give_back();
                    return Poll::Ready(Ok(None));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads the rest, if there is little of it, so that the connection can be used again. What has not come yet is
    /// waited for in the background.
    pub(crate) fn discard(mut self) {
        let mut left = MAX_REMAINDER_BYTES;
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            match self.poll_chunk(&mut cx) {
                Poll::Ready(Ok(Some(chunk))) if chunk.len() < left => left -= chunk.len(),
                Poll::Ready(_) => return,
                Poll::Pending => break,
            }
        }
        tokio::spawn(async move {
            let reading = async {
                while let Ok(Some(chunk)) = self.chunk().await {
                    left = left.saturating_sub(chunk.len());
                    if left == 0 {
                        break;
                    }
                }
            };
            // A server that takes its time loses the connection.
            let _ = timeout(REMAINDER_PATIENCE, reading).await;
        });
    }

    fn return_if_over(&mut self) {
        if self.incoming.is_end_stream() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        if let Some(Lease::Http1(sender, pool)) = self.lease.take() {
            pool.take_back(sender);
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
