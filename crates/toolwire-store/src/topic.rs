//! Topics as texts without spaces, for those who carry wakes from node to node.

use std::{fmt, str::FromStr};

use crate::{
    LogKey, NodeId, NotAnId, SessionKey, TaskId, Topic,
    hex::{decode, decode_exact, encode},
};

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Task { id, session: None } => write!(f, "task:{}", encode(id.as_bytes())),
            Self::Task { id, session: Some(session) } => {
                write!(f, "task:{}:{}", encode(id.as_bytes()), encode(session.as_bytes()))
            }
            Self::Log(key) => write!(f, "log:{}", encode(&key.to_bytes())),
            Self::Session(key) => write!(f, "session:{}", encode(key.as_bytes())),
        }
    }
}

impl FromStr for Topic {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        parse(text).ok_or(NotAnId)
    }
}

fn parse(text: &str) -> Option<Topic> {
    let (kind, name) = text.split_once(':').unwrap_or((text, ""));
    let session = |text: &str| decode_exact(text).map(SessionKey::from_bytes);
    match (kind, name) {
        ("ready", "") => Some(Topic::Ready),
        ("task", name) => {
            let (id, of) = name.split_once(':').map_or((name, None), |(id, of)| (id, Some(of)));
            let session = match of {
                Some(of) => Some(session(of)?),
                None => None,
            };
            Some(Topic::Task { id: decode_exact(id).map(TaskId::from_bytes)?, session })
        }
        ("log", name) => LogKey::from_bytes(&decode(name)?).map(Topic::Log),
        ("session", name) => session(name).map(Topic::Session),
        _ => None,
    }
}

impl LogKey {
    /// The one that has these bytes, if there is one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b't', rest) => {
                let (session, number) = rest.split_at_checked(SessionKey::BYTES)?;
                let session = SessionKey::from_bytes(session.try_into().ok()?);
                Some(Self::Stream(session, u64::from_be_bytes(number.try_into().ok()?)))
            }
            (b's', rest) => Some(Self::Session(SessionKey::from_bytes(rest.try_into().ok()?))),
            (b'i', rest) => Some(Self::Inbox(NodeId::from_bytes(rest.try_into().ok()?))),
            (b'c', []) => Some(Self::Changes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_come_back_from_their_texts() {
        let session = SessionKey::from_bytes([7; 32]);
        let id = TaskId::from_bytes([9; 24]);
        for topic in [
            Topic::Ready,
            Topic::Task { id, session: None },
            Topic::Task { id, session: Some(session) },
            Topic::Log(LogKey::Stream(session, 1 << 40)),
            Topic::Log(LogKey::Session(session)),
            Topic::Log(LogKey::Inbox(NodeId::from_bytes([1; 8]))),
            Topic::Log(LogKey::Changes),
            Topic::Session(session),
        ] {
            let text = topic.to_string();
            assert!(!text.contains(' '), "{text}");
            assert_eq!(text.parse(), Ok(topic));
        }
        for text in [
            "",
            "readyx",
            "ready:x",
            "task:",
            "task:00",
            "log:",
            "log:74",
            "session:07",
            "task:0:0",
            "other:00",
        ] {
            assert_eq!(text.parse::<Topic>(), Err(NotAnId), "{text}");
        }
    }
}
