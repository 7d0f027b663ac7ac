//! What a response turns out to be.

use bytes::{Bytes, BytesMut};
use http::{StatusCode, header};
use reqwest::Response;
use tokio::time::timeout;
use toolwire_client::{
    Delivery,
    link::{LinkError, LinkErrorKind},
};
use toolwire_protocol::{Message, RpcError};

use super::{
    events::EventStream,
    fault,
    settings::{HttpLimits, MAX_ERROR_BYTES, MAX_REMAINDER_BYTES, REMAINDER_PATIENCE},
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
    /// Reads as much of a response as is needed to know what it is; a status that is no success is an error.
    pub(super) async fn of(mut response: Response, limits: &HttpLimits) -> Result<Self, LinkError> {
        let status = response.status();
        if !status.is_success() {
            return Err(Self::refusal(response).await);
        }
        match Media::of(&response) {
            Media::Events => Ok(Self::Events(Box::new(EventStream::new(response, limits.event_bytes)))),
            Media::Json => {
                let body = read(&mut response, limits.response_bytes).await?;
                // The media type of nothing means nothing.
                Ok(if body.is_empty() { Self::Nothing(status) } else { Self::Message(body) })
            }
            Media::Other => {
                Remainder::of(response).discard();
                Ok(Self::Nothing(status))
            }
        }
    }

    /// The error that a status and its body stand for.
    pub(super) async fn refusal(mut response: Response) -> LinkError {
        let (status, headers) = (response.status(), response.headers().clone());
        let error = match Media::of(&response) {
            Media::Json => rpc_error(&mut response).await,
            Media::Events | Media::Other => None,
        };
        fault::status(status, &headers, error)
    }
}

/// A success without anything in it, as the failure of a request.
pub(super) fn nothing(status: StatusCode) -> LinkError {
    let text = format!("the server answered with {status} and no message");
    LinkError::new(LinkErrorKind::Status(status.as_u16(), None), Delivery::Unknown, text)
}

async fn rpc_error(response: &mut Response) -> Option<RpcError> {
    let body = timeout(REMAINDER_PATIENCE, read(response, MAX_ERROR_BYTES)).await.ok()?.ok()?;
    match Message::parse(&body) {
        Ok(Message::Response(response)) => response.outcome.err(),
        _ => None,
    }
}

/// Reads a whole body of at most `limit` bytes.
async fn read(response: &mut Response, limit: usize) -> Result<Bytes, LinkError> {
    let too_large = || fault::malformed(format!("the response is larger than the limit of {limit} bytes"));
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if chunk.len() > limit - first.len().max(body.len()) => return Err(too_large()),
            // A response that comes in one piece, as most do, is not copied.
            Ok(Some(chunk)) if first.is_empty() => first = chunk,
            Ok(Some(chunk)) => {
                if body.is_empty() {
                    body.extend_from_slice(&first);
                }
                body.extend_from_slice(&chunk);
            }
            Ok(None) => return Ok(if body.is_empty() { first } else { body.freeze() }),
            Err(error) => {
                let text = format!("the response broke off: {}", fault::reason(error));
                return Err(fault::cut_off(text));
            }
        }
    }
}

/// What the media type says about a body.
enum Media {
    Json,
    Events,
    Other,
}

impl Media {
    fn of(response: &Response) -> Self {
        let text = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
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

/// What is left of a response when everything is known already.
pub(super) struct Remainder(Response);

impl Remainder {
    pub(super) const fn of(response: Response) -> Self {
        Self(response)
    }

    /// Reads the rest in the background, if there is little of it, so that the connection can be used again.
    pub(super) fn discard(self) {
        let mut response = self.0;
        tokio::spawn(async move {
            let mut left = MAX_REMAINDER_BYTES;
            let reading = async {
                while let Ok(Some(chunk)) = response.chunk().await {
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
}
