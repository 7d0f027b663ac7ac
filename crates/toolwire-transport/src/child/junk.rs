//! What a child writes to its standard output although it is not a message.

use std::collections::VecDeque;

/// How many of the last junk lines are kept.
pub const JUNK_LINES: usize = 5;

/// How much of a junk line is kept.
pub const JUNK_LINE_BYTES: usize = 512;

/// The lines on a child's standard output that could not be messages and were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Junk {
    /// How many there were.
    pub count: u64,
    /// The last [`JUNK_LINES`] of them, each cut to [`JUNK_LINE_BYTES`].
    pub lines: VecDeque<String>,
}

impl Junk {
    pub(super) fn add(&mut self, line: &[u8]) {
        self.count = self.count.saturating_add(1);
        if self.lines.len() == JUNK_LINES {
            self.lines.pop_front();
        }
        let kept = line.get(..JUNK_LINE_BYTES).unwrap_or(line);
        self.lines.push_back(String::from_utf8_lossy(kept).into_owned());
    }
}

/// Whether a line can be neither an object nor a batch of them.
///
/// A bracket alone proves nothing: `[info] listening` is how many programs log.
pub(super) fn is_junk(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    match line.split_first() {
        Some((b'{', _)) => false,
        Some((b'[', rest)) => !matches!(rest.trim_ascii_start().first(), Some(b'{' | b']')),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_and_batches_are_messages() {
        for message in ["{}", "  {\"a\":1}", "[{}]", "[ {}, {} ]", "[]"] {
            assert!(!is_junk(message.as_bytes()), "{message}");
        }
        for junk in ["", "Listening on stdio", "[info] ready", "\"text\"", "1", "[1,2]"] {
            assert!(is_junk(junk.as_bytes()), "{junk}");
        }
    }

    #[test]
    fn evidence_is_bounded() {
        let mut junk = Junk::default();
        for number in 0..100 {
            junk.add(format!("{number} {}", "ä".repeat(1000)).as_bytes());
        }
        assert_eq!(junk.count, 100);
        assert_eq!(junk.lines.len(), JUNK_LINES);
        assert!(junk.lines.iter().all(|line| line.len() <= JUNK_LINE_BYTES + 3));
        assert!(junk.lines.back().unwrap().starts_with("99 ä"));
    }
}
