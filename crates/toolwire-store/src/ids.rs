//! The names of what is stored. All are bytes of a fixed length; randomness comes in from outside.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A text is not the name that it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is not an id of this kind")
    }
}

impl std::error::Error for NotAnId {}

/// A name of `$bytes` bytes, whose text is their base64url without padding. They are ordered by their bytes, not by
/// their texts.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $debug:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// How many bytes it has.
            pub const BYTES: usize = $bytes;

            /// The one with these bytes.
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            /// Its bytes.
            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; ($bytes * 4_usize).div_ceil(3)];
                // There is room for all of it, and it is ASCII.
                let written = URL_SAFE_NO_PAD.encode_slice(self.0, &mut text).unwrap_or_default();
                f.write_str(std::str::from_utf8(text.get(..written).unwrap_or_default()).unwrap_or_default())
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                let mut bytes = [0; $bytes];
                match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
                    // Only the text that would be written is taken, so that two texts are never the same id.
                    Ok($bytes) => Ok(Self(bytes)),
                    _ => Err(NotAnId),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text = self.to_string();
                write!(f, concat!(stringify!($name), "({}…)"), text.get(..$debug).unwrap_or(&text))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    };
}

id! {
    /// The name of a task: 24 random bytes, in 32 characters.
    ///
    /// Where callers cannot be told apart, whoever knows it can use the task. So its `Debug` shows only its beginning.
    ///
    /// ```
    /// use toolwire_store::TaskId;
    ///
    /// let id = TaskId::from_bytes([7; 24]);
    /// assert_eq!(id.to_string().parse::<TaskId>().unwrap(), id);
    /// assert!("short".parse::<TaskId>().is_err());
    /// ```
    TaskId, 24, 6
}

id! {
    /// The name of a process that serves: 8 random bytes, new at each start. Never the name of a machine, which would
    /// be the same after a restart.
    NodeId, 8, 11
}

id! {
    /// 16 random bytes, new for each claim. A write has to show them beside its fence: a store that has lost writes it
    /// acknowledged may give the same fence twice, but never the same token.
    Token, 16, 6
}

id! {
    /// A session, by the SHA-256 of its id, so that nobody can use what he reads in a store.
    SessionKey, 32, 6
}

id! {
    /// For whom something is counted: a digest of a principal, or of an address where callers are not known.
    Quota, 32, 6
}

id! {
    /// Which key sealed the values of a task.
    KeyId, 4, 6
}

/// Whom a task belongs to. Nobody else sees it.
///
/// It is compared as a whole: a task of one kind of owner is never seen by another kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Owner {
    /// Who was authenticated: the digest of issuer, subject and client.
    Principal([u8; 32]),
    /// Who talks over a pipe, or, with the user id of the peer, over a unix socket.
    Local(Option<u32>),
    /// Who talks over HTTP and is not known. The id of a task is then all that protects it.
    Anonymous,
}

impl Owner {
    /// It as bytes, to be stored and compared: different owners have different ones, which never change.
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Principal(key) => [b"p".as_slice(), &key].concat(),
            Self::Local(None) => b"l".to_vec(),
            Self::Local(Some(uid)) => [b"l".as_slice(), &uid.to_be_bytes()].concat(),
            Self::Anonymous => b"a".to_vec(),
        }
    }

    /// The one that has these bytes, if there is one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'p', key) => key.try_into().ok().map(Self::Principal),
            (b'l', []) => Some(Self::Local(None)),
            (b'l', uid) => uid.try_into().ok().map(|uid| Self::Local(Some(u32::from_be_bytes(uid)))),
            (b'a', []) => Some(Self::Anonymous),
            _ => None,
        }
    }
}

/// Shows enough to tell two apart in a log.
impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal([a, b, c, ..]) => write!(f, "Principal({a:02x}{b:02x}{c:02x}…)"),
            Self::Local(uid) => f.debug_tuple("Local").field(uid).finish(),
            Self::Anonymous => f.write_str("Anonymous"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_the_text_that_they_are_written_as_and_from_no_other() {
        let id = NodeId::from_bytes([1, 2, 3, 4, 5, 6, 7, 255]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(serde_json::from_str::<NodeId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
        for text in ["", "AQIDBAUGB_8=", "AQIDBAUGB_9", "AQIDBAUGB/8", "AQIDBAUGB_", "AQIDBAUGB_8AA"] {
            assert_eq!(text.parse::<NodeId>(), Err(NotAnId), "{text}");
        }
        assert_eq!(format!("{:?}", TaskId::from_bytes([0; 24])), "TaskId(AAAAAA…)");
    }

    #[test]
    fn owners_have_bytes_of_their_own() {
        let owners = [
            Owner::Principal([0; 32]),
            Owner::Principal([1; 32]),
            Owner::Local(None),
            Owner::Local(Some(0)),
            Owner::Local(Some(7)),
            Owner::Anonymous,
        ];
        for owner in owners {
            assert_eq!(Owner::from_bytes(&owner.to_bytes()), Some(owner));
        }
        for bytes in [b"".as_slice(), b"x", b"aa", b"l1", b"p1"] {
            assert_eq!(Owner::from_bytes(bytes), None);
        }
    }
}
