//! Judging a proof.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::HeaderMap;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Nonces, PROOF_HEADER, TYPE, proof::token_hash};
use crate::{
    clock::unix_seconds,
    jose::{Algorithm, Compact, Thumbprint},
};

/// How far the time of a proof may be from ours, both ways.
pub const WINDOW: Duration = Duration::from_secs(60);

/// The longest proof that is read, in bytes. One with the largest key has less than half of it.
pub const MAX_PROOF_BYTES: usize = 8 * 1024;

/// How many bytes stand for a proof among those that were used.
const TAKEN_BYTES: usize = 24;

/// What a proof has to prove.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// Where the request is addressed to, by our own configuration and never by its headers.
    pub target: &'a Target,
    /// The SHA-256 of the token that came with it.
    pub token_digest: &'a [u8; 32],
    /// The key that the token is bound to: `cnf.jkt`.
    pub bound_to: &'a str,
    /// The algorithms that are accepted.
    pub algorithms: &'a [Algorithm],
    /// Asks for a nonce.
    pub nonces: Option<&'a Nonces>,
}

/// A proof that proves what was expected, if it was not [taken](Self::take) before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a proof that is not taken can be used again"]
pub struct Proved {
    thumbprint: Thumbprint,
    /// What stands for the proof among those that were used.
    id: [u8; TAKEN_BYTES],
    until: SystemTime,
    stale_nonce: bool,
}

/// Why a proof is not accepted. The reason is for a log; a client is told the [code](Self::code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofError {
    /// It does not prove what it should.
    Invalid(&'static str),
    /// It needs a nonce of ours, or a newer one.
    UseNonce,
}

impl ProofError {
    /// The value of `error` in a challenge.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid_dpop_proof",
            Self::UseNonce => "use_dpop_nonce",
        }
    }
}

/// The one proof of a request.
///
/// # Errors
/// When there is none, or more than one, or it is not text.
pub fn single(headers: &HeaderMap) -> Result<&str, ProofError> {
    let mut proofs = headers.get_all(PROOF_HEADER).iter();
    match (proofs.next(), proofs.next()) {
        (Some(proof), None) => proof.to_str().map_err(|_| ProofError::Invalid("the proof is not text")),
        (None, _) => Err(ProofError::Invalid("there is no proof")),
        (Some(_), Some(_)) => Err(ProofError::Invalid("there is more than one proof")),
    }
}

/// Judges a proof, all but whether it was used before.
///
/// # Errors
/// [`ProofError`] says what it does not prove.
pub fn check(proof: &str, expected: &Expected<'_>, now: SystemTime) -> Result<Proved, ProofError> {
    let invalid = ProofError::Invalid;
    if proof.len() > MAX_PROOF_BYTES {
        return Err(invalid("the proof is too long"));
    }
    let token = Compact::parse(proof).map_err(|_| invalid("the proof is not a signed token"))?;
    let header = token.header();
    if !header.is_type(TYPE) {
        return Err(invalid("the proof has another type"));
    }
    if !expected.algorithms.contains(&header.algorithm()) {
        return Err(invalid("the algorithm of the proof is not accepted"));
    }
    let key = header.embedded_key().ok_or_else(|| invalid("there is no key in the proof"))?;
    let key = key.map_err(|_| invalid("the key in the proof cannot be used, or is a private one"))?;
    let payload = key.verify(&token).map_err(|_| invalid("the signature of the proof is not valid"))?;
    let claims = payload.object().map_err(|_| invalid("the claims of the proof cannot be read"))?;
    let thumbprint = key.thumbprint();
    judge(&claims, thumbprint, expected)?;
    // Before the time: a client that has none yet learns the time together with it.
    let stale_nonce = judge_nonce(&claims, expected.nonces, now)?;
    let until = judge_time(&claims, now)?;
    let id = match text(&claims, "jti") {
        Some(jti) if !jti.is_empty() => id(&thumbprint, jti),
        _ => return Err(invalid("the proof has no jti")),
    };
    Ok(Proved { thumbprint, id, until, stale_nonce })
}

