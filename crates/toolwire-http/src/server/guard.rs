//! Who is let in: the seam between the endpoint and whatever knows its callers.
//!
//! An endpoint with a [`Guard`] asks it before anything of a request is read but its head, and for every path that it
//! serves. What it deliberately does not know: tokens, issuers, or any way to authenticate.

use std::{
    borrow::Cow,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, request::Parts};
use tokio::time::Instant;
use toolwire_protocol::RpcError;
use toolwire_server::{Lack, Principal, Scopes, engine::EndsAt};
use toolwire_transport::BoxFuture;

use super::{Body, response};

/// How much of the body of a request that is refused is read all the same. A client that is still sending when the
/// connection is closed may never see the answer.
pub(crate) const DISCARDED_BYTES: usize = 64 * 1024;

/// For how long it is.
pub(crate) const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// For how much longer than a principal is valid it counts, and the streams that it has opened stay open. Clocks differ.
#[doc(hidden)]
pub const LEEWAY: Duration = Duration::from_secs(60);

/// After how long the streams of a principal are ended of which nobody knows for how long it is valid.
#[doc(hidden)]
pub const UNKNOWN_EXPIRY: Duration = Duration::from_secs(60 * 60);

/// Decides who may use an endpoint.
///
/// ```
/// use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
/// use toolwire_http::server::{Admission, Denied, Guard, HttpService, Lacking};
/// use toolwire_server::{Principal, Server};
///
/// #[derive(Debug)]
/// struct HouseKey;
///
/// impl Guard for HouseKey {
///     fn resource(&self) -> &str {
///         "http://localhost:8000/mcp"
///     }
///
///     fn admit(&self, parts: &mut Parts) -> Admission<'_> {
///         match parts.headers.remove(header::AUTHORIZATION) {
///             Some(key) if key == "Bearer swordfish" => Admission::admitted(Some(Principal::new("alice"))),
///             _ => Admission::denied(Denied::new(StatusCode::UNAUTHORIZED, "the house key is needed")),
///         }
///     }
///
///     fn challenge(&self, lacking: &Lacking<'_>) -> Denied {
///         Denied::new(StatusCode::FORBIDDEN, "not with this key")
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("clock", "1.0").build()?;
/// let mcp = HttpService::builder(server).guard(HouseKey).build()?;
/// # Ok(())
/// # }
/// ```
pub trait Guard: fmt::Debug + Send + Sync + 'static {
    /// The URL by which clients know the endpoint. Its path, its host and its origin become those of the endpoint.
    fn resource(&self) -> &str;

    /// What a caller who is known must have for every request, whatever it asks for. Default: nothing.
    fn scopes(&self) -> &Scopes {
        const NONE: &Scopes = &Scopes::new();
        NONE
    }

    /// A document that everybody may read, whoever they are and whatever page asks for it; `None` where there is none.
    fn document(&self, path: &str) -> Option<Response<Bytes>> {
        _ = path;
        None
    }

    /// Says who sends a request, before its body is read.
    ///
    /// It takes out of the request what proves that, since everything that is left is shown to handlers: a secret among
    /// it could be logged, or sent on to somebody else.
    fn admit<'a>(&'a self, parts: &mut Parts) -> Admission<'a>;

    /// The answer to a request that somebody was let in with, and that turned out to need more.
    fn challenge(&self, lacking: &Lacking<'_>) -> Denied;

    /// The time by which those who are let in expire. Default: that of the system.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Adds to the head of every response to a request that [`admit`](Self::admit) was asked about.
    fn answered(&self, headers: &mut HeaderMap) {
        _ = headers;
    }
}

/// What a guard says about a request.
#[expect(clippy::exhaustive_enums, reason = "known, or yet to be found out")]
pub enum Admission<'a> {
    /// It is known at once. Nothing is allocated and nobody waits.
    Known(Result<Option<Principal>, Box<Denied>>),
    /// It has to be found out.
    Pending(BoxFuture<'a, Result<Option<Principal>, Box<Denied>>>),
}

