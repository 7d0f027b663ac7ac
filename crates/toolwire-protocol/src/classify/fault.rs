//! Every way a message can fail its checks, with its error and its HTTP status.

use crate::{ErrorCode, Feature, RawJson, RpcError, Version};

/// Why a message was refused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// A response, and nobody asked.
    UnexpectedResponse,
    /// An HTTP request outside any session, where sessions are needed.
    SessionRequired,
    /// A session that does not exist (any more).
    UnknownSession,
    /// A second `initialize`.
    AlreadyInitialized,
    /// A request between `initialize` and `notifications/initialized`.
    NotInitialized {
        /// What was asked for.
        method: Box<str>,
    },
    /// Required `_meta` keys are missing.
    MissingMeta {
        /// Which ones a request needs.
        keys: &'static [&'static str],
    },
    /// A `_meta` key has the wrong type.
    InvalidMeta(String),
    /// A header contradicts the body, or is missing.
    HeaderMismatch(String),
    /// The version named is not served.
    UnsupportedVersion {
        /// What was asked for.
        requested: Box<str>,
        /// What is served.
        supported: Vec<Version>,
    },
    /// An `initialize` (or another message of the old kind) at an endpoint that serves only modern versions.
    LegacyNotServed {
        /// What is served.
        supported: Vec<Version>,
    },
    /// No such method in that version, or not advertised.
    MethodNotFound {
        /// What was asked for.
        method: Box<str>,
        /// Whether it was asked for in the modern era, which has a status of its own for it.
        modern: bool,
    },
    /// The parameters do not fit the method.
    InvalidParams(String),
    /// The operation needs a capability the client did not declare.
    MissingClientCapability {
        /// A `ClientCapabilities` object with what is needed.
        required: RawJson,
    },
}

impl Fault {
    /// The JSON-RPC error to answer with.
    pub fn rpc_error(&self) -> RpcError {
        match self {
            Self::UnexpectedResponse => {
                RpcError::invalid_request("this endpoint has asked nothing, so it takes no responses")
            }
            Self::SessionRequired => RpcError::invalid_request(
                "the header Mcp-Session-Id is required; send an initialize request first to get a session",
            ),
            Self::UnknownSession => RpcError::invalid_request(
                "unknown or expired session; send a new initialize request without Mcp-Session-Id",
            ),
            Self::AlreadyInitialized => {
                RpcError::invalid_request("already initialized; initialize may be sent only once")
            }
            Self::NotInitialized { method } => RpcError::invalid_request(format!(
                "{method:?} came before notifications/initialized; until then only ping is answered"
            )),
            Self::MissingMeta { keys } => RpcError::invalid_params(format!(
                "params._meta must carry {}; or send an initialize request first",
                keys.join(" and ")
            )),
            Self::InvalidMeta(why) => RpcError::invalid_params(format!("params._meta: {why}")),
            Self::HeaderMismatch(why) => RpcError::new(ErrorCode::HEADER_MISMATCH, why.clone()),
            Self::UnsupportedVersion { requested, supported } => unsupported(requested, supported),
            Self::LegacyNotServed { supported } => unsupported("initialize", supported),
            Self::MethodNotFound { method, .. } => RpcError::method_not_found(method),
            Self::InvalidParams(why) => RpcError::invalid_params(why.clone()),
            Self::MissingClientCapability { required } => RpcError::new(
                ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
                "the client did not declare a capability that this request needs",
            )
            .with_data(&RequiredCapabilities { required_capabilities: required }),
        }
    }

    /// The HTTP status of the answer.
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::UnknownSession | Self::MethodNotFound { modern: true, .. } => 404,
            // Handshake and parameter errors are answers, not failures of the exchange. A dual-era
            // client would take a 400 for proof of an old server.
            Self::AlreadyInitialized
            | Self::NotInitialized { .. }
            | Self::MethodNotFound { modern: false, .. }
            | Self::InvalidParams(_) => 200,
            _ => 400,
        }
    }
}

/// The HTTP status for an error that a handler, and no check, produced.
///
/// Who made the error decides, not its code: a handler that relays an upstream `-32020` still answers 200.
/// The one exception is the missing capability, which the specification ties to 400 wherever it is found out.
pub fn handler_error_status(version: Version, code: ErrorCode) -> u16 {
    let missing = code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
    if missing && version.has(Feature::MissingCapabilityCode) { 400 } else { 200 }
}

fn unsupported(requested: &str, supported: &[Version]) -> RpcError {
    let list: Vec<_> = supported.iter().map(|version| version.as_str()).collect();
    let message =
        format!("protocol version {requested:?} is not served here; served are {}", list.join(", "));
    RpcError::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message)
        .with_data(&SupportedVersions { supported: &list, requested })
}

#[derive(serde::Serialize)]
struct SupportedVersions<'a> {
    supported: &'a [&'static str],
    requested: &'a str,
}

#[derive(serde::Serialize)]
struct RequiredCapabilities<'a> {
    #[serde(rename = "requiredCapabilities")]
    required_capabilities: &'a RawJson,
}
