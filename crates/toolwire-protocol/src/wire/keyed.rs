//! An object whose keys are the peer's own words, in the order they came.

use std::{collections::BTreeSet, fmt, marker::PhantomData, mem, vec};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

use super::object::{duplicate, in_field};

/// A small map from strings to `T` that keeps its order, as a form keeps the order of its fields.
///
/// Looking a key up walks the list: it is meant for a handful of entries, of which the caller knows the
/// keys. A key that occurs twice in the input is an error.
///
/// ```
/// use toolwire_protocol::wire::Keyed;
///
/// let map = Keyed::from([("b", 1), ("a", 2)]);
/// assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"b":1,"a":2}"#);
/// assert_eq!(map.get("a"), Some(&2));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Keyed<T>(Vec<(String, T)>);

impl<T> Keyed<T> {
    /// No entries.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value behind `key`.
    pub fn get(&self, key: &str) -> Option<&T> {
        self.0.iter().find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Whether there is a value behind `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value behind `key`, at the end if it is new, and returns what was there before.
    pub fn insert(&mut self, key: impl Into<String>, value: T) -> Option<T> {
        let key = key.into();
        if let Some((_, slot)) = self.0.iter_mut().find(|(name, _)| *name == key) {
            return Some(mem::replace(slot, value));
        }
        self.0.push((key, value));
        None
    }

    /// Takes the value behind `key` out.
    pub fn remove(&mut self, key: &str) -> Option<T> {
        let position = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(position).1)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// All keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Into<String>, T> FromIterator<(K, T)> for Keyed<T> {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Into<String>, T> Extend<(K, T)> for Keyed<T> {
    fn extend<I: IntoIterator<Item = (K, T)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Into<String>, T, const N: usize> From<[(K, T); N]> for Keyed<T> {
    fn from(entries: [(K, T); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<T> IntoIterator for Keyed<T> {
    type Item = (String, T);
    type IntoIter = vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: Serialize> Serialize for Keyed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Keyed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeyedVisitor(PhantomData))
    }
}

struct KeyedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for KeyedVisitor<T> {
    type Value = Keyed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keyed<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value().map_err(|error| in_field(&key, &error))?;
            entries.push((key, value));
        }
        // A set keeps a message with very many keys from costing quadratic time.
        let mut keys = BTreeSet::new();
        match entries.iter().find(|(key, _)| !keys.insert(key.as_str())) {
            Some((key, _)) => Err(duplicate(key)),
            None => Ok(Keyed(entries)),
        }
    }
}
