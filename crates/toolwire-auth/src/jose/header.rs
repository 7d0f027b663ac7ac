//! The header of a token.

use std::fmt;

use serde_json::{Map, Value};

use super::{Algorithm, JwkError, JwsError, PublicKey, compact::strict_object};

/// What changes how a token is read. None of it is understood, whether it is said to be critical or not.
const EXTENSIONS: [&str; 4] = ["crit", "b64", "zip", "enc"];

/// The header of a token, which anybody may have written. Addresses of keys (`jku`, `x5u`) and certificates (`x5c`) in
/// it are not even kept.
#[derive(Clone, PartialEq)]
pub struct Header {
    algorithm: Algorithm,
    kid: Option<String>,
    typ: Option<String>,
    jwk: Option<Map<String, Value>>,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, JwsError> {
        let mut members = strict_object(bytes).ok_or(JwsError::Header)?;
        let algorithm = match members.get("alg") {
            Some(Value::String(name)) => Algorithm::from_name(name).ok_or(JwsError::Algorithm)?,
            Some(_) => return Err(JwsError::Header),
            None => return Err(JwsError::Algorithm),
        };
        if EXTENSIONS.iter().any(|name| members.contains_key(*name)) {
            return Err(JwsError::Critical);
        }
        let jwk = match members.remove("jwk") {
            None => None,
            Some(Value::Object(jwk)) => Some(jwk),
            Some(_) => return Err(JwsError::Header),
        };
        Ok(Self { algorithm, kid: text(&mut members, "kid")?, typ: text(&mut members, "typ")?, jwk })
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Which key it is signed with, in the words of the issuer. It is compared byte for byte, and nothing else.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// What kind of token it is.
    pub fn typ(&self) -> Option<&str> {
        self.typ.as_deref()
    }

    /// Whether [`typ`](Self::typ) is this media type: case aside, and with or without `application/`.
    pub fn is_type(&self, kind: &str) -> bool {
        const PREFIX: &str = "application/";
        let Some(typ) = self.typ() else { return false };
        let bare = match typ.get(..PREFIX.len()) {
            Some(start) if start.eq_ignore_ascii_case(PREFIX) => typ.get(PREFIX.len()..).unwrap_or_default(),
            _ => typ,
        };
        bare.eq_ignore_ascii_case(kind)
    }

    /// The key that the token brings along. It is for proofs of possession alone: with a key of its own any token is
    /// rightly signed.
    pub fn embedded_key(&self) -> Option<Result<PublicKey, JwkError>> {
        self.jwk.as_ref().map(PublicKey::from_members)
    }
}

fn text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>, JwsError> {
    match members.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(JwsError::Header),
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("algorithm", &self.algorithm)
            .field("kid", &self.kid)
            .field("typ", &self.typ)
            .finish_non_exhaustive()
    }
}
