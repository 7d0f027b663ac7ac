//! Requests that come after the server was shut down: only what goes on already may come to its end.

use http::{Method, Response, StatusCode, request::Parts};
use toolwire_protocol::{RequestId, RpcError, headers::LAST_EVENT_ID};

use super::{Body, response};

/// Among the extensions of requests that come after the server was shut down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late;

/// Whether a request is one of those.
pub(crate) fn is_late(parts: &Parts) -> bool {
    parts.extensions.get::<Late>().is_some()
}

/// Whether a request may be about something that goes on already: a stream to be resumed, an answer to a question.
pub(crate) fn comes_back(parts: &Parts) -> bool {
    match parts.method {
        Method::GET => parts.headers.contains_key(LAST_EVENT_ID),
        Method::POST | Method::DELETE => true,
        _ => false,
    }
}

/// Nothing new is taken any more.
pub(crate) fn leaving(id: Option<&RequestId>) -> Response<Body> {
    let error = RpcError::internal("the server is shutting down; try again later");
    response::error(StatusCode::SERVICE_UNAVAILABLE, id, &error)
}
