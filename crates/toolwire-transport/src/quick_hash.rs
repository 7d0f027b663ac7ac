//! A quick hash for tables of ours.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Hashes the keys of a table, several times as quickly as the usual hash: a multiplication for 16 bytes.
///
/// Each table has a key of its own, so nobody can choose what is looked up or put there to be in one place. Whoever could
/// watch the hashes themselves might; it is for tables that nobody outside sees, and that are limited in size.
#[derive(Clone, Debug)]
pub struct QuickHash {
    seed: u64,
    factor: u64,
}

impl Default for QuickHash {
    fn default() -> Self {
        let random = RandomState::new();
        Self { seed: random.hash_one("seed"), factor: random.hash_one("factor") }
    }
}

impl BuildHasher for QuickHash {
    type Hasher = QuickHasher;

    #[inline]
    fn build_hasher(&self) -> QuickHasher {
        QuickHasher { hash: self.seed, factor: self.factor }
    }
}

/// What [`QuickHash`] hashes with.
#[derive(Debug)]
pub struct QuickHasher {
    hash: u64,
    factor: u64,
}

impl QuickHasher {
    #[inline]
    fn add(&mut self, low: u64, high: u64) {
        let product = u128::from(self.hash ^ low) * u128::from(self.factor ^ high);
        let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
        self.hash = u64::try_from(low ^ high).unwrap_or_default();
    }

    #[inline]
    fn add_bytes(&mut self, bytes: [u8; 16]) {
        let [low, high] = [u128::from_le_bytes(bytes), u128::from_le_bytes(bytes) >> 64]
            .map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or_default());
        self.add(low, high);
    }
}

impl Hasher for QuickHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<16>();
        for sixteen in whole {
            self.add_bytes(*sixteen);
        }
        // There are never more than 15, so the last byte has room for how many.
        let mut last = [0; 16];
        for (place, byte) in last.iter_mut().zip(rest) {
            *place = *byte;
        }
        last[15] = u8::try_from(rest.len()).unwrap_or_default() + 1;
        self.add_bytes(last);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.add(number.into(), 0);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.add(number, 0);
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn texts_that_are_alike_have_hashes_that_are_not() {
        let hash = QuickHash::default();
        let texts = (0..100_usize).flat_map(|length| {
            let changed = (0..length).map(move |place| {
                let mut text = vec![b'x'; length];
                text[place] = b'y';
                text
            });
            changed.chain([vec![b'x'; length], vec![0; length]])
        });
        let texts: HashSet<Vec<u8>> = texts.collect();
        let mut hashes: Vec<u64> = texts.iter().map(|text| hash.hash_one(text)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), texts.len());
        // A table looks at the lowest bits for the place, and at the highest seven before it compares.
        for bits in [|hash: &u64| hash % 128, |hash: &u64| hash >> 57] {
            let mut used = [0_usize; 128];
            for hash in &hashes {
                used[usize::try_from(bits(hash)).unwrap()] += 1;
            }
            assert!(used.iter().all(|count| (10..100).contains(count)), "{used:?}");
        }
    }

    #[test]
    fn no_two_tables_have_the_same_hashes() {
        assert_ne!(QuickHash::default().hash_one("echo"), QuickHash::default().hash_one("echo"));
    }
}
