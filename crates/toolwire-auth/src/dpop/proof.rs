//! Making a proof.

use std::{fmt, time::SystemTime};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use url::Url;

use super::TYPE;
use crate::{
    clock::unix_seconds,
    jose::{PrivateKey, PrivateKeyError},
};

/// A proof for one request, to be signed with the key that the token is bound to.
///
/// ```
/// use std::time::SystemTime;
/// use toolwire_auth::{dpop::Proof, jose::{Algorithm, PrivateKey}};
///
/// let key = PrivateKey::generate(Algorithm::Es256)?;
/// let url = "https://files.example/mcp".parse()?;
/// let entropy = [7; 16]; // random in real life
/// let proof = Proof::new("POST", &url, SystemTime::now(), entropy).access_token("secret").sign(&key)?;
/// assert_eq!(proof.split('.').count(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct Proof(Map<String, Value>);

impl Proof {
    /// A proof for a request with this method to this URL, whose query and fragment do not count. `entropy` has to be
    /// random, and other for each proof.
    pub fn new(method: &str, url: &Url, now: SystemTime, entropy: [u8; 16]) -> Self {
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        Self(Map::from_iter([
            ("jti".to_owned(), BASE64_URL_SAFE_NO_PAD.encode(entropy).into()),
            ("htm".to_owned(), method.into()),
            ("htu".to_owned(), String::from(target).into()),
            ("iat".to_owned(), unix_seconds(now).into()),
        ]))
    }

    /// Ties it to the token that is sent with it.
    pub fn access_token(mut self, token: &str) -> Self {
        self.0.insert("ath".to_owned(), token_hash(&Sha256::digest(token).into()).into());
        self
    }

    /// Repeats what the server has asked for.
    pub fn nonce(mut self, nonce: &str) -> Self {
        self.0.insert("nonce".to_owned(), nonce.into());
        self
    }

    /// The text of the header `DPoP`.
    ///
    /// # Errors
    /// When there is no randomness to sign with.
    pub fn sign(&self, key: &PrivateKey) -> Result<String, PrivateKeyError> {
        key.sign_with_key_inside(TYPE, &self.0)
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |name: &str| self.0.get(name).and_then(Value::as_str).unwrap_or_default();
        write!(f, "Proof({} {})", shown("htm"), shown("htu"))
    }
}

/// How a proof names a token, by the SHA-256 of it.
pub(super) fn token_hash(digest: &[u8; 32]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest)
}
