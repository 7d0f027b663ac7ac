//! Regular expressions of schemas, which are ECMA-262 and here run on a smaller engine.

use regex_lite::RegexBuilder;

use super::Compiler;
use crate::schema::{MAX_ALL_PATTERN_BYTES, MAX_PATTERN_BYTES, node::Pattern, words};

/// The size that counts as one unit of cost.
const UNIT_BYTES: usize = 1024;

impl Compiler<'_> {
    /// Compiles a pattern; one the engine cannot run is listed and kept without its engine.
    pub(super) fn pattern(&mut self, source: &str) -> Pattern {
        let mut compiled = None;
        let left = MAX_ALL_PATTERN_BYTES.saturating_sub(self.pattern_bytes).min(MAX_PATTERN_BYTES);
        // The smallest size that suffices tells what matching costs, because for each character the engine
        // walks all states of the pattern.
        let mut units = 1;
        while source.len() <= left && units * UNIT_BYTES <= left {
            // An attempt that fails has taken its time, too.
            self.pattern_bytes += units * UNIT_BYTES;
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
}