impl Admission<'_> {
    /// The request is let in: as one of `principal`, or as one of nobody in particular.
    pub fn admitted(principal: Option<Principal>) -> Self {
        Self::Known(Ok(principal))
    }

    /// The request is not let in.
    pub fn denied(denied: Denied) -> Self {
        Self::Known(Err(Box::new(denied)))
    }
}

impl fmt::Debug for Admission<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(known) => f.debug_tuple("Known").field(known).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}

/// Why a request is not served: an HTTP status, headers that say what to do about it, and an error for the client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Denied {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The error in the body.
    pub error: RpcError,
}

impl Denied {
    /// A refusal without headers.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, headers: HeaderMap::new(), error: RpcError::invalid_request(message) }
    }

    pub(crate) fn response(self) -> Response<Body> {
        let mut response = response::error(self.status, None, &self.error);
        response.headers_mut().extend(self.headers);
        response
    }
}

/// What a request lacks, and who has sent it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Lacking<'a> {
    /// What it lacks.
    pub lack: &'a Lack,
    /// Who has sent it, if that is known.
    pub principal: Option<&'a Principal>,
    /// Whether its client asks for no more than a challenge names, and would lose what it has and what is not named.
    pub names_all: bool,
}

/// When the streams of a principal end. One that a guard has let in does not have them for ever, even if nobody has said
/// for how long it is valid.
pub(crate) fn ends_at(principal: Option<&Principal>, guard: Option<&dyn Guard>) -> Option<EndsAt> {
    let left = match (principal?.expires_at(), guard) {
        (Some(expiry), guard) => {
            let now = guard.map_or_else(SystemTime::now, Guard::now);
            // What is later than can be told does not end.
            expiry.checked_add(LEEWAY)?.duration_since(now).unwrap_or_default()
        }
        (None, Some(_)) => UNKNOWN_EXPIRY,
        (None, None) => return None,
    };
    Instant::now().checked_add(left).map(EndsAt)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    /// A guard that lives in another time.
    #[derive(Debug)]
    struct Then(SystemTime);

    impl Guard for Then {
        fn resource(&self) -> &'static str {
            "http://localhost/mcp"
        }

        fn admit<'a>(&'a self, _: &mut Parts) -> Admission<'a> {
            Admission::admitted(None)
        }

        fn challenge(&self, _: &Lacking<'_>) -> Denied {
            Denied::new(StatusCode::FORBIDDEN, "never")
        }

        fn now(&self) -> SystemTime {
            self.0
        }
    }

    fn left(expiry: Option<SystemTime>, now: SystemTime) -> Option<Duration> {
        let who = Principal::builder("alice");
        let who = expiry.map_or_else(|| who.clone(), |expiry| who.clone().expires_at(expiry)).build();
        ends_at(Some(&who), Some(&Then(now))).map(|EndsAt(end)| end - Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn streams_end_by_the_clock_of_the_guard() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let soon = Duration::from_secs(5);
        assert_eq!(left(Some(now + soon), now), Some(soon + LEEWAY));
        assert_eq!(left(Some(now - 2 * LEEWAY), now), Some(Duration::ZERO));
        assert_eq!(left(None, now), Some(UNKNOWN_EXPIRY));
        assert_eq!(ends_at(Some(&Principal::new("alice")), None).map(|_| ()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_expiry_that_is_too_far_away_to_be_told_is_none() {
        let mut last = UNIX_EPOCH;
        for power in (0..63).rev() {
            last = last.checked_add(Duration::from_secs(1 << power)).unwrap_or(last);
        }
        assert_eq!(last.checked_add(LEEWAY), None);
        assert_eq!(left(Some(last), UNIX_EPOCH), None);
        // One that can be told is no instant of this machine, or a far one.
        let _ = left(Some(last - LEEWAY), UNIX_EPOCH);
    }
}
