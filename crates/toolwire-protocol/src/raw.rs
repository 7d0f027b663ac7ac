//! JSON that is carried as text: decoded by whoever needs it, spliced into output as it is.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

use crate::scan;

/// One JSON value kept as the text it came in (or will leave in).
///
/// It is written back byte for byte, so that keys keep their order and numbers their digits; whoever
/// needs the content decodes it once with [`decode`](Self::decode).
/// Two values are equal when their texts are.
///
/// ```
/// use toolwire_protocol::RawJson;
///
/// let raw = RawJson::of(&vec![1, 2]).unwrap();
/// assert_eq!(raw.text(), "[1,2]");
/// assert_eq!(raw.decode::<Vec<u8>>().unwrap(), [1, 2]);
/// ```
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Serialises `value`.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Takes `text` as it is, after checking that it is one JSON value that every reader understands alike: what
    /// `serde_json` decodes into a [`Value`](serde_json::Value), and without duplicate names in an object.
    pub fn parse(text: impl Into<String>) -> serde_json::Result<Self> {
        let raw = RawValue::from_string(text.into())?;
        scan::check(raw.get()).map_err(serde_json::Error::custom)?;
        Ok(Self(raw))
    }

    /// Takes text that is made of other raw JSON.
    pub(crate) fn assembled(text: String) -> serde_json::Result<Self> {
        RawValue::from_string(text).map(Self)
    }

    /// The JSON text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Decodes the text into `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        // From bytes, although it is known to be text: most types are read from bytes elsewhere, and reading them from
        // text too would compile all their readers a second time.
        serde_json::from_slice(self.text().as_bytes())
    }

    /// Whether the value is a JSON object.
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl From<&serde_json::Value> for RawJson {
    fn from(value: &serde_json::Value) -> Self {
        // A `Value` displays as its JSON text, which always parses.
        Self(RawValue::from_string(value.to_string()).unwrap_or_default())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Add;

    use super::*;

    #[test]
    fn the_text_is_kept_to_the_byte() {
        let text = r#"{"b": 1.50, "a": [ ]}"#;
        let raw: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(raw.text(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
        assert!(raw.is_object());
    }

    #[test]
    fn what_is_not_json_is_refused() {
        assert!(RawJson::parse("{").is_err());
        assert!(RawJson::parse("1 2").is_err());
        for (text, reason) in [
            ("1e999", "a number is out of range"),
            (r#""\ud800""#, "a string has an escape that is half of a character"),
            (r#"[{"a":1,"a":1}]"#, "the member \"a\" is duplicated"),
            (&"[".repeat(128).add(&"]".repeat(128)), "nested deeper than 127 levels"),
        ] {
            assert_eq!(RawJson::parse(text).unwrap_err().to_string(), reason, "{text}");
        }
    }
}
