//! Telling browsers that pages of other origins may read the responses.
//!
//! Only what passed the gate comes here, so the origin of a request is an allowed one.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::{Body, response};

/// What pages may read of a response besides its body.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("mcp-session-id, mcp-protocol-version, www-authenticate, dpop-nonce");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// How long a browser may remember the answer, in seconds; none remembers it for longer than this.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Answers the question that a browser asks before the request proper.
pub(crate) fn preflight(request: &HeaderMap) -> Response<Body> {
    let mut response = response::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // The headers that mirror arguments have any name, and the page is trusted: it may send what it wants.
    if let Some(wanted) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    response
}

/// Whether this is such a question.
pub(crate) fn is_preflight(method: &http::Method, headers: &HeaderMap) -> bool {
    method == http::Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Lets the page at `origin` read a response.
pub(crate) fn allow(origin: Option<HeaderValue>, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    // Without an origin the answer would be another one, and caches have to know.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
