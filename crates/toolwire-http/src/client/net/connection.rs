//! One connection that requests can be sent over, in either version of HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::OwnedSemaphorePermit;

use super::{dial::Dialed, error::NetError, origin::Target, tcp::KEEP_ALIVE};

/// A request on its way out. All of its body is at hand, so that it can be sent again if it was not sent.
pub(super) type Outgoing = Request<Full<Bytes>>;

/// How much is taken from the other side of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The largest head of a response, in bytes.
    pub(crate) header_bytes: usize,
    /// How many connections there are at once.
    pub(crate) connections: usize,
}

/// A connection.
pub(super) enum Connection {
    /// It belongs to one request at a time.
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(Http2),
}

/// A connection that many requests share.
#[derive(Clone)]
pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    /// Held by everybody who uses it.
    users: Arc<()>,
}

impl Connection {
    /// Begins to speak HTTP. The connection is driven by a task that ends when nobody has a part in it any more, and
    /// keeps the `place` of the connection until then.
    pub(super) async fn open(
        dialed: Dialed,
        bounds: Bounds,
        place: OwnedSemaphorePermit,
    ) -> Result<Self, NetError> {
        let io = TokioIo::new(dialed.stream);
        if dialed.http2 {
            let header_bytes = u32::try_from(bounds.header_bytes).unwrap_or(u32::MAX);
            let (sender, driving) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(KEEP_ALIVE)
                .max_header_list_size(header_bytes)
                .handshake(io)
                .await?;
            tokio::spawn(async move {
                let _place = place;
                if let Err(error) = driving.await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
            return Ok(Self::Http2(Http2 { sender, users: Arc::new(()) }));
        }
        let (sender, driving) =
            http1::Builder::new().max_header_size(bounds.header_bytes).handshake(io).await?;
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = driving.with_upgrades().await {
                tracing::debug!(%error, "a connection ended");
            }
        });
        Ok(Self::Http1(sender))
    }

    pub(super) const fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Writes the address into a request in the form that this connection needs.
    pub(super) fn address(&self, request: &mut Outgoing, target: &Target, for_proxy: bool) {
        let uri = match self {
            Self::Http1(_) if !for_proxy => &target.path,
            _ => &target.absolute,
        };
        uri.clone_into(request.uri_mut());
        if self.is_http2() {
            // It is a part of the address there.
            request.headers_mut().remove(header::HOST);
        }
    }

    /// Sends a request and waits until its response begins.
    pub(super) async fn send(
        &mut self,
        request: Outgoing,
    ) -> Result<Response<Incoming>, TrySendError<Outgoing>> {
        match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(shared) => shared.sender.try_send_request(request).await,
        }
    }
}

impl Http2 {
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether nobody but the pool has it.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.users) == 1
    }

    pub(super) fn users(&self) -> Arc<()> {
        Arc::clone(&self.users)
    }
}

/// Whether the server says that it has not looked at this request, so that it can be sent again.
#[cfg(feature = "client-tls")]
pub(super) fn was_turned_away(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if let Some(error) = next.downcast_ref::<h2::Error>() {
            // The requests that hear of a GOAWAY are those that came too late for it.
            let left = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (left || refused);
        }
        cause = next.source();
    }
    false
}

#[cfg(not(feature = "client-tls"))]
pub(super) const fn was_turned_away(_error: &hyper::Error) -> bool {
    // Only HTTP/2 can say so, and without TLS it is not spoken.
    false
}