/// Judges what a proof claims of its request, its token and its key.
fn judge(
    claims: &Map<String, Value>,
    thumbprint: Thumbprint,
    expected: &Expected<'_>,
) -> Result<(), ProofError> {
    let invalid = ProofError::Invalid;
    if text(claims, "htm") != Some(expected.method) {
        return Err(invalid("the proof is for another method"));
    }
    if text(claims, "htu").and_then(Target::parse).as_ref() != Some(expected.target) {
        return Err(invalid("the proof is for another address"));
    }
    let hash = token_hash(expected.token_digest);
    let same = |claimed: &str| bool::from(claimed.as_bytes().ct_eq(hash.as_bytes()));
    if !text(claims, "ath").is_some_and(same) {
        return Err(invalid("the proof is for another token"));
    }
    if Thumbprint::parse(expected.bound_to) != Some(thumbprint) {
        return Err(invalid("the token is bound to another key"));
    }
    Ok(())
}

/// Judges when a proof was made, and says until when it could be used again.
fn judge_time(claims: &Map<String, Value>, now: SystemTime) -> Result<SystemTime, ProofError> {
    let invalid = ProofError::Invalid;
    let issued = claims.get("iat").and_then(Value::as_f64).ok_or_else(|| invalid("the proof has no time"))?;
    // Whole seconds of our clock are exact here for longer than it will be used.
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^52")]
    let (now_seconds, window) = (unix_seconds(now) as f64, WINDOW.as_secs() as f64);
    if (issued - now_seconds).abs() > window {
        return Err(invalid("the proof is too old, or from the future"));
    }
    // The clock is read in whole seconds, so it is accepted until one second after its window.
    let issued = Duration::try_from_secs_f64(issued).unwrap_or_default();
    Ok(UNIX_EPOCH + issued + WINDOW + Duration::from_secs(1))
}

/// Whether the nonce is accepted, and, if so, whether another should be given out.
fn judge_nonce(
    claims: &Map<String, Value>,
    nonces: Option<&Nonces>,
    now: SystemTime,
) -> Result<bool, ProofError> {
    let Some(nonces) = nonces else { return Ok(false) };
    match text(claims, "nonce") {
        Some(nonce) if nonces.accepts(nonce, now) => Ok(nonces.is_old(nonce, now)),
        _ => Err(ProofError::UseNonce),
    }
}

fn text<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c str> {
    claims.get(name).and_then(Value::as_str)
}

/// Thumbprints have one length, so the two cannot run into each other.
fn id(thumbprint: &Thumbprint, jti: &str) -> [u8; TAKEN_BYTES] {
    let digest: [u8; 32] =
        Sha256::new().chain_update(thumbprint.as_bytes()).chain_update(jti).finalize().into();
    let mut id = [0; TAKEN_BYTES];
    id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    id
}

impl Proved {
    /// The key that was proved to be there.
    pub const fn thumbprint(&self) -> Thumbprint {
        self.thumbprint
    }

    /// Whether the client should be given another nonce: the next one it sends will be too old.
    pub const fn wants_nonce(&self) -> bool {
        self.stale_nonce
    }

    /// Takes the proof once, and counts it for the principal of the token, who has a limited share of the store. It is not
    /// counted by key, because a client can make any number of keys.
    ///
    /// # Errors
    /// When it was taken before, or cannot be remembered. Only the first is a fault of the proof.
    #[cfg(feature = "server")]
    pub async fn take(
        self,
        store: &dyn toolwire_server::NonceStore,
        holder: &toolwire_server::CallerKey,
        now: SystemTime,
    ) -> Result<Thumbprint, toolwire_server::NonceError> {
        store.consume(Some(holder), self.id, self.until, now).await.map(|()| self.thumbprint)
    }
}

/// Where a request is addressed to: a URL of which scheme and host are compared without case, the port with its
/// default, the path byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    origin: String,
    path: String,
}

impl Target {
    /// Reads an absolute `http` or `https` URL without user, query or fragment.
    pub fn parse(url: &str) -> Option<Self> {
        let plain =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\' | b'"' | b'<' | b'>');
        if !url.bytes().all(plain) {
            return None;
        }
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let default = match scheme.as_str() {
            "https" => ":443",
            "http" => ":80",
            _ => return None,
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let authority = authority.strip_suffix(default).unwrap_or(authority);
        let authority = authority.strip_suffix(':').unwrap_or(authority);
        if authority.is_empty() || authority.contains('@') {
            return None;
        }
        let path = if path.is_empty() { "/" } else { path };
        Some(Self { origin: format!("{scheme}://{}", authority.to_ascii_lowercase()), path: path.to_owned() })
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid(reason) => reason,
            Self::UseNonce => "the proof needs a nonce that is not too old",
        })
    }
}

impl std::error::Error for ProofError {}
