//! The journal of a task: what was asked, answered and done in it so far, one entry after the other.
//!
//! Entries are only ever added, and are found by name and key, never by position. `fold` makes of them what the next
//! run of the handler starts with. Whoever keeps a journal need not read it: the values inside the entries may be sealed,
//! and have to be opened before they are folded.

mod fold;

pub use fold::{Folded, JournalError, OpenQuestion, check_key, fold, unfold, wire_key};

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};

use crate::RawJson;

/// How entries are written. A process reads only journals of a format that it knows.
pub const FORMAT: u32 = 1;

/// One entry of a journal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// A step was done, and this came of it. It is never run again.
    Step {
        /// Its name.
        name: String,
        /// Its result.
        v: RawJson,
    },
    /// A step that may run at most once was about to start.
    Begun {
        /// Its name.
        name: String,
    },
    /// A question was asked.
    Ask {
        /// The handler's name for it.
        key: String,
        /// The key it has for the client, which stands for this question alone.
        wire: String,
        /// A digest of what was asked, to notice when the same key asks something else.
        digest: String,
        /// The question; none when it was answered before there was a task.
        q: Option<RawJson>,
    },
    /// A question was answered.
    Answer {
        /// The key that the question has for the client.
        wire: String,
        /// The answer.
        reply: Reply,
    },
    /// The last answer to a question did not fit, and the question may be asked once more.
    Unfit {
        /// The handler's name for it.
        key: String,
    },
    /// A question is no longer asked. Should it be asked again, it gets another key: the client may have sent an answer
    /// that nobody took, and answers each key once.
    Closed {
        /// The key that the question had for the client.
        wire: String,
    },
    /// The task sleeps.
    Timer {
        /// Its name.
        name: String,
        /// Until when, in milliseconds since 1970 by the clock of the store.
        until: u64,
    },
    /// What the handler itself wants to remember until it runs again; none to forget what it had.
    User {
        /// The value.
        v: Option<RawJson>,
    },
}

/// What came back for a question.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a request has a result or an error")]
pub enum Reply {
    /// The result of the request that the question is.
    Value(RawJson),
    /// The error that it was refused with, as a JSON-RPC error object.
    Error(RawJson),
}

impl Entry {
    /// A step that was done.
    pub fn step(name: impl Into<String>, v: RawJson) -> Self {
        Self::Step { name: name.into(), v }
    }

    /// An answer to the question with this key for the client.
    pub fn answer(wire: impl Into<String>, v: RawJson) -> Self {
        Self::Answer { wire: wire.into(), reply: Reply::Value(v) }
    }

    /// An error instead of an answer.
    pub fn refusal(wire: impl Into<String>, error: RawJson) -> Self {
        Self::Answer { wire: wire.into(), reply: Reply::Error(error) }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// When it is of a kind that is not known here, or lacks something. Nothing of a journal is ever skipped.
    pub fn parse(entry: &RawJson) -> Result<Self, JournalError> {
        serde_json::from_str(entry.text()).map_err(|error| JournalError::Unreadable(error.to_string()))
    }

    /// The word for what kind of entry it is.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Step { .. } => "step",
            Self::Begun { .. } => "begun",
            Self::Ask { .. } => "ask",
            Self::Answer { .. } => "answer",
            Self::Unfit { .. } => "unfit",
            Self::Closed { .. } => "closed",
            Self::Timer { .. } => "timer",
            Self::User { .. } => "user",
        }
    }

    /// The name of a step or a timer, or the key of a question; empty for what has none.
    pub fn name(&self) -> &str {
        match self {
            Self::Step { name, .. } | Self::Begun { name } | Self::Timer { name, .. } => name,
            Self::Ask { wire, .. } | Self::Answer { wire, .. } | Self::Closed { wire } => wire,
            Self::Unfit { key } => key,
            Self::User { .. } => "",
        }
    }

    /// The value inside, which is what may have to be sealed. Bind it to [`kind`](Self::kind) and [`name`](Self::name),
    /// so that it cannot be moved to another entry.
    pub const fn value(&self) -> Option<&RawJson> {
        match self {
            Self::Step { v, .. } | Self::Answer { reply: Reply::Value(v) | Reply::Error(v), .. } => Some(v),
            Self::Ask { q: v, .. } | Self::User { v } => v.as_ref(),
            Self::Begun { .. } | Self::Unfit { .. } | Self::Closed { .. } | Self::Timer { .. } => None,
        }
    }

    /// The same to be replaced.
    pub const fn value_mut(&mut self) -> Option<&mut RawJson> {
        match self {
            Self::Step { v, .. } | Self::Answer { reply: Reply::Value(v) | Reply::Error(v), .. } => Some(v),
            Self::Ask { q: v, .. } | Self::User { v } => v.as_mut(),
            Self::Begun { .. } | Self::Unfit { .. } | Self::Closed { .. } | Self::Timer { .. } => None,
        }
    }

    /// How many bytes it takes, about: what limits of a journal count.
    pub fn weight(&self) -> usize {
        let texts = match self {
            Self::Ask { key, digest, .. } => key.len() + digest.len(),
            _ => 0,
        };
        self.name().len() + texts + self.value().map_or(0, |v| v.text().len()) + ENTRY_BYTES
    }
}

