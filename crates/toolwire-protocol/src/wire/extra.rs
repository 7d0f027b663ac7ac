//! Members the model does not know.

use serde::{de::MapAccess, ser::SerializeMap};
use serde_json::Value;

use super::{JsonObject, object};

/// The unknown members of an object, kept so that they survive a round trip.
///
/// It takes one word when there are none, which is nearly always. A key that the struct has a field for
/// must not be put here: it would be written twice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra(Option<Box<JsonObject>>);

impl Extra {
    /// No members.
    pub const fn new() -> Self {
        Self(None)
    }

    /// The value of the member `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }

    /// Sets the member `key` and returns what it held before.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.0.get_or_insert_default().insert(key.into(), value.into())
    }

    /// Takes the member `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let members = self.0.as_mut()?;
        let value = members.remove(key);
        if members.is_empty() {
            self.0 = None;
        }
        value
    }

    /// All members, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().flat_map(|members| members.iter()).map(|(key, value)| (key.as_str(), value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|members| members.is_empty())
    }

    pub(crate) fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let value = map.next_value()?;
        object::insert_new(self.0.get_or_insert_default(), key.to_owned(), value)
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        object::write_all(self.iter(), map)
    }
}
