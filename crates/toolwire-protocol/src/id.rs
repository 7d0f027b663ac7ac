//! Request ids and progress tokens: a string or a whole number, and the two never mix.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, Visitor},
};

/// The id of a request. `1` and `"1"` are different ids, and each is echoed in its own JSON type.
///
/// ```
/// use toolwire_protocol::RequestId;
///
/// let number: RequestId = serde_json::from_str("1").unwrap();
/// let string: RequestId = serde_json::from_str(r#""1""#).unwrap();
/// assert_ne!(number, string);
/// assert_eq!(serde_json::to_string(&string).unwrap(), r#""1""#);
/// assert!(serde_json::from_str::<RequestId>("1.5").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC allows exactly these two")]
pub enum RequestId {
    /// A whole number.
    Num(i64),
    /// A string.
    Str(Arc<str>),
}

/// The token that ties progress notifications to their request: the same two shapes as an id.
pub type ProgressToken = RequestId;

/// A map by ids that this side has chosen itself.
///
/// Nobody else decides what is in it, so it need not withstand anybody who looks for ids that collide, as the hash of
/// the standard library does. A map by the ids of a peer must.
pub type OwnIds<T> = HashMap<RequestId, T, BuildHasherDefault<OwnIdHasher>>;

/// The hash of [`OwnIds`]: a few instructions, and good enough for numbers that are counted up.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnIdHasher(u64);

impl Hasher for OwnIdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The odd number is the golden ratio of all numbers, which spreads neighbours far apart.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_isize(&mut self, number: isize) {
        self.write_i64(number as i64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Num(number) => write!(f, "{number}"),
            Self::Str(text) => write!(f, "{text:?}"),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Num(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Num(number) => serializer.serialize_i64(*number),
            Self::Str(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl Visitor<'_> for IdVisitor {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a whole number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<RequestId, E> {
                Ok(RequestId::Num(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<RequestId, E> {
                i64::try_from(number)
                    .map(RequestId::Num)
                    .map_err(|_| E::custom(format_args!("{number} is beyond the range of a 64-bit id")))
            }

            fn visit_str<E>(self, text: &str) -> Result<RequestId, E> {
                Ok(RequestId::Str(text.into()))
            }
        }

        deserializer.deserialize_any(IdVisitor).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, hash::BuildHasher};

    use super::*;

    #[test]
    fn only_strings_and_whole_numbers_are_ids() {
        for (text, good) in [
            ("0", true),
            ("-7", true),
            ("9223372036854775807", true),
            ("9223372036854775808", false),
            (r#""""#, true),
            (r#""\u0041""#, true),
            ("1.5", false),
            ("1.0", false),
            ("null", false),
            ("true", false),
            ("[]", false),
            ("{}", false),
        ] {
            assert_eq!(serde_json::from_str::<RequestId>(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn ids_of_ones_own_are_found_and_spread() {
        let mut map = OwnIds::default();
        for number in 0..1000 {
            map.insert(RequestId::Num(number), number);
            map.insert(RequestId::from(number.to_string()), -number);
        }
        assert_eq!(map.len(), 2000);
        assert_eq!((map.get(&7.into()), map.get(&"7".into())), (Some(&7), Some(&-7)));
        // A map looks at the lowest bits, and at the seven highest.
        let hash = |number| BuildHasherDefault::<OwnIdHasher>::default().hash_one(RequestId::Num(number));
        let places: HashSet<u64> = (0..1024).map(|number| hash(number) % 1024).collect();
        let tags: HashSet<u64> = (0..1024).map(|number| hash(number) >> 57).collect();
        assert!(places.len() > 600 && tags.len() == 128, "{} places, {} tags", places.len(), tags.len());
    }

    #[test]
    fn the_json_type_is_kept() {
        for text in ["42", r#""42""#] {
            let id: RequestId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
    }
}
