//! Regular expressions of schemas, which are ECMA-262 and here run on a smaller engine.

use regex_lite::RegexBuilder;

use super::Compiler;
use crate::schema::{MAX_ALL_PATTERN_BYTES, MAX_PATTERN_BYTES, node::Pattern, words};

/// The size that counts as one unit of cost.
const UNIT_BYTES: usize = 1024;

/// Reading a longer source takes more than its length: the engine keeps the names of its groups sorted in a list, which
/// takes the square of their number.
const SHORT_SOURCE_BYTES: usize = 2048;

impl Compiler<'_> {
    /// Compiles a pattern; one the engine cannot run is listed and kept without its engine.
    pub(super) fn pattern(&mut self, source: &str) -> Pattern {
        let mut compiled = None;
        // The smallest size that suffices tells what matching costs, because for each character the engine
        // walks all states of the pattern. Each attempt reads the source again, so a long one is not tried in small
        // sizes.
        let mut units = source.len().div_ceil(UNIT_BYTES).next_power_of_two();
        while self.pay_for_attempt(source, units * UNIT_BYTES) {
            if let Ok(regex) = RegexBuilder::new(source).size_limit(units * UNIT_BYTES).build() {
                compiled = Some(regex);
                break;
            }
            units *= 2;
        }
        if compiled.is_none() {
            self.skip(words::shortened(source));
        }
        let weight = u64::try_from(units).unwrap_or(u64::MAX);
        Pattern { source: words::shortened(source), regex: compiled, weight }
    }

    /// Takes an attempt to compile `source` to so many bytes from the budget, whether or not it will succeed. Returns
    /// whether it may be made.
    fn pay_for_attempt(&mut self, source: &str, bytes: usize) -> bool {
        let reading = source.len().saturating_mul(1 + source.len() / SHORT_SOURCE_BYTES);
        let spent = self.pattern_bytes.saturating_add(reading.max(bytes));
        let pays = bytes <= MAX_PATTERN_BYTES && spent <= MAX_ALL_PATTERN_BYTES;
        if pays {
            self.pattern_bytes = spent;
        }
        pays
    }
}
