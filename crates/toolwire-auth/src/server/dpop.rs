//! Which proofs of possession are asked for.

use std::{fmt, sync::Arc, time::SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use toolwire_protocol::seal::{KeyError, KeyRing, NONCE_BYTES};
use toolwire_server::{MemoryNonces, NonceStore};

use super::{guard::VerifiedToken, verify::PresentedToken};
use crate::{
    dpop::{self, Expected, NONCE_HEADER, Nonces, ProofError, Target},
    entropy::{Entropy, SystemEntropy},
    jose::Algorithm,
};

/// How many proofs are remembered so that none is used twice. They last for two minutes.
const MAX_PROOFS: usize = 65_536;

/// How many of them may be of one key.
const MAX_PROOFS_OF_A_KEY: usize = 4_096;

/// Whether tokens have to come with a proof that the client holds the key that they are bound to (RFC 9449).
///
/// Without it, tokens that are bound to a key are refused: nobody could check the proof.
#[derive(Clone)]
#[must_use]
pub struct Dpop {
    required: bool,
    algorithms: Vec<Algorithm>,
    secrets: Option<KeyRing>,
    used: Arc<dyn NonceStore>,
}

impl Dpop {
    /// Every token has to be bound to a key.
    pub fn required() -> Self {
        Self { required: true, ..Self::accepted() }
    }

    /// Tokens that are bound to a key come with a proof; others are taken as they are.
    pub fn accepted() -> Self {
        let used = MemoryNonces::new(MAX_PROOFS).limit_per_caller(MAX_PROOFS_OF_A_KEY);
        Self { required: false, algorithms: Algorithm::ALL.to_vec(), secrets: None, used: Arc::new(used) }
    }

    /// The algorithms of proofs that are accepted. Default: all that this crate has.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Asks for a nonce in each proof, so that none can be made ahead of time. The nonces are sealed with the first of
    /// these secrets, and those of all of them are accepted, so that replicas agree. Default: no nonces.
    ///
    /// # Errors
    /// When a secret is too short, or there is none.
    pub fn nonces<S: AsRef<[u8]>>(mut self, secrets: impl IntoIterator<Item = S>) -> Result<Self, KeyError> {
        self.secrets = Some(KeyRing::new(secrets)?);
        Ok(self)
    }

    /// Where proofs that were used are remembered. Default: in memory, 65,536 of them, and 4,096 of one key; replicas need
    /// a store that they share.
    pub fn store(mut self, store: impl NonceStore + 'static) -> Self {
        self.used = Arc::new(store);
        self
    }

    /// Ready to check proofs for a resource; `None` when no proof could ever be for it.
    pub(super) fn checks(self, resource: &str) -> Option<Proofs> {
        let target = Target::parse(resource.split('?').next().unwrap_or_default())?;
        let nonces = self.secrets.map(|secrets| Nonces::new(secrets, resource));
        Some(Proofs { required: self.required, algorithms: self.algorithms, nonces, used: self.used, target })
    }
}

impl fmt::Debug for Dpop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dpop")
            .field("required", &self.required)
            .field("algorithms", &self.algorithms)
            .field("nonces", &self.secrets.is_some())
            .finish_non_exhaustive()
    }
}

/// Checks proofs.
pub(super) struct Proofs {
    pub(super) required: bool,
    pub(super) algorithms: Vec<Algorithm>,
    nonces: Option<Nonces>,
    used: Arc<dyn NonceStore>,
    target: Target,
}

impl Proofs {
    /// Whether a token is used by whoever it was given to.
    pub(super) async fn check(
        &self,
        token: &PresentedToken,
        known: &VerifiedToken,
        method: &str,
        proof: Option<&HeaderValue>,
        now: SystemTime,
    ) -> Result<(), ProofError> {
        let bound_to = known.key.as_deref().ok_or(ProofError::Invalid("the token is not bound to a key"))?;
        let proof = proof.ok_or(ProofError::Invalid("there is no proof"))?;
        let proof = proof.to_str().map_err(|_| ProofError::Invalid("the proof is not text"))?;
        let expected = Expected {
            method,
            target: &self.target,
            token_digest: token.digest(),
            bound_to,
            algorithms: &self.algorithms,
            nonces: self.nonces.as_ref(),
        };
        // Last of all it is used up: a proof that fails otherwise can be sent again.
        dpop::check(proof, &expected, now)?.take(&*self.used).await.map(drop)
    }

    /// Gives the client a nonce for its next proof.
    pub(super) fn give_nonce(&self, headers: &mut HeaderMap, now: SystemTime) {
        let Some(nonces) = &self.nonces else { return };
        let mut entropy = [0; NONCE_BYTES];
        if SystemEntropy.fill(&mut entropy).is_err() {
            // It asks again, and is told again that it needs one.
            return;
        }
        if let Ok(nonce) = HeaderValue::try_from(nonces.issue(now, entropy)) {
            headers.insert(HeaderName::from_static(NONCE_HEADER), nonce);
        }
    }
}

impl fmt::Debug for Proofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs").field("required", &self.required).finish_non_exhaustive()
    }
}
