//! Signed tokens in their compact form, and the keys they are signed with.
//!
//! One form (compact JWS, RFC 7515), a closed set of asymmetric algorithms, and the type of a key decides which of them
//! it can be used with. The classic faults of this format need a generality that is not here: there is no `none`, no
//! symmetric algorithm, no key that a token brings along for itself, no encryption, no JSON serialisation, no extension
//! that must be understood.
//!
//! No arithmetic is ours: signatures are made and checked by one cryptographic library, which only the files of this
//! folder name.
//!
//! ```
//! use toolwire_auth::jose::{Algorithm, Compact, KeySet, PrivateKey};
//!
//! let key = PrivateKey::generate(Algorithm::Es256)?.kid("today");
//! let token = key.sign("at+jwt", &serde_json::json!({ "sub": "ada" }))?;
//!
//! let keys = KeySet::of([key.public_key().clone()]);
//! let payload = keys.verify(&Compact::parse(&token)?)?;
//! assert_eq!(payload.object()?["sub"], "ada");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod algorithm;
mod compact;
mod header;
mod jwk;
mod sign;
mod thumbprint;
mod verify;

#[cfg(test)]
mod tests;

pub use algorithm::Algorithm;
pub use compact::{Compact, MAX_COMPACT_BYTES, Payload};
pub use header::Header;
pub use jwk::{JwkError, KeySet, MAX_KEY_SET_BYTES, MAX_KEYS, PublicKey};
pub use sign::{PrivateKey, PrivateKeyError};
pub use thumbprint::Thumbprint;

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

/// Why a signed token is not accepted. This is for a log: whoever has sent the token need not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JwsError {
    /// Longer than [`MAX_COMPACT_BYTES`].
    TooLong,
    /// Encrypted, so it has five parts.
    Encrypted,
    /// Not three parts with dots between them.
    NotCompact,
    /// The third part is empty.
    Unsigned,
    /// A part is not base64url without padding.
    Base64,
    /// The header is not a JSON object that every reader understands alike, or a member has the wrong type.
    Header,
    /// The algorithm is none of those that are accepted.
    Algorithm,
    /// The header asks for an extension that must be understood.
    Critical,
    /// The payload is not a JSON object that every reader understands alike.
    Payload,
    /// There is no key that fits the header.
    NoKey,
    /// The signature was not made with that key over these bytes.
    Signature,
}

impl fmt::Display for JwsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the token is longer than {MAX_COMPACT_BYTES} bytes"),
            Self::Encrypted => {
                f.write_str("the token is encrypted (JWE), and only signed tokens can be checked")
            }
            Self::NotCompact => f.write_str("the token is not a signed token in compact form"),
            Self::Unsigned => f.write_str("the token is not signed"),
            Self::Base64 => f.write_str("a part of the token is not base64url without padding"),
            Self::Header => f.write_str("the header of the token cannot be read"),
            Self::Algorithm => f.write_str("the algorithm of the token is not accepted"),
            Self::Critical => f.write_str("the token has an extension that must be understood, and is not"),
            Self::Payload => f.write_str("the payload of the token is not a JSON object"),
            Self::NoKey => f.write_str("no key fits the token"),
            Self::Signature => f.write_str("the signature of the token is not valid"),
        }
    }
}

impl std::error::Error for JwsError {}

/// Bytes of base64url without padding, white space or bits that mean nothing.
fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
