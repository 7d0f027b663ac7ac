//! The JSON-RPC error object and every code the protocol defines.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// The number that tells errors apart.
///
/// Codes are open: a peer may send any integer. The named constants are those the specification gives
/// a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a valid message at this point of the conversation.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// No such method, or the server did not advertise it.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// Something broke on the answering side.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// Legacy only: the resource does not exist. Modern uses [`INVALID_PARAMS`](Self::INVALID_PARAMS).
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// Modern only: an HTTP header contradicts the body.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// Modern only: the request needs a capability that the client did not declare.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: Self = Self(-32021);
    /// Modern only: the version in the request is not served.
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);
    /// 2025-11-25 only: the user has to visit a URL first.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// Legacy only: the user refused a sampling request.
    pub const SAMPLING_REJECTED: Self = Self(-1);

    /// The specification's name for the code, where it has one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::PARSE_ERROR => "parse error",
            Self::INVALID_REQUEST => "invalid request",
            Self::METHOD_NOT_FOUND => "method not found",
            Self::INVALID_PARAMS => "invalid params",
            Self::INTERNAL_ERROR => "internal error",
            Self::RESOURCE_NOT_FOUND => "resource not found",
            Self::HEADER_MISMATCH => "header mismatch",
            Self::MISSING_REQUIRED_CLIENT_CAPABILITY => "missing required client capability",
            Self::UNSUPPORTED_PROTOCOL_VERSION => "unsupported protocol version",
            Self::URL_ELICITATION_REQUIRED => "URL elicitation required",
            Self::SAMPLING_REJECTED => "sampling rejected",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error object of a JSON-RPC response.
///
/// It is always built on purpose: there is no conversion from other error types, so that internals do
/// not leak to the peer.
///
/// ```
/// use toolwire_protocol::{ErrorCode, RpcError};
///
/// let error = RpcError::new(ErrorCode::INVALID_PARAMS, "no tool named \"sun\"");
/// assert_eq!(error.to_string(), "no tool named \"sun\" (-32602)");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RpcError {
    /// What kind of error it is.
    pub code: ErrorCode,
    /// One sentence for a person.
    pub message: Cow<'static, str>,
    /// Details for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}

impl RpcError {
    /// An error with a code and a sentence.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Parameters that do not fit.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// A message that is not acceptable at this point.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// A method nobody answers.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(ErrorCode::METHOD_NOT_FOUND, format!("method not found: {method:?}"))
    }

    /// A failure of our own.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }

    /// Attaches details. What cannot be serialised is left out.
    #[must_use]
    pub fn with_data<T: Serialize + ?Sized>(mut self, data: &T) -> Self {
        self.data = RawJson::of(data).ok();
        self
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_absent_unless_given() {
        let error = RpcError::internal("x");
        assert_eq!(serde_json::to_string(&error).unwrap(), r#"{"code":-32603,"message":"x"}"#);
        let error = error.with_data(&[1]);
        assert_eq!(serde_json::to_string(&error).unwrap(), r#"{"code":-32603,"message":"x","data":[1]}"#);
    }

    #[test]
    fn an_error_survives_its_text() {
        let text = r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#;
        let error: RpcError = serde_json::from_str(text).unwrap();
        assert_eq!(error.code, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION);
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
    }
}
