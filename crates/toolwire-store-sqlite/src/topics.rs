//! Topics of wakes as bytes.

use toolwire_store::{LogKey, NodeId, SessionKey, TaskId, Topic};

/// `None` for a topic that this version does not know.
pub(crate) fn to_bytes(topic: &Topic) -> Option<Vec<u8>> {
    Some(match topic {
        Topic::Ready => b"r".to_vec(),
        Topic::Task { id, session } => {
            let session = session.as_ref().map(|session| session.as_bytes().as_slice());
            [b"k", id.as_bytes().as_slice(), session.unwrap_or_default()].concat()
        }
        Topic::Log(key) => [b"l", key.to_bytes().as_slice()].concat(),
        Topic::Session(key) => [b"s", key.as_bytes().as_slice()].concat(),
        _ => return None,
    })
}

pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Topic> {
    let session = |bytes: &[u8]| bytes.try_into().ok().map(SessionKey::from_bytes);
    Some(match bytes.split_first()? {
        (b'r', []) => Topic::Ready,
        (b'k', rest) => {
            let (id, rest) = rest.split_first_chunk()?;
            let session = if rest.is_empty() { None } else { Some(session(rest)?) };
            Topic::Task { id: TaskId::from_bytes(*id), session }
        }
        (b's', rest) => Topic::Session(session(rest)?),
        (b'l', key) => Topic::Log(match key.split_first()? {
            (b't', rest) => {
                let (key, number) = rest.split_at_checked(SessionKey::BYTES)?;
                LogKey::Stream(session(key)?, u64::from_be_bytes(number.try_into().ok()?))
            }
            (b's', rest) => LogKey::Session(session(rest)?),
            (b'i', rest) => LogKey::Inbox(NodeId::from_bytes(rest.try_into().ok()?)),
            (b'c', []) => LogKey::Changes,
            _ => return None,
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_come_back_as_they_were() {
        let session = SessionKey::from_bytes([3; 32]);
        let id = TaskId::from_bytes([1; 24]);
        let topics = [
            Topic::Ready,
            Topic::Task { id, session: None },
            Topic::Task { id, session: Some(session) },
            Topic::Session(session),
            Topic::Log(LogKey::Stream(session, u64::MAX)),
            Topic::Log(LogKey::Session(session)),
            Topic::Log(LogKey::Inbox(NodeId::from_bytes([4; 8]))),
            Topic::Log(LogKey::Changes),
        ];
        for topic in topics {
            assert_eq!(to_bytes(&topic).and_then(|bytes| from_bytes(&bytes)), Some(topic));
        }
        for bytes in [b"".as_slice(), b"x", b"k1", b"s1", b"lt1", b"lx", b"rr"] {
            assert_eq!(from_bytes(bytes), None);
        }
    }
}
