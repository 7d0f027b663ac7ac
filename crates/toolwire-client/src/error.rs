//! What can go wrong with a call, and whether the server may have acted on it.

use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc, time::Duration};

use toolwire_protocol::{MethodName, RpcError, ServerCapability, Version};

/// A failed call or connection.
///
/// [`kind`](Self::kind) says what went wrong, [`delivery`](Self::delivery) whether it is safe to try again,
/// and [`rpc`](Self::rpc) gives the server's own error if it sent one. The text is for people and may change.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    delivery: Delivery,
    rpc: Option<RpcError>,
    status: Option<u16>,
    limit: Option<&'static str>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server answered with a JSON-RPC error.
    Rpc,
    /// The tool ran and failed; only [`CallOutcome::into_result`](crate::CallOutcome::into_result) gives this.
    Tool,
    /// The server took too long.
    Timeout,
    /// This client was closed while the call was under way.
    Cancelled,
    /// The connection is gone.
    Closed,
    /// The connection could not be made.
    Connect,
    /// Client and server have no protocol version in common.
    NoCommonVersion,
    /// The version that is spoken does not have this method.
    NotInThisVersion,
    /// The server did not advertise what the method needs.
    NotAdvertised,
    /// The server's answer is not what the method returns.
    InvalidResponse,
    /// The parameters cannot be sent.
    InvalidParams,
    /// The server asked for something that no handler of this client answers.
    Unanswerable,
    /// The server kept asking for input.
    TooManyRounds,
    /// The server does not know the task: it has expired, or belongs to somebody else.
    TaskGone,
    /// The task was cancelled, so it has no result.
    TaskCancelled,
    /// The server kept sending pages.
    TooManyPages,
    /// The server sent more than a limit of this client allows; [`Error::limit`] names it.
    TooLarge,
    /// Too much is going on in this client already.
    Busy,
}

/// Whether the server may have acted on a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "whoever decides about a retry must know all cases")]
pub enum Delivery {
    /// It never left: trying again is safe.
    NotSent,
    /// The server has it and answered that it failed.
    Rejected,
    /// It was sent, and no answer tells whether it was carried out.
    Unknown,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, delivery: Delivery, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        let inner = Inner { kind, message, delivery, rpc: None, status: None, limit: None, source: None };
        Self { inner: Box::new(inner) }
    }

    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into().into());
        self
    }

    /// Passes on what was behind a failure of the link.
    pub(crate) fn caused_by(mut self, cause: Option<Arc<dyn StdError + Send + Sync>>) -> Self {
        if cause.is_some() {
            self.inner.source = cause;
        }
        self
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.inner.status = Some(status);
        self
    }

    /// Names the limit of [`ClientLimits`](crate::ClientLimits) that it is about.
    pub(crate) fn with_limit(mut self, limit: &'static str) -> Self {
        self.inner.message = format!("{} (the limit {limit})", self.inner.message).into();
        self.inner.limit = Some(limit);
        self
    }

    /// Adds what a person can do about it.
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.inner.message = format!("{}; {hint}", self.inner.message).into();
        self
    }

    /// Adds that trying it another way did not help, and why.
    pub(crate) fn and_elsewhere(self, other: &Self) -> Self {
        // With its causes, because they are not kept otherwise.
        self.with_hint(&format!("and over another transport: {other:?}"))
    }

    /// Adds what was tried before, and why that was not it.
    pub(crate) fn after(self, first: &Self) -> Self {
        self.with_hint(&format!("that was over another transport, tried because at first {first:?}"))
    }

    pub(crate) fn from_rpc(method: &MethodName, error: RpcError) -> Self {
        let mut this =
            Self::new(ErrorKind::Rpc, Delivery::Rejected, format!("the server refused {method}: {error}"));
        this.inner.rpc = Some(error);
        this
    }

    pub(crate) fn timeout(method: &MethodName, after: Duration) -> Self {
        let text = format!("no answer to {method} within {after:?}");
        Self::new(ErrorKind::Timeout, Delivery::Unknown, text)
    }

    pub(crate) fn invalid_response(method: &MethodName, why: impl fmt::Display) -> Self {
        let text = format!("the answer to {method} is not valid: {why}");
        Self::new(ErrorKind::InvalidResponse, Delivery::Unknown, text)
    }

    pub(crate) fn invalid_params(method: &MethodName, why: impl fmt::Display) -> Self {
        let text = format!("{method} cannot be sent: {why}");
        Self::new(ErrorKind::InvalidParams, Delivery::NotSent, text)
    }

    pub(crate) fn not_in_this_version(method: &MethodName, version: Version) -> Self {
        let text = format!("{method} does not exist in protocol version {version}, which is spoken here");
        Self::new(ErrorKind::NotInThisVersion, Delivery::NotSent, text)
    }

    pub(crate) fn not_advertised(method: &MethodName, capability: ServerCapability) -> Self {
        let text =
            format!("the server did not advertise the capability {capability:?}, which {method} needs");
        Self::new(ErrorKind::NotAdvertised, Delivery::NotSent, text)
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether the server may have acted on the request.
    pub fn delivery(&self) -> Delivery {
        self.inner.delivery
    }

    /// The error the server answered with, if it answered.
    pub fn rpc(&self) -> Option<&RpcError> {
        self.inner.rpc.as_ref()
    }

    /// The HTTP status the server answered with, if the request went over HTTP and the status was no success.
    ///
    /// 401 and 403 mean that the server wants to know who is calling, 404 that there is no server at the URL.
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// The name of the limit that was reached, if that is what went wrong: most often a field of
    /// [`ClientLimits`](crate::ClientLimits).
    pub fn limit(&self) -> Option<&'static str> {
        self.inner.limit
    }

    /// Whether the server took too long.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Whether this client was closed while the call was under way.
    pub fn is_cancelled(&self) -> bool {
        self.kind() == ErrorKind::Cancelled
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        matches!(self.kind(), ErrorKind::Closed | ErrorKind::Cancelled)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

/// The text of the error and of its causes, because `main` shows an error this way.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        let mut source = self.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_reads_like_a_sentence_with_its_causes() {
        let error = Error::new(ErrorKind::Connect, Delivery::NotSent, "the connection could not be made")
            .with_source(std::io::Error::other("no such file"));
        assert_eq!(format!("{error:?}"), "the connection could not be made: no such file");
        assert_eq!(error.to_string(), "the connection could not be made");
    }

    #[test]
    fn an_error_is_one_word_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
