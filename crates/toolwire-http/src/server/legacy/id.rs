//! The names of sessions, streams and events.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// How many random bytes a session id has: 144 bits, so that nobody guesses one, and no padding in its text.
const SESSION_ID_BYTES: usize = 18;

/// How long its text is. That is what is kept, so that it need not be decoded for each request.
const SESSION_ID_CHARS: usize = 24;

/// The name of a session, which nobody can guess. Who knows it can use the session, so it belongs in no log.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId([u8; SESSION_ID_CHARS]);

impl SessionId {
    /// A new one, from the random numbers of the operating system.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SESSION_ID_BYTES];
        getrandom::fill(&mut bytes)?;
        let mut text = [b'A'; SESSION_ID_CHARS];
        // There is room for all of it.
        let _ = URL_SAFE_NO_PAD.encode_slice(bytes, &mut text);
        Ok(Self(text))
    }

    /// The text that goes into `Mcp-Session-Id`: visible ASCII.
    pub fn text(&self) -> String {
        self.0.iter().copied().map(char::from).collect()
    }

    /// Reads what a client sent; `None` for a text that was never one of ours.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text: [u8; SESSION_ID_CHARS] = text.try_into().ok()?;
        let ours = |char: &u8| char.is_ascii_alphanumeric() || matches!(char, b'-' | b'_');
        // All of them are looked at, which is quicker than to stop at the first that is not.
        text.iter().fold(true, |all, char| all & ours(char)).then_some(Self(text))
    }
}

/// Shows enough to tell two sessions apart, and not enough to use one.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({}…)", self.text().get(..6).unwrap_or_default())
    }
}

/// One stream of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a pair of names")]
pub struct StreamKey {
    /// The session.
    pub session: SessionId,
    /// Its stream; 0 is the one for messages that nobody asked for.
    pub stream: u64,
}

/// The place of an event in its session: which stream, and where in it.
///
/// The text form is what clients send back as `Last-Event-ID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    /// Events count from 1. 0 is the beginning, before all of them.
    pub(super) sequence: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.sequence)
    }
}

/// The text is not an event id of ours.
#[derive(Debug)]
pub(super) struct NotAnEventId;

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        let (stream, sequence) = text.split_once('-').ok_or(NotAnEventId)?;
        Ok(Self { stream: number(stream)?, sequence: number(sequence)? })
    }
}

/// Only the digits that we write ourselves: `u64::from_str` takes a plus sign as well.
fn number(text: &str) -> Result<u64, NotAnEventId> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(NotAnEventId)
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use toolwire_transport::internal::QuickHash;

    use super::*;

    #[test]
    fn session_ids_are_visible_ascii_and_come_back() {
        let id = SessionId::random().unwrap();
        let text = id.text();
        assert_eq!(text.len(), 24);
        assert!(text.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        assert_eq!(SessionId::parse(text.as_bytes()), Some(id));
        assert_ne!(SessionId::random().unwrap(), id);
        assert!(!format!("{id:?}").contains(&text));
    }

    #[test]
    fn ids_are_spread_over_a_table_as_chance_would() {
        let hashing = QuickHash::default();
        let mut places = [0_u32; 256];
        for _ in 0..256 * 64 {
            let hash = hashing.hash_one(SessionId::random().unwrap());
            // A table looks at the lowest bits and at the highest.
            places[usize::try_from((hash ^ hash >> 57) & 0xff).unwrap()] += 1;
        }
        // The deviation is 8, so this is nine times as much.
        assert!(places.iter().all(|count| (64 - 56..64 + 72).contains(count)), "{places:?}");
        let id = SessionId::random().unwrap();
        assert_eq!(hashing.hash_one(id), hashing.hash_one(id));
        assert_ne!(hashing.hash_one(id), QuickHash::default().hash_one(id));
    }

    #[test]
    fn other_texts_are_no_session_ids() {
        let longer = SessionId::random().unwrap().text() + "AAAA";
        for text in ["", "AAAA", "not base64 at all, really", "AAAAAAAAAAAAAAAAAAAAAAA=", &longer] {
            assert_eq!(SessionId::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn event_ids_come_back_and_nothing_else_passes_for_one() {
        let id: EventId = "3-17".parse().unwrap();
        assert_eq!(id, EventId { stream: 3, sequence: 17 });
        assert_eq!(id.to_string(), "3-17");
        for text in ["", "-", "3", "3-", "-3", "+3-1", "3-+1", "3-1-1", "3 -1", "99999999999999999999-1"] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }
}
