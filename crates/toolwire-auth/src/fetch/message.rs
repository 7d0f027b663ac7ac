//! One request and one response, as values: what the steps of the chain make and read.

use std::{error, fmt};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::Endpoint;

/// A request that a step wants sent.
#[derive(Clone)]
pub struct Request {
    /// `GET` or `POST`.
    pub method: Method,
    /// Where to.
    pub url: Endpoint,
    /// All headers that matter to the step. `Content-Length` and `Host` are the sender's business.
    pub headers: HeaderMap,
    /// The body; empty for `GET`.
    pub body: Bytes,
    /// Who named the address, and so which addresses it may lead to.
    pub named_by: NamedBy,
}

/// Who said that an address is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// A peer: the address may not lie further inside than the server that leads to it.
    Peer,
    /// The application itself, which may name any address.
    Application,
}

impl Request {
    /// Asks for a JSON document.
    pub fn get(url: Endpoint, named_by: NamedBy) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        Self { method: Method::GET, url, headers, body: Bytes::new(), named_by }
    }

    /// Sends a form, and wants JSON back.
    pub fn form<'a>(
        url: Endpoint,
        named_by: NamedBy,
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Self::post(url, named_by, "application/x-www-form-urlencoded", body.into())
    }

    /// Sends JSON, and wants JSON back.
    pub fn json(url: Endpoint, named_by: NamedBy, body: &serde_json::Value) -> Self {
        Self::post(url, named_by, "application/json", body.to_string().into())
    }

    fn post(url: Endpoint, named_by: NamedBy, kind: &'static str, body: Bytes) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Self { method: Method::POST, url, headers, body, named_by }
    }
}

/// Method and address alone: headers and body of a token request are secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method, self.url)
    }
}

/// The whole answer to a request.
#[derive(Clone)]
pub struct Response {
    /// Its status. A redirect that was not followed is an answer like any other.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, of bounded length.
    pub body: Bytes,
}

impl Response {
    /// An answer with a JSON body.
    pub fn json(status: StatusCode, body: &serde_json::Value) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { status, headers, body: body.to_string().into() }
    }

    /// An answer without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Bytes::new() }
    }
}

/// Status and length alone: the body of a token answer is a secret.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status.as_u16(), self.body.len())
    }
}

/// A request to which no answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    /// What kind of failure it was.
    pub kind: FetchErrorKind,
    /// What happened, for people; without query and without anything of a body.
    pub detail: String,
}

/// Why no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The address may not be reached from here: it leads further inside than whoever named it.
    Forbidden,
    /// It took too long.
    Timeout,
    /// The answer was too large.
    TooLarge,
    /// No connection, a broken one, or something that is not HTTP.
    Network,
}

impl FetchError {
    /// A failure and its description.
    pub fn new(kind: FetchErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl error::Error for FetchError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_neither_query_nor_body() {
        let url = Endpoint::parse("https://a.example/token?marked").unwrap();
        let request = Request::form(url, NamedBy::Peer, [("code", "marked")]);
        assert_eq!(format!("{request:?}"), "Request(POST https://a.example/token)");
        assert_eq!(&request.body[..], b"code=marked");
        let response = Response::json(StatusCode::OK, &serde_json::json!({"access_token": "marked"}));
        assert_eq!(format!("{response:?}"), "Response(200, 25 bytes)");
    }
}
