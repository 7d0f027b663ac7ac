//! Randomness, and a source without any for tests.

use std::{
    error, fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

/// Gives bytes that nobody can guess.
pub trait Entropy: Send + Sync + 'static {
    /// Fills a buffer, or leaves it unusable and says so.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The randomness of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(bytes).map_err(|_| NoEntropy)
    }
}

/// The system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEntropy;

impl fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system gave no random bytes")
    }
}

impl error::Error for NoEntropy {}

/// Bytes that anybody can guess, for transcripts in tests: the first buffer is filled with ones, the next with twos.
#[derive(Clone, Debug, Default)]
pub struct CountedEntropy(Arc<AtomicU8>);

impl Entropy for CountedEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_bytes_differ() {
        let (mut one, mut two) = ([0; 64], [0; 64]);
        SystemEntropy.fill(&mut one).unwrap();
        SystemEntropy.fill(&mut two).unwrap();
        assert_ne!(one, two);
    }

    #[test]
    fn counted_bytes_can_be_foretold() {
        let (entropy, mut bytes) = (CountedEntropy::default(), [0; 2]);
        entropy.fill(&mut bytes).unwrap();
        entropy.clone().fill(&mut bytes).unwrap();
        assert_eq!(bytes, [2, 2]);
    }
}
