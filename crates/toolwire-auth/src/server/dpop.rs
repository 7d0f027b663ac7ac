//! Which proofs of possession are asked for.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use toolwire_protocol::seal::{KeyError, KeyRing, NONCE_BYTES};
use toolwire_server::{CallerKey, MemoryNonces, NonceError, NonceStore, Principal};

use super::{
    guard::{Refusal, VerifiedToken},
    verify::{PresentedToken, Unavailable},
};
use crate::{
    dpop::{self, Expected, NONCE_HEADER, Nonces, ProofError, Target},
    entropy::{Entropy, SystemEntropy},
    jose::Algorithm,
};

/// The number of proofs that are remembered, so that none is used twice: 13,000 new ones in each second, as each lasts for a little
/// more than a minute. All together take up to 60 MB, and up to 180 MB where each is of another user.
const MAX_PROOFS: usize = 1 << 20;

/// The number of proofs that may be of one user: 850 new ones in each second.
const MAX_PROOFS_OF_A_USER: usize = MAX_PROOFS / 16;

/// The time between two warnings that proofs cannot be remembered.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

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
        let used = MemoryNonces::new(MAX_PROOFS).limit_per_caller(MAX_PROOFS_OF_A_USER);
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

    /// Sets where proofs that were used are remembered. They are counted by user: by issuer and subject of the token, and
    /// not by its key or its client, of which one user can have many. While there is no room, the answer is 503.
    ///
    /// Default: in memory, a million of them, which is some 13,000 requests in each second, and a sixteenth of that for
    /// one user. It grows with their number, to 60 MB or 180 MB. Replicas need a store that they share.
    pub fn store(mut self, store: impl NonceStore + 'static) -> Self {
        self.used = Arc::new(store);
        self
    }

    /// Ready to check proofs for a resource; `None` when no proof could ever be for it.
    pub(super) fn checks(self, resource: &str) -> Option<Proofs> {
        let target = Target::parse(resource.split('?').next().unwrap_or_default())?;
        let nonces = self.secrets.map(|secrets| Nonces::new(secrets, resource));
        Some(Proofs {
            required: self.required,
            algorithms: self.algorithms,
            nonces,
            used: self.used,
            target,
            warned: Mutex::default(),
        })
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
    /// When it was last told that proofs cannot be remembered.
    warned: Mutex<Option<SystemTime>>,
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
    ) -> Result<(), Refusal> {
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
        let outcome =
            dpop::check(proof, &expected, now)?.take(&*self.used, &holder(&known.principal), now).await;
        match outcome {
            Ok(_) => Ok(()),
            Err(NonceError::Used) => Err(ProofError::Invalid("the proof was used before").into()),
            // The proof is good: a client that was told otherwise would give up its token.
            Err(why) => Err(self.unavailable(why, now)),
        }
    }

    /// Says that a proof cannot be remembered, and warns of it once in a while.
    fn unavailable(&self, why: NonceError, now: SystemTime) -> Refusal {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due =
            warned.is_none_or(|last| now.duration_since(last).is_ok_and(|since| since >= WARNING_PAUSE));
        if is_due {
            tracing::warn!(%why, "proofs of possession are refused because they cannot be remembered");
            *warned = Some(now);
        }
        Refusal::Verify(Unavailable::new(format!("a proof of possession: {why}")).into())
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

/// Returns for whom proofs are counted: the user, with whatever client, or else the client.
fn holder(who: &Principal) -> CallerKey {
    let of = if who.is_client() { Principal::client } else { Principal::builder };
    let mut user = of(who.subject());
    if let Some(issuer) = who.issuer() {
        user = user.issuer(issuer);
    }
    CallerKey::principal(user.build().key())
}

impl fmt::Debug for Proofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs").field("required", &self.required).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::dpop::WINDOW;

    #[tokio::test]
    async fn one_client_at_a_high_rate_is_served_for_ever_by_default() {
        const RATE: u64 = 800;
        let (store, client) = (Dpop::accepted().used, holder(&Principal::new("gateway")));
        for number in 0..RATE * 200 {
            let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000) + Duration::from_secs(number) / 800;
            let mut nonce = [0; NONCE_BYTES];
            nonce[..8].copy_from_slice(&number.to_be_bytes());
            let until = now + WINDOW + Duration::from_secs(1);
            assert_eq!(store.consume(Some(&client), nonce, until, now).await, Ok(()), "{number}");
        }
    }

    #[test]
    fn proofs_are_counted_by_user_whatever_the_client() {
        let who = || Principal::builder("eve").issuer("https://login.example");
        let eve = holder(&who().client_id("one").build());
        assert_eq!(holder(&who().client_id("two").build()), eve);
        assert_ne!(holder(&Principal::builder("eve").issuer("https://other.example").build()), eve);
        assert_ne!(holder(&Principal::builder("ada").issuer("https://login.example").build()), eve);
    }
}
