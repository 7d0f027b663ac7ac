//! What was said, in order.

use std::{collections::VecDeque, fmt};

/// How many messages a transcript keeps; the oldest are forgotten first.
pub const MAX_ENTRIES: usize = 10_000;

/// How many characters of one message are printed.
pub const MAX_PRINTED_CHARS: usize = 2_000;

/// Every message of a connection, both ways.
///
/// Its `Display` prints one line per message: `->` went to the server, `<-` came from it.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    entries: VecDeque<Entry>,
    forgotten: usize,
}

/// One message of a [`Transcript`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Who sent it.
    pub direction: Direction,
    /// The message as it was sent.
    pub text: String,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a wire has two ends")]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    FromServer,
}

impl Transcript {
    pub(crate) fn push(&mut self, direction: Direction, text: impl Into<String>) {
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
            self.forgotten += 1;
        }
        self.entries.push_back(Entry { direction, text: text.into() });
    }

    /// The messages, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToServer => "->",
            Self::FromServer => "<-",
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.direction)?;
        match self.text.char_indices().nth(MAX_PRINTED_CHARS) {
            Some((end, _)) => {
                write!(f, "{}… ({} bytes)", self.text.get(..end).unwrap_or_default(), self.text.len())
            }
            None => f.write_str(&self.text),
        }
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten > 0 {
            writeln!(f, "({} older messages are forgotten)", self.forgotten)?;
        }
        for (position, entry) in self.entries.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            entry.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_message_with_arrows() {
        let mut transcript = Transcript::default();
        transcript.push(Direction::ToServer, "{\"id\":1}");
        transcript.push(Direction::FromServer, "ü".repeat(MAX_PRINTED_CHARS + 1));
        let text = transcript.to_string();
        let (first, second) = text.split_once('\n').unwrap();
        assert_eq!(first, "-> {\"id\":1}");
        assert!(second.starts_with("<- ü") && second.ends_with("ü… (4002 bytes)"), "{second}");
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut transcript = Transcript::default();
        for number in 0..MAX_ENTRIES + 2 {
            transcript.push(Direction::ToServer, number.to_string());
        }
        assert_eq!(transcript.entries().count(), MAX_ENTRIES);
        assert!(transcript.to_string().starts_with("(2 older messages are forgotten)\n-> 2\n"));
    }
}
