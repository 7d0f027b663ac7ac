//! Reading a request: its media types, then its body, within the limits.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::Body as HttpBody;
use toolwire_protocol::RpcError;
use toolwire_transport::ledger::{Charge, LimitReached};

use super::{Body, edge::Head, response};

/// An error of somebody else's body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What the specification has clients send, letter for letter; other ways to say it take longer to read.
const USUAL_ACCEPT: &[u8] = b"application/json, text/event-stream";

/// The only media type of a request.
const JSON: &str = "application/json";

/// Which of the two forms of an answer the client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    MediaType,
    Encoding,
    NotAcceptable,
    TooLarge { limit: usize },
    TooSlow { limit: Duration },
    Busy(LimitReached),
    Broken,
}

impl Accepts {
    /// Reads `Accept`. Without one, anything goes.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::ACCEPT).iter().peekable();
        if values.peek().is_none() {
            return Self { json: true, events: true };
        }
        let mut accepts = Self { json: false, events: false };
        for value in values {
            accepts.add(value.to_str().unwrap_or_default());
        }
        accepts
    }

    /// Adds what one `Accept` header allows.
    fn add(&mut self, value: &str) {
        for range in value.split(',') {
            let mut parameters = range.split(';').map(str::trim);
            let media = parameters.next().unwrap_or_default();
            let is_one_of = |names: [&str; 3]| names.iter().any(|name| media.eq_ignore_ascii_case(name));
            let refused = parameters.any(|parameter| {
                let quality = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
                quality.and_then(|quality| quality.parse::<f32>().ok()) == Some(0.0)
            });
            if !refused {
                self.json |= is_one_of(["*/*", "application/*", "application/json"]);
                self.events |= is_one_of(["*/*", "text/*", "text/event-stream"]);
            }
        }
    }
}

/// Whether a media type is the one of JSON, in whatever letters and with whatever parameters.
fn is_json(content_type: &str) -> bool {
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

/// Checks the media types of a POST.
pub(crate) fn media_types(head: &Head<'_>, headers: &HeaderMap) -> Result<Accepts, Unreadable> {
    let usual = head.content_type.only().is_some_and(|value| value.as_bytes() == JSON.as_bytes());
    if !usual && !is_json(head.content_type.text().unwrap_or_default()) {
        return Err(Unreadable::MediaType);
    }
    if head.content_encoding.text().is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(Unreadable::Encoding);
    }
    let accepts = match head.accept.only() {
        Some(value) if value.as_bytes() == USUAL_ACCEPT => Accepts { json: true, events: true },
        _ => Accepts::of(headers),
    };
    if accepts.json || accepts.events { Ok(accepts) } else { Err(Unreadable::NotAcceptable) }
}

/// Reads a body to its end, and charges its bytes as they come. One that says beforehand that it is too large is not read
/// at all; for the rest an announcement is worth nothing, or it would take room that others need.
pub(crate) async fn body<B>(
    body: B,
    limit: usize,
    time: Duration,
    charge: &mut Charge,
) -> Result<Bytes, Unreadable>
where
    B: HttpBody,
    B::Error: Into<BoxError>,
{
    if !usize::try_from(body.size_hint().lower()).is_ok_and(|announced| announced <= limit) {
        return Err(Unreadable::TooLarge { limit });
    }
    let mut reading = pin!(collect(body, limit, charge));
    // Most bodies come along with their headers, and need no clock.
    if let Poll::Ready(read) = poll_fn(|task| Poll::Ready(reading.as_mut().poll(task))).await {
        return read;
    }
    // Boxed, because that is rare, and every request would have room for the clock.
    Box::pin(tokio::time::timeout(time, reading)).await.unwrap_or(Err(Unreadable::TooSlow { limit: time }))
}

async fn collect<B>(body: B, limit: usize, charge: &mut Charge) -> Result<Bytes, Unreadable>
where
    B: HttpBody,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    // Whoever knows that this was all need not be asked for one more frame.
    while !body.is_end_stream() {
        // The frame is taken apart inside the poll, so that nothing of another type lives across an await.
        let next = poll_fn(|task| {
            body.as_mut().poll_frame(task).map(|frame| {
                Some(frame?.map(|frame| match frame.into_data() {
                    Ok(mut data) => data.copy_to_bytes(data.remaining()),
                    Err(_trailers) => Bytes::new(),
                }))
            })
        });
        let data = match next.await {
            None => break,
            Some(Err(error)) => {
                let error: BoxError = error.into();
                tracing::debug!(%error, "the body of a request broke off");
                return Err(Unreadable::Broken);
            }
            Some(Ok(data)) => data,
        };
        let length = first.len().max(whole.len()) + data.len();
        if length > limit {
            return Err(Unreadable::TooLarge { limit });
        }
        charge.grow(data.len()).map_err(Unreadable::Busy)?;
        // A body that comes in one piece, as most do, is not copied.
        if first.is_empty() && whole.is_empty() {
            first = data;
            continue;
        }
        if whole.is_empty() {
            whole.reserve(length);
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&data);
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// Reads a body and drops it, up to `limit` bytes.
pub(crate) async fn discard<B>(body: B, limit: usize)
where
    B: HttpBody,
{
    let mut body = pin!(body);
    let mut length = 0;
    while length < limit && !body.is_end_stream() {
        let next = poll_fn(|task| {
            body.as_mut()
                .poll_frame(task)
                .map(|frame| frame?.ok().map(|frame| frame.into_data().map_or(0, |data| data.remaining())))
        });
        let Some(bytes) = next.await else { return };
        length += bytes;
    }
}

impl Unreadable {
    pub(crate) fn response(&self) -> http::Response<Body> {
        let (status, why) = match self {
            Self::MediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json".to_owned())
            }
            Self::Encoding => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "a body must not be compressed".to_owned())
            }
            Self::NotAcceptable => (
                StatusCode::NOT_ACCEPTABLE,
                "Accept must allow application/json and text/event-stream".to_owned(),
            ),
            Self::TooLarge { limit } => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("a body may have at most {limit} bytes"))
            }
            Self::TooSlow { limit } => (
                StatusCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {} s", limit.as_secs_f64()),
            ),
            Self::Busy(reached) => {
                (StatusCode::TOO_MANY_REQUESTS, format!("the server is busy: {reached}; try again later"))
            }
            Self::Broken => (StatusCode::BAD_REQUEST, "the body broke off".to_owned()),
        };
        response::error(status, None, &RpcError::invalid_request(why))
    }
}

#[cfg(test)]
mod tests;
