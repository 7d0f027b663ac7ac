//! The few shapes a response has.

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use toolwire_protocol::{RequestId, RpcError, envelope::write_error};
pub(crate) use toolwire_server::engine::no_room;
use toolwire_server::{Lack, engine::EncodedResponse};

use super::Body;

/// How many headers a map may have room for that is kept for the next request.
const KEPT_HEADERS: usize = 32;

/// Answers that are no longer than this are not charged to anybody: what a request takes in a connection is as much, and
/// a connection has only so many of them.
pub(crate) const LIGHT_BYTES: usize = 1024;

/// Gives a response the headers that its body asks for. Those of a complete response take the place of those of its
/// request, if nobody else has them: the HTTP implementation reads the next request into what is left of a response,
/// and then finds room for it there.
pub(crate) fn complete(request: Option<&mut HeaderMap>, response: &mut Response<Body>) {
    if let Some(headers) = request
        && !response.body().is_stream()
        && headers.capacity() <= KEPT_HEADERS
    {
        headers.clear();
        if !response.headers().is_empty() {
            headers.extend(std::mem::take(response.headers_mut()));
        }
        *response.headers_mut() = std::mem::take(headers);
    }
    if response.body().is_json() {
        response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A status and nothing else.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// One JSON-RPC message.
pub(crate) fn json(status: u16, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// An answer as nearly all of them are. Its media type is left to [`complete`], which has room for it already: headers
/// that are made here and moved there take 500 instructions.
pub(crate) fn answer(body: Bytes) -> Response<Body> {
    Response::new(Body::json(body))
}

/// The answer to a request. One that is refused as busy can be sent again soon.
pub(crate) fn encoded(answer: EncodedResponse) -> Response<Body> {
    if answer.status == StatusCode::OK.as_u16() {
        return self::answer(answer.body);
    }
    let mut response = json(answer.status, answer.body);
    if let Some(lack) = answer.lack {
        // For whoever knows what to say about it.
        response.extensions_mut().insert(*lack);
    }
    if answer.status == StatusCode::TOO_MANY_REQUESTS.as_u16() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// The answer to one legacy request.
pub(crate) fn one(body: Bytes, lack: Option<Box<Lack>>) -> Response<Body> {
    let Some(lack) = lack else { return answer(body) };
    let mut response = json(lack.status(), body);
    response.extensions_mut().insert(*lack);
    response
}

/// The answer to what was not admitted as a whole.
pub(crate) fn lacking(lack: Lack) -> Response<Body> {
    let mut response = json(lack.status(), write_error(None, &lack.rpc_error()));
    response.extensions_mut().insert(lack);
    response
}

/// A JSON-RPC error; `id` is that of the request, where it could be read.
pub(crate) fn error(status: StatusCode, id: Option<&RequestId>, error: &RpcError) -> Response<Body> {
    json(status.as_u16(), write_error(id, error))
}

/// A stream of server-sent events that no proxy may hold back or keep.
pub(crate) fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    let mut response = Response::new(Body::stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use super::*;

    struct Nothing;

    impl Stream for Nothing {
        type Item = Bytes;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
            Poll::Ready(None)
        }
    }

    fn request(headers: usize) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(headers);
        map.insert("mcp-session-id", HeaderValue::from_static("secret"));
        map.append("accept", HeaderValue::from_static("a"));
        map.append("accept", HeaderValue::from_static("b"));
        map
    }

    #[test]
    fn headers_take_the_place_of_others_and_nothing_of_those_is_left() {
        let mut spare = request(16);
        let room = spare.capacity();
        let mut response = json(200, Bytes::from_static(b"{}"));
        response.headers_mut().append("vary", HeaderValue::from_static("x"));
        response.headers_mut().append("vary", HeaderValue::from_static("y"));
        let before = response.headers().clone();
        complete(Some(&mut spare), &mut response);
        assert_eq!(*response.headers(), before);
        assert_eq!(response.headers().capacity(), room);
        assert!(spare.is_empty());
    }

    #[test]
    fn what_is_large_is_not_kept_nor_anything_for_a_stream() {
        let mut spare = request(KEPT_HEADERS * 4);
        let mut response = json(200, Bytes::from_static(b"{}"));
        complete(Some(&mut spare), &mut response);
        assert_eq!((response.headers().len(), spare.len()), (1, 3));
        let mut spare = request(16);
        let mut response = events(Nothing);
        complete(Some(&mut spare), &mut response);
        assert_eq!((response.headers().len(), spare.len()), (3, 3));
    }

    #[test]
    fn an_answer_has_its_media_type_wherever_its_headers_come_from() {
        for mut spare in [None, Some(request(16)), Some(request(KEPT_HEADERS * 4))] {
            let mut response = answer(Bytes::from_static(b"{}"));
            complete(spare.as_mut(), &mut response);
            let mut expected = HeaderMap::new();
            expected.insert(header::CONTENT_TYPE, JSON);
            assert_eq!(*response.headers(), expected);
        }
    }
}
