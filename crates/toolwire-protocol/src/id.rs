//! Request ids and progress tokens: a string or a whole number, and the two never mix.

use std::{fmt, sync::Arc};

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
    fn the_json_type_is_kept() {
        for text in ["42", r#""42""#] {
            let id: RequestId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
    }
}
