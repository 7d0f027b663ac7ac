//! What went wrong between here and the server, in words for a person.

use std::fmt;

use http::{HeaderMap, StatusCode, header};
use toolwire_client::{
    Delivery,
    link::{LinkError, LinkErrorKind},
};
use toolwire_protocol::RpcError;

use super::authorize::Unauthorized;
use super::net::{Kind, NetError, Shown};

/// How much of a challenge is shown.
const MAX_SHOWN: usize = 200;

/// The request could not be sent, or no response began. `shown` is the address without credentials.
pub(super) fn not_carried(error: &NetError, shown: &str) -> LinkError {
    let delivery = if error.was_sent() { Delivery::Unknown } else { Delivery::NotSent };
    match error.kind() {
        // It was reached, and says more than it may.
        Kind::TooLarge => LinkError::new(LinkErrorKind::Limit("header_bytes"), delivery, error.to_string()),
        Kind::Busy => LinkError::new(LinkErrorKind::Busy, delivery, error.to_string()),
        kind => {
            let text = format!("{shown} cannot be reached: {error}{}", hint(kind, error.was_sent()));
            LinkError::new(LinkErrorKind::Unreachable, delivery, text)
        }
    }
}

const fn hint(kind: Kind, sent: bool) -> &'static str {
    match kind {
        Kind::Timeout if !sent => "; is there a firewall in between?",
        Kind::Dns | Kind::Refused => "; is the server running, and are host and port right?",
        _ => "",
    }
}

/// The response began and did not end.
pub(super) fn broken_off(error: &NetError) -> LinkError {
    cut_off(format!("the response broke off: {error}"))
}

/// There are no credentials with which the request could be sent. `delivery` says what became of it.
pub(super) fn unauthorized(why: Unauthorized, shown: &str) -> LinkError {
    let kind = match why.status() {
        Some(status) => LinkErrorKind::Status(status.as_u16(), None),
        None => LinkErrorKind::Unreachable,
    };
    let cause = why.into_cause();
    let text = format!("there are no credentials for {shown}: {cause}");
    LinkError::new(kind, Delivery::NotSent, text).caused_by(cause)
}

/// The server took too long to begin its response.
pub(super) fn too_slow(shown: &str, after: std::time::Duration) -> LinkError {
    let text = format!("{shown} did not answer within {}", Shown(after));
    LinkError::new(LinkErrorKind::Unreachable, Delivery::Unknown, text)
}

/// A status that is not a success.
pub(super) fn status(status: StatusCode, headers: &HeaderMap, error: Option<RpcError>) -> LinkError {
    let said = error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
    let code = status.as_u16();
    let (text, error) = match code {
        // What matters here is what the server asks for, so its own words do not take the place of this text.
        401 => (format!("the server asks for credentials: {}{said}", challenge(headers)), None),
        300..=399 => (
            format!(
                "the server answered with a redirect that is not followed: {}",
                location(status, headers)
            ),
            error,
        ),
        _ => (format!("the server answered with {status}{said}"), error),
    };
    // Something in between may have given up while the server went on.
    let unknown = status.is_server_error() && error.is_none();
    let delivery = if unknown { Delivery::Unknown } else { Delivery::Rejected };
    LinkError::new(LinkErrorKind::Status(code, error), delivery, text)
}

fn challenge(headers: &HeaderMap) -> String {
    match visible(headers, &header::WWW_AUTHENTICATE) {
        Some(challenge) => format!("401, WWW-Authenticate: {challenge}"),
        None => "401 without a challenge; a token can be set with `bearer`".to_owned(),
    }
}

fn location(status: StatusCode, headers: &HeaderMap) -> String {
    match visible(headers, &header::LOCATION) {
        // Within the origin it would have been followed.
        Some(location) if matches!(status.as_u16(), 301 | 302 | 307 | 308) => format!(
            "{} to {location}, which is not the same origin; if that is the server you mean, use its address",
            status.as_u16()
        ),
        Some(location) => format!("{} to {location}", status.as_u16()),
        None => format!("{} without a location", status.as_u16()),
    }
}

/// The beginning of a header's value, as far as it can be shown.
fn visible(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Some(shown)
}

/// The server's answer cannot be understood.
pub(super) fn malformed(text: impl Into<String>) -> LinkError {
    LinkError::new(LinkErrorKind::Malformed, Delivery::Unknown, text.into())
}

/// The server's answer is larger than a limit of [`HttpLimits`](super::HttpLimits), which has this name.
pub(super) fn too_large(limit: &'static str, why: impl fmt::Display) -> LinkError {
    LinkError::new(LinkErrorKind::Limit(limit), Delivery::Unknown, why.to_string())
}

/// The stream with the answer is gone.
pub(super) fn cut_off(text: impl Into<String>) -> LinkError {
    LinkError::new(LinkErrorKind::Closed, Delivery::Unknown, text.into())
}

/// This client was closed before the request left.
pub(super) fn closed() -> LinkError {
    LinkError::new(LinkErrorKind::Closed, Delivery::NotSent, "the connection to the server is closed")
}

/// This client was closed while the request was under way.
pub(super) fn cancelled() -> LinkError {
    LinkError::new(LinkErrorKind::Cancelled, Delivery::Unknown, "this client closed the connection")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_challenge_is_named_briefly() {
        let long = format!("Bearer scope=\"{}\"", "x".repeat(1000));
        let error = status(StatusCode::UNAUTHORIZED, &headers(header::WWW_AUTHENTICATE, &long), None);
        assert!(error.message.contains("401, WWW-Authenticate: Bearer scope="), "{error}");
        assert!(error.message.len() < 300);
        assert_eq!((error.kind, error.delivery), (LinkErrorKind::Status(401, None), Delivery::Rejected));
    }

    #[test]
    fn only_faults_of_the_server_leave_open_what_happened() {
        let none = HeaderMap::new();
        for (code, delivery) in [
            (400, Delivery::Rejected),
            (404, Delivery::Rejected),
            (429, Delivery::Rejected),
            (502, Delivery::Unknown),
        ] {
            let error = status(StatusCode::from_u16(code).unwrap(), &none, None);
            assert_eq!(error.delivery, delivery, "{code}");
        }
        let said = Some(RpcError::internal("broken"));
        assert_eq!(status(StatusCode::INTERNAL_SERVER_ERROR, &none, said).delivery, Delivery::Rejected);
    }

    #[test]
    fn a_redirect_says_where_to() {
        let error = status(StatusCode::FOUND, &headers(header::LOCATION, "https://elsewhere/"), None);
        assert!(error.message.contains("302 to https://elsewhere/"), "{error}");
    }
}
