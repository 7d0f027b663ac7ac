//! The HTTP headers of the protocol and the rules by which they mirror the body of a request.
//!
//! Since 2026-07-28 a request repeats its method, its target and the annotated tool arguments in headers,
//! so that gateways can route without reading the body; whoever reads the body must check that the two
//! agree. This module knows names and values only. Finding a header in a request, and deciding which method
//! needs which header, is the caller's part.

mod plan;
mod value;

use std::{borrow::Cow, fmt};

pub use plan::{HeaderPlan, HeaderPlanError, HeaderPlanFault, MAX_PLAN_BYTES, MAX_PLAN_HEADERS};
pub use value::{InvalidHeaderValue, decode_value, encode_value};

/// Names the protocol revision of a request.
pub const MCP_PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Names the session of a legacy request.
pub const MCP_SESSION_ID: &str = "mcp-session-id";
/// Mirrors the `method` of a request.
pub const MCP_METHOD: &str = "mcp-method";
/// Mirrors the tool, prompt, resource or task a request is about.
pub const MCP_NAME: &str = "mcp-name";
/// What the names of headers that mirror tool arguments begin with.
pub const MCP_PARAM_PREFIX: &str = "mcp-param-";
/// Names the event after which a legacy stream is to be resumed.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// A header and the body of its request do not agree: JSON-RPC error `-32020`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMismatch {
    /// The name of the header, in lower case.
    pub header: Cow<'static, str>,
    /// What is wrong with it.
    pub reason: MismatchReason,
}

/// How a header and a body can disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchReason {
    /// The body has a value, the header is not there.
    Missing,
    /// The header is there, the body has no value.
    Unexpected,
    /// The header's value cannot be read.
    Invalid(InvalidHeaderValue),
    /// Both have a value, and the values differ.
    Different,
    /// The body's value is a whole number beyond what every JSON implementation can hold.
    OutOfRange,
}

/// Checks [`MCP_METHOD`] against the `method` of the body: present and equal, case included.
pub fn check_method(header: Option<&str>, body: &str) -> Result<(), HeaderMismatch> {
    check_plain(MCP_METHOD, header, body)
}

/// Checks [`MCP_PROTOCOL_VERSION`] against the version in the `_meta` of the body.
pub fn check_version(header: Option<&str>, body: &str) -> Result<(), HeaderMismatch> {
    check_plain(MCP_PROTOCOL_VERSION, header, body)
}

/// Checks [`MCP_NAME`], which may be encoded, against the name, URI or task id in the body.
///
/// ```
/// use toolwire_protocol::headers::check_name;
///
/// assert!(check_name(Some("add"), "add").is_ok());
/// assert!(check_name(Some("=?base64?w6Q=?="), "ä").is_ok());
/// assert!(check_name(Some("Add"), "add").is_err());
/// assert!(check_name(None, "add").is_err());
/// ```
pub fn check_name(header: Option<&str>, body: &str) -> Result<(), HeaderMismatch> {
    let mismatch = |reason| HeaderMismatch { header: MCP_NAME.into(), reason };
    let header = header.ok_or_else(|| mismatch(MismatchReason::Missing))?;
    let value = decode_value(header).map_err(|fault| mismatch(MismatchReason::Invalid(fault)))?;
    if value == body { Ok(()) } else { Err(mismatch(MismatchReason::Different)) }
}

fn check_plain(name: &'static str, header: Option<&str>, body: &str) -> Result<(), HeaderMismatch> {
    let reason = match header.map(value::trim) {
        Some(value) if value == body => return Ok(()),
        Some(_) => MismatchReason::Different,
        None => MismatchReason::Missing,
    };
    Err(HeaderMismatch { header: name.into(), reason })
}

impl fmt::Display for HeaderMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        match self.reason {
            MismatchReason::Missing => write!(f, "header {header} is missing"),
            MismatchReason::Unexpected => write!(f, "header {header} has no counterpart in the body"),
            MismatchReason::Invalid(fault) => write!(f, "header {header} cannot be read: {fault}"),
            MismatchReason::Different => write!(f, "header {header} differs from the body"),
            MismatchReason::OutOfRange => {
                write!(f, "header {header} mirrors a whole number beyond the range of 53 bits")
            }
        }
    }
}

impl std::error::Error for HeaderMismatch {}

#[cfg(test)]
mod tests;