/// What an entry takes besides its texts.
const ENTRY_BYTES: usize = 32;

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("k", self.kind())?;
        match self {
            Self::Step { name, v } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("v", v)?;
            }
            Self::Begun { name } => map.serialize_entry("name", name)?,
            Self::Ask { key, wire, digest, q } => {
                map.serialize_entry("key", key)?;
                map.serialize_entry("wire", wire)?;
                map.serialize_entry("digest", digest)?;
                if let Some(q) = q {
                    map.serialize_entry("q", q)?;
                }
            }
            Self::Answer { wire, reply } => {
                map.serialize_entry("wire", wire)?;
                match reply {
                    Reply::Value(v) => map.serialize_entry("v", v)?,
                    Reply::Error(error) => map.serialize_entry("error", error)?,
                }
            }
            Self::Unfit { key } => map.serialize_entry("key", key)?,
            Self::Closed { wire } => map.serialize_entry("wire", wire)?,
            Self::Timer { name, until } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("until", until)?;
            }
            Self::User { v } => {
                if let Some(v) = v {
                    map.serialize_entry("v", v)?;
                }
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Form::deserialize(deserializer)?.into_entry().map_err(D::Error::custom)
    }
}

/// The members that any entry may have. One that is not among them is refused: whoever wrote it meant something by it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    k: String,
    name: Option<String>,
    key: Option<String>,
    wire: Option<String>,
    digest: Option<String>,
    until: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    v: Option<RawJson>,
    #[serde(default, deserialize_with = "present")]
    q: Option<RawJson>,
    #[serde(default, deserialize_with = "present")]
    error: Option<RawJson>,
}

/// A member that is there is a value, `null` included.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

impl Form {
    fn into_entry(mut self) -> Result<Entry, Misfit> {
        let kind = std::mem::take(&mut self.k);
        let entry = match kind.as_str() {
            "step" => {
                Entry::Step { name: need(&kind, "name", &mut self.name)?, v: need(&kind, "v", &mut self.v)? }
            }
            "begun" => Entry::Begun { name: need(&kind, "name", &mut self.name)? },
            "ask" => Entry::Ask {
                key: need(&kind, "key", &mut self.key)?,
                wire: need(&kind, "wire", &mut self.wire)?,
                digest: need(&kind, "digest", &mut self.digest)?,
                q: self.q.take(),
            },
            "answer" => Entry::Answer {
                wire: need(&kind, "wire", &mut self.wire)?,
                reply: match (self.v.take(), self.error.take()) {
                    (Some(v), None) => Reply::Value(v),
                    (None, Some(error)) => Reply::Error(error),
                    (Some(_), Some(_)) => return Err(Misfit::Odd(kind, "error")),
                    (None, None) => return Err(Misfit::Missing(kind, "v")),
                },
            },
            "unfit" => Entry::Unfit { key: need(&kind, "key", &mut self.key)? },
            "closed" => Entry::Closed { wire: need(&kind, "wire", &mut self.wire)? },
            "timer" => Entry::Timer {
                name: need(&kind, "name", &mut self.name)?,
                until: need(&kind, "until", &mut self.until)?,
            },
            "user" => Entry::User { v: self.v.take() },
            _ => return Err(Misfit::Unknown(kind)),
        };
        match self.left() {
            Some(member) => Err(Misfit::Odd(kind, member)),
            None => Ok(entry),
        }
    }

    /// A member that the kind of entry does not have.
    const fn left(&self) -> Option<&'static str> {
        match self {
            Self { name: Some(_), .. } => Some("name"),
            Self { key: Some(_), .. } => Some("key"),
            Self { wire: Some(_), .. } => Some("wire"),
            Self { digest: Some(_), .. } => Some("digest"),
            Self { until: Some(_), .. } => Some("until"),
            Self { v: Some(_), .. } => Some("v"),
            Self { q: Some(_), .. } => Some("q"),
            Self { error: Some(_), .. } => Some("error"),
            _ => None,
        }
    }
}

fn need<T>(kind: &str, member: &'static str, value: &mut Option<T>) -> Result<T, Misfit> {
    value.take().ok_or_else(|| Misfit::Missing(kind.to_owned(), member))
}

/// Why something is not an entry.
enum Misfit {
    Unknown(String),
    Missing(String, &'static str),
    Odd(String, &'static str),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(kind) => {
                write!(f, "entries of kind {kind:?} are not known to this version; a newer one wrote it")
            }
            Self::Missing(kind, member) => write!(f, "the entry of kind {kind:?} has no {member:?}"),
            Self::Odd(kind, member) => write!(f, "the entry of kind {kind:?} has the odd member {member:?}"),
        }
    }
}

#[cfg(test)]
mod tests;
