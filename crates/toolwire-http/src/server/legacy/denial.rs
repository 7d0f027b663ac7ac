//! Everything this era refuses on its own, with its status and its error.

#[cfg(feature = "sse2024")]
use http::HeaderValue;
use http::{Response, StatusCode, header};
use toolwire_protocol::{RequestId, RpcError, classify::Fault};
use toolwire_server::engine::Refusal;
use toolwire_transport::ledger::LimitReached;

use super::sessions::{EVICTABLE_AFTER, Refused};
use crate::server::{Body, response};

/// Why something is not done.
#[derive(Debug)]
pub(super) struct Denial {
    status: StatusCode,
    pub(super) error: RpcError,
    hint: Option<Hint>,
}

/// A header that says what to do instead.
#[derive(Clone, Copy, Debug)]
enum Hint {
    #[cfg(feature = "sse2024")]
    Allow(&'static str),
    RetryAfter(u64),
}

impl Denial {
    pub(super) fn new(status: StatusCode, error: RpcError) -> Self {
        Self { status, error, hint: None }
    }

    /// What `classify` refuses with.
    pub(super) fn of(fault: &Fault) -> Self {
        let status = StatusCode::from_u16(fault.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
        Self::new(status, fault.rpc_error())
    }

    /// A 404 would tell the client that its session is gone, so this is a bad request: the session goes on.
    pub(super) fn cannot_resume() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            RpcError::invalid_request(
                "Last-Event-ID is not an event of this session, or what came after it is not kept any more",
            ),
        )
    }

    /// Only this HTTP method is used.
    #[cfg(feature = "sse2024")]
    pub(super) fn only(method: &'static str) -> Self {
        let error = RpcError::invalid_request(format!("only {method} is used here"));
        Self { hint: Some(Hint::Allow(method)), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, error) }
    }

    /// No room for another session.
    #[cfg(feature = "sse2024")]
    pub(super) fn full() -> Self {
        Refused::Full.into()
    }

    /// The client posts, and does not read the answers.
    #[cfg(feature = "sse2024")]
    pub(super) fn slow_reader() -> Self {
        Self::busy(StatusCode::TOO_MANY_REQUESTS, "the client does not read its answers", 1)
    }

    fn busy(status: StatusCode, what: &str, seconds: u64) -> Self {
        let error = RpcError::internal(format!("the server is busy: {what}; try again later"));
        Self { hint: Some(Hint::RetryAfter(seconds)), ..Self::new(status, error) }
    }

    pub(super) fn response(self, id: Option<&RequestId>) -> Response<Body> {
        let mut response = response::error(self.status, id, &self.error);
        let headers = response.headers_mut();
        match self.hint {
            #[cfg(feature = "sse2024")]
            Some(Hint::Allow(method)) => headers.insert(header::ALLOW, HeaderValue::from_static(method)),
            Some(Hint::RetryAfter(seconds)) => headers.insert(header::RETRY_AFTER, seconds.into()),
            None => None,
        };
        response
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Closed => Self::of(&Fault::UnknownSession),
            Refusal::IdInUse => Self::new(StatusCode::OK, refusal.rpc_error()),
            _ => Self {
                hint: Some(Hint::RetryAfter(1)),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, refusal.rpc_error())
            },
        }
    }
}

impl From<LimitReached> for Denial {
    fn from(reached: LimitReached) -> Self {
        Self::busy(StatusCode::TOO_MANY_REQUESTS, &reached.to_string(), 1)
    }
}

impl From<Refused> for Denial {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => Self::busy(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many sessions are in use",
                EVICTABLE_AFTER.as_secs(),
            ),
            Refused::NoRandomness => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                RpcError::internal("no session could be started"),
            ),
        }
    }
}
