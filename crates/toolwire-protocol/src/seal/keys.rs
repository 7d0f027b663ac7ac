//! The keys that states are sealed with.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};

use super::{MAX_SEALED_BYTES, NONCE_BYTES, Unsealable};
use crate::Version;

const FORMAT: u8 = 1;
pub(super) const KEY_ID_BYTES: usize = 4;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_BYTES;

/// The keys of a server: the first seals, all of them open. To rotate, put a new one in front, and remove the
/// old one when its states have expired.
///
/// ```
/// use toolwire_protocol::{Version, seal::KeyRing};
///
/// let ring = KeyRing::new([b"a secret of at least thirty-two bytes"]).unwrap();
/// let nonce = [7; 24]; // random in real life
/// let sealed = ring.seal(nonce, "server", Version::LATEST, b"remember this");
/// assert_eq!(ring.open(&sealed, "server", Version::LATEST).unwrap().plain, b"remember this");
/// assert!(ring.open(&sealed, "another server", Version::LATEST).is_err());
/// ```
#[derive(Clone)]
pub struct KeyRing {
    pub(super) keys: Vec<Key>,
}

/// What is made of one secret: a key for each purpose, so that nothing sealed for one can be opened for another.
#[derive(Clone)]
pub(super) struct Key {
    state: PurposeKey,
    /// For what lies in a store.
    pub(super) store: PurposeKey,
}

#[derive(Clone)]
pub(super) struct PurposeKey {
    pub(super) id: [u8; KEY_ID_BYTES],
    pub(super) cipher: XChaCha20Poly1305,
}

/// A state that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// What was sealed.
    pub plain: Vec<u8>,
    /// The nonce it was sealed with, which tells one sealing from another.
    pub nonce: [u8; NONCE_BYTES],
}

impl KeyRing {
    /// The fewest bytes a secret may have.
    pub const MIN_SECRET_BYTES: usize = 32;

    /// Makes keys of secrets, the one that seals first.
    ///
    /// # Errors
    /// When there is no secret, or one is shorter than [`MIN_SECRET_BYTES`](Self::MIN_SECRET_BYTES).
    pub fn new<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, KeyError> {
        let keys: Vec<Key> =
            secrets.into_iter().map(|secret| Key::derive(secret.as_ref())).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(KeyError::NoSecret) } else { Ok(Self { keys }) }
    }

    /// Seals `plain` for one server and version. The nonce must be random and never used twice.
    pub fn seal(&self, nonce: [u8; NONCE_BYTES], audience: &str, version: Version, plain: &[u8]) -> String {
        let Some(key) = self.keys.first() else { return String::new() };
        let aad = associated(audience, version);
        let payload = Payload { msg: plain, aad: &aad };
        // Encryption fails only for texts of many gigabytes.
        let cipher = key.state.cipher.encrypt(&XNonce::from(nonce), payload).unwrap_or_default();
        let mut token = Vec::with_capacity(HEAD_BYTES + cipher.len());
        token.push(FORMAT);
        token.extend_from_slice(&key.state.id);
        token.extend_from_slice(&nonce);
        token.extend_from_slice(&cipher);
        BASE64_URL_SAFE_NO_PAD.encode(token)
    }

    /// Opens what [`seal`](Self::seal) has made with one of these keys, for the same server and version.
    ///
    /// # Errors
    /// [`Unsealable`] for everything else.
    pub fn open(&self, token: &str, audience: &str, version: Version) -> Result<Opened, Unsealable> {
        if token.len() > MAX_SEALED_BYTES {
            return Err(Unsealable::TooLong);
        }
        let token = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| Unsealable::Malformed)?;
        let (head, cipher) = token.split_first_chunk::<HEAD_BYTES>().ok_or(Unsealable::Malformed)?;
        let (format, rest) = head.split_first().ok_or(Unsealable::Malformed)?;
        let (id, nonce) = rest.split_first_chunk::<KEY_ID_BYTES>().ok_or(Unsealable::Malformed)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| Unsealable::Malformed)?;
        if *format != FORMAT {
            return Err(Unsealable::Malformed);
        }
        let mut keys = self.keys.iter().map(|key| &key.state);
        let key = keys.find(|key| key.id == *id).ok_or(Unsealable::UnknownKey)?;
        let aad = associated(audience, version);
        let payload = Payload { msg: cipher, aad: &aad };
        let plain = key.cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| Unsealable::Forged)?;
        Ok(Opened { plain, nonce })
    }
}

impl Key {
    fn derive(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < KeyRing::MIN_SECRET_BYTES {
            return Err(KeyError::TooShort { bytes: secret.len() });
        }
        let derive = |purpose: &[u8]| PurposeKey::derive(secret, purpose);
        Ok(Self { state: derive(b"toolwire requestState v1")?, store: derive(b"toolwire store v1")? })
    }
}

impl PurposeKey {
    fn derive(secret: &[u8], purpose: &[u8]) -> Result<Self, KeyError> {
        let mut key = [0; 32];
        let derived = Hkdf::<Sha256>::new(None, secret).expand(purpose, &mut key);
        // Only a request for thousands of bytes fails.
        derived.map_err(|_| KeyError::NoSecret)?;
        let digest = Sha256::digest(key);
        let id = digest.first_chunk::<KEY_ID_BYTES>().copied().unwrap_or_default();
        Ok(Self { id, cipher: XChaCha20Poly1305::new(&key.into()) })
    }
}

fn associated(audience: &str, version: Version) -> Vec<u8> {
    // The version has a fixed length, so the two cannot run into each other.
    [&[FORMAT], version.as_str().as_bytes(), audience.as_bytes()].concat()
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({} keys)", self.keys.len())
    }
}

/// Secrets that make no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// None was given.
    NoSecret,
    /// One is too short to be safe.
    TooShort {
        /// How long it is.
        bytes: usize,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret => f.write_str("at least one secret is needed"),
            Self::TooShort { bytes } => write!(
                f,
                "a secret must have at least {} bytes, this one has {bytes}; `openssl rand -base64 32` makes one",
                KeyRing::MIN_SECRET_BYTES
            ),
        }
    }
}

impl std::error::Error for KeyError {}
