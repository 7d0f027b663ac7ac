//! What a server asks clients to repeat, so that proofs cannot be made ahead of time.

use std::{fmt, time::Duration, time::SystemTime};

use toolwire_protocol::{
    Version,
    seal::{KeyRing, NONCE_BYTES},
};

use crate::clock::unix_seconds;

/// How long a nonce is the current one. It is accepted for as long again.
pub const NONCE_PERIOD: Duration = Duration::from_secs(5 * 60);

/// No nonce of ours is longer.
const MAX_NONCE_BYTES: usize = 256;

/// The revision plays no part here, and must not change between releases: replicas may differ in theirs.
const SEALED_AS: Version = Version::V2026_07_28;

/// Nonces that no server has to remember: each has the time it was made at, sealed. Replicas that have the same keys
/// accept each other's.
#[derive(Clone)]
pub struct Nonces {
    ring: KeyRing,
    audience: String,
}

impl Nonces {
    /// Nonces of the server with this identifier, sealed with these keys.
    pub fn new(ring: KeyRing, resource: &str) -> Self {
        // The same keys may seal other things.
        Self { ring, audience: format!("dpop nonce\n{resource}") }
    }

    /// A nonce. `entropy` has to be random, and other for each nonce.
    pub fn issue(&self, now: SystemTime, entropy: [u8; NONCE_BYTES]) -> String {
        self.ring.seal(entropy, &self.audience, SEALED_AS, &period(now).to_be_bytes())
    }

    /// Whether a nonce was issued in this period or in the last one.
    pub fn accepts(&self, nonce: &str, now: SystemTime) -> bool {
        self.period_of(nonce).is_some_and(|issued| {
            let current = period(now);
            issued == current || issued.checked_add(1) == Some(current)
        })
    }

    /// Whether it is time for another nonce: the period that this one was issued in has passed.
    pub fn is_old(&self, nonce: &str, now: SystemTime) -> bool {
        self.period_of(nonce) != Some(period(now))
    }

    fn period_of(&self, nonce: &str) -> Option<u64> {
        if nonce.len() > MAX_NONCE_BYTES {
            return None;
        }
        let opened = self.ring.open(nonce, &self.audience, SEALED_AS).ok()?;
        opened.plain.try_into().ok().map(u64::from_be_bytes)
    }
}

fn period(now: SystemTime) -> u64 {
    unix_seconds(now) / NONCE_PERIOD.as_secs()
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").field("ring", &self.ring).finish_non_exhaustive()
    }
}
