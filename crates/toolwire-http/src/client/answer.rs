//! What a response turns out to be.

use std::{future::poll_fn, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use tokio::time::timeout;
use toolwire_client::{
    Delivery,
    link::{LinkError, LinkErrorKind},
};
use toolwire_protocol::{Message, RpcError};

use super::{
    events::EventStream,
    fault,
    net::{Body, Response, Shown},
    settings::{ERROR_PATIENCE, HttpLimits, MAX_ERROR_BYTES},
};

/// A response of success.
#[derive(Debug)]
pub(super) enum Answer {
    /// One piece of JSON.
    Message(Bytes),
    /// A stream of events.
    Events(Box<EventStream>),
    /// This status, and nothing that the protocol knows.
    Nothing(StatusCode),
}

impl Answer {
    /// Reads as much of a response as is needed to know what it is; a status that is not a success is an error.
    pub(super) async fn of(response: Response, limits: &HttpLimits) -> Result<Self, LinkError> {
        let status = response.status();
        if !status.is_success() {
            return Err(Box::pin(Self::refusal(response)).await);
        }
        let media = Media::of(response.headers());
        if !matches!(media, Media::Other) {
            plain(response.headers())?;
        }
        let mut body = response.into_body();
        match media {
            Media::Events => Ok(Self::Events(Box::new(EventStream::new(body, limits.event_bytes)))),
            Media::Json => {
                let body = read(&mut body, limits.response_bytes, limits.response_timeout).await?;
                // The media type of nothing means nothing.
                Ok(if body.is_empty() { Self::Nothing(status) } else { Self::Message(body) })
            }
            Media::Other => {
                body.discard();
                Ok(Self::Nothing(status))
            }
        }
    }

    /// The event stream that was asked for. Anything else is not read.
    pub(super) async fn stream_of(
        response: Response,
        limits: &HttpLimits,
    ) -> Result<Box<EventStream>, LinkError> {
        if !response.status().is_success() {
            return Err(Self::refusal(response).await);
        }
        plain(response.headers())?;
        match Media::of(response.headers()) {
            Media::Events => Ok(Box::new(EventStream::new(response.into_body(), limits.event_bytes))),
            Media::Json | Media::Other => {
                response.into_body().discard();
                Err(fault::malformed("the server has no event stream there"))
            }
        }
    }

    /// The error that a status and its body stand for.
    pub(super) async fn refusal(response: Response) -> LinkError {
        let (head, mut body) = response.into_parts();
        let error = match Media::of(&head.headers) {
            Media::Json if plain(&head.headers).is_ok() => rpc_error(&mut body).await,
            Media::Json | Media::Events | Media::Other => None,
        };
        body.discard();
        fault::status(head.status, &head.headers, error)
    }
}

/// Refuses what was compressed: nobody asked for it, and unpacking it would undo every limit.
fn plain(headers: &HeaderMap) -> Result<(), LinkError> {
    let Some(encoding) = headers.get(header::CONTENT_ENCODING) else { return Ok(()) };
    if encoding.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let name: String = String::from_utf8_lossy(encoding.as_bytes()).chars().take(MAX_ENCODING).collect();
    Err(fault::malformed(format!(
        "the response is encoded with {name:?}, and the server was not asked to encode it"
    )))
}

/// How much of the name of an encoding is shown.
const MAX_ENCODING: usize = 40;

/// A success without anything in it, as the failure of a request.
pub(super) fn nothing(status: StatusCode) -> LinkError {
    let text = format!("the server answered with {status} and no message");
    LinkError::new(LinkErrorKind::Status(status.as_u16(), None), Delivery::Unknown, text)
}

async fn rpc_error(body: &mut Body) -> Option<RpcError> {
    let body = read(body, MAX_ERROR_BYTES, ERROR_PATIENCE).await.ok()?;
    match Message::parse(&body) {
        Ok(Message::Response(response)) => response.outcome.err(),
        _ => None,
    }
}

/// Reads a whole body of at most `limit` bytes within `time`.
async fn read(body: &mut Body, limit: usize, time: Duration) -> Result<Bytes, LinkError> {
    if body.length().is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    // Most responses have come as a whole by now, and need neither a clock nor a copy.
    let first = match poll_fn(|cx| Poll::Ready(body.poll_chunk(cx))).await {
        Poll::Ready(Ok(None)) => return Ok(Bytes::new()),
        Poll::Ready(Ok(Some(chunk))) if chunk.len() > limit => return Err(too_large(limit)),
        Poll::Ready(Ok(Some(chunk))) if body.is_over() => return Ok(chunk),
        Poll::Ready(Ok(Some(chunk))) => chunk,
        Poll::Ready(Err(error)) => return Err(fault::broken_off(&error)),
        Poll::Pending => Bytes::new(),
    };
    Box::pin(timeout(time, read_on(body, first, limit))).await.unwrap_or_else(|_| {
        let limit = Shown(time);
        Err(fault::cut_off(format!(
            "the response was not complete within the limit `response_timeout` of {limit}"
        )))
    })
}

/// How much room is made for what a server only says that it will send.
const MAX_EXPECTED: usize = 1024 * 1024;

async fn read_on(body: &mut Body, mut first: Bytes, limit: usize) -> Result<Bytes, LinkError> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = body.chunk().await.map_err(|error| fault::broken_off(&error))? {
        if chunk.len() > limit - first.len().max(whole.len()) {
            return Err(too_large(limit));
        }
        if first.is_empty() {
            first = chunk;
            continue;
        }
        if whole.is_empty() {
            let expected = body.length().and_then(|left| usize::try_from(left).ok()).unwrap_or_default();
            whole.reserve(first.len() + chunk.len() + expected.min(MAX_EXPECTED));
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

fn too_large(limit: usize) -> LinkError {
    fault::too_large("response_bytes", format_args!("the response is larger than the limit of {limit} bytes"))
}

/// What the media type says about a body.
enum Media {
    Json,
    Events,
    Other,
}

impl Media {
    fn of(headers: &HeaderMap) -> Self {
        let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = text.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
        let is = |word: &str| media.eq_ignore_ascii_case(word);
        let is_kind_of_json =
            || media.rsplit_once('+').is_some_and(|(_, kind)| kind.eq_ignore_ascii_case("json"));
        if is("text/event-stream") {
            Self::Events
        } else if is("application/json") || is_kind_of_json() {
            Self::Json
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::{Instant, sleep},
    };
    use url::Url;

    use super::*;
    use crate::client::net::{Bounds, Pool, Target};

    /// Answers one request with these pieces, one in ten seconds.
    async fn dripped(pieces: Vec<&'static [u8]>, limits: &HttpLimits) -> Result<Answer, LinkError> {
        let (pool, mut accepted) = Pool::in_memory(Bounds { header_bytes: 8192, connections: 8 });
        tokio::spawn(async move {
            let mut stream = accepted.recv().await.unwrap();
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut seen).await.unwrap();
            }
            for piece in pieces {
                if stream.write_all(piece).await.is_err() {
                    return;
                }
                sleep(Duration::from_secs(10)).await;
            }
        });
        let target = Target::of(&Url::parse("http://memory.invalid/").unwrap()).unwrap();
        let response = pool.send(Method::GET, &target, HeaderMap::new(), Bytes::new()).await.unwrap();
        Answer::of(response, limits).await
    }

    const SLOW: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up_when_its_time_is_over() {
        let limits = HttpLimits { response_timeout: Duration::from_secs(60), ..HttpLimits::default() };
        let mut pieces = vec![SLOW];
        pieces.extend(std::iter::repeat_n(&b"1\r\n \r\n"[..], 100));
        let before = Instant::now();
        let error = dripped(pieces, &limits).await.unwrap_err();
        assert!(error.message.contains("`response_timeout` of 60 s"), "{error}");
        assert_eq!(before.elapsed(), Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_in_pieces_is_put_together() {
        let pieces = vec![SLOW, b"2\r\n{}\r\n", b"1\r\n \r\n", b"0\r\n\r\n"];
        let answer = dripped(pieces, &HttpLimits::default()).await.unwrap();
        assert!(matches!(&answer, Answer::Message(body) if body == "{} "), "{answer:?}");
    }

    #[tokio::test]
    async fn what_nobody_asked_to_be_encoded_is_not_decoded() {
        for (encoding, refused) in [("gzip", true), ("x-bomb, gzip", true), ("identity", false)] {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: {encoding}\r\n\
                 content-length: 2\r\n\r\n{{}}"
            );
            let answer = dripped(vec![head.leak().as_bytes()], &HttpLimits::default()).await;
            match answer {
                Err(error) if refused => assert!(error.message.contains(encoding), "{error}"),
                Ok(Answer::Message(body)) if !refused => assert_eq!(body, "{}"),
                other => panic!("{encoding}: {other:?}"),
            }
        }
    }
}
