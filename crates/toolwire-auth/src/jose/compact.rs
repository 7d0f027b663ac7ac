//! The three parts of a signed token.

use std::fmt;

use serde_json::{Map, Value};
use toolwire_protocol::RawJson;

use super::{Header, JwsError, decode};

/// The longest token that is read, in bytes. Lists of groups make them long.
pub const MAX_COMPACT_BYTES: usize = 16 * 1024;

/// A signed token that was taken apart, and of which nothing is known to be true yet.
///
/// What it says is given out by [`PublicKey::verify`](super::PublicKey::verify) and
/// [`KeySet::verify`](super::KeySet::verify), after the signature has been checked.
pub struct Compact<'a> {
    header: Header,
    /// What the signature is over.
    signed: &'a str,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// What a token says, after its signature was checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Vec<u8>);

impl<'a> Compact<'a> {
    /// Takes a token apart. Nothing is looked for and no key is needed to refuse one that is malformed, unsigned or
    /// has an algorithm that does not exist here.
    pub fn parse(token: &'a str) -> Result<Self, JwsError> {
        if token.len() > MAX_COMPACT_BYTES {
            return Err(JwsError::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(if token.split('.').count() == 5 {
                JwsError::Encrypted
            } else {
                JwsError::NotCompact
            });
        };
        if signature.is_empty() {
            return Err(JwsError::Unsigned);
        }
        let signed = token.get(..header.len() + 1 + payload.len()).ok_or(JwsError::NotCompact)?;
        Ok(Self {
            header: Header::parse(&decode(header).ok_or(JwsError::Base64)?)?,
            signed,
            payload: decode(payload).ok_or(JwsError::Base64)?,
            signature: decode(signature).ok_or(JwsError::Base64)?,
        })
    }

    /// The header, which anybody may have written.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The issuer that the token claims to be of, to choose whose keys it is checked with. Anybody may have written it.
    pub fn claimed_issuer(&self) -> Option<String> {
        match object(&self.payload).ok()?.remove("iss")? {
            Value::String(issuer) => Some(issuer),
            _ => None,
        }
    }

    pub(super) fn signed(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    pub(super) fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// Only for whoever has checked the signature.
    pub(super) fn payload(&self) -> Payload {
        Payload(self.payload.clone())
    }
}

impl Payload {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The payload as a JSON object in which no name is duplicated, at any depth.
    pub fn object(&self) -> Result<Map<String, Value>, JwsError> {
        object(&self.0)
    }
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, JwsError> {
    strict_object(bytes).ok_or(JwsError::Payload)
}

/// A JSON object in which no name is duplicated, at any depth.
pub(super) fn strict_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    RawJson::parse(std::str::from_utf8(bytes).ok()?).ok()?.decode().ok()
}

impl fmt::Debug for Compact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // With its signature it can be used, so that is not shown.
        f.debug_struct("Compact").field("header", &self.header).finish_non_exhaustive()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}
