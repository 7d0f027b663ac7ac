//! Unions: the members that come before the one which tells what struct it is.

use std::{borrow::Cow, marker::PhantomData};

use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess};
use serde_json::Value;

use super::{
    JsonObject,
    object::{Key, Object, duplicate, in_field, insert_new},
};
use crate::RawJson;

/// How deep content that comes before its type may be nested in itself. The specification knows two levels.
const MAX_CONTENT_LEVELS: usize = 8;

/// The members of a union that came before the one that tells which struct it is.
#[derive(Default)]
pub(crate) struct Buffered(Vec<(String, RawJson)>);

impl Buffered {
    /// Sets the next member aside.
    pub(crate) fn push<'de, A: MapAccess<'de>>(
        &mut self,
        key: Cow<'_, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        // Content is the one type that can contain itself. A tree instead of plain text makes the parser
        // count the levels here, where it still knows how deep it is, so a deep message cannot exhaust
        // the stack.
        let value = if key == "content" {
            let content = map.next_value::<Value>()?;
            // Each level of it is set aside and read again, so many of them would cost many times the whole.
            if levels_of_content(&content) > MAX_CONTENT_LEVELS {
                return Err(A::Error::custom(format_args!(
                    "content is nested deeper than {MAX_CONTENT_LEVELS} levels"
                )));
            }
            RawJson::from(&content)
        } else {
            map.next_value::<RawJson>()?
        };
        self.0.push((key.into_owned(), value));
        Ok(())
    }

    /// Sets all members aside.
    pub(crate) fn collect<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut buffered = Self::default();
        while let Some(Key(key)) = map.next_key()? {
            buffered.push(key, &mut map)?;
        }
        Ok(buffered)
    }

    /// Whether a member of that name was set aside.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Takes the member of that name out, of which there must not be two.
    pub(crate) fn take<E: Error>(&mut self, name: &'static str) -> Result<Option<RawJson>, E> {
        let Some(position) = self.0.iter().position(|(key, _)| key == name) else {
            return Ok(None);
        };
        let (_, value) = self.0.remove(position);
        if self.contains(name) { Err(E::duplicate_field(name)) } else { Ok(Some(value)) }
    }

    /// Takes the member of that name out and decodes it; `null` counts as absent.
    pub(crate) fn take_as<T: DeserializeOwned, E: Error>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, E> {
        let value = self.take(name)?.map(|value| value.decode::<Option<T>>()).transpose();
        value.map(Option::flatten).map_err(|error| in_field(name, &without_position(&error)))
    }

    /// Decodes the member of that name and leaves it where it is.
    pub(crate) fn decode<T: DeserializeOwned, E: Error>(&self, name: &'static str) -> Result<Option<T>, E> {
        let member = self.0.iter().find_map(|(key, value)| (key == name).then_some(value));
        member.map(RawJson::decode).transpose().map_err(|error| in_field(name, &without_position(&error)))
    }

    /// Reads a `T` from what was set aside. Its tag, if it has one, must have been taken out before.
    pub(crate) fn into_typed<T: Object, E: Error>(self) -> Result<T, E> {
        T::finish(self.replay::<T, E>()?)
    }

    /// Reads a `T` from what was set aside, then `current` if there is one, then the rest of `map`.
    ///
    /// `tag` is the member that was already read: when it occurs again, it is a duplicate.
    pub(crate) fn finish<'de, T: Object, A: MapAccess<'de>>(
        self,
        tag: Option<&'static str>,
        current: Option<&str>,
        mut map: A,
    ) -> Result<T, A::Error> {
        let mut draft = self.replay::<T, A::Error>()?;
        if let Some(key) = current {
            T::read(&mut draft, key, &mut map)?;
        }
        while let Some(Key(key)) = map.next_key()? {
            if tag.is_some_and(|tag| tag == key) {
                return Err(duplicate(&key));
            }
            T::read(&mut draft, &key, &mut map)?;
        }
        T::finish(draft)
    }

    fn replay<T: Object, E: Error>(self) -> Result<T::Draft, E> {
        let mut draft = T::Draft::default();
        for (key, value) in &self.0 {
            T::read(&mut draft, key, &mut OneValue(value, PhantomData::<E>))?;
        }
        Ok(draft)
    }

    /// Keeps everything as it is: what was set aside, the tag, and the rest of `map`.
    pub(crate) fn into_object<'de, A: MapAccess<'de>>(
        self,
        tag: (&str, String),
        mut map: A,
    ) -> Result<JsonObject, A::Error> {
        let mut object = JsonObject::new();
        object.insert(tag.0.to_owned(), Value::String(tag.1));
        for (key, value) in self.0 {
            let value = value.decode().map_err(|error| in_field(&key, &without_position(&error)))?;
            insert_new(&mut object, key, value)?;
        }
        while let Some((key, value)) = map.next_entry()? {
            insert_new(&mut object, key, value)?;
        }
        Ok(object)
    }
}

/// How many members `content` are inside each other at most. Recursive, which the parser has bounded.
fn levels_of_content(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(levels_of_content).max().unwrap_or(0),
        Value::Object(members) => {
            let level =
                |(key, value): (&String, &Value)| levels_of_content(value) + usize::from(key == "content");
            members.iter().map(level).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// A map of which only one value is left to read.
struct OneValue<'a, E>(&'a RawJson, PhantomData<E>);

impl<'a, E: Error> MapAccess<'a> for OneValue<'a, E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, _seed: K) -> Result<Option<K::Value>, E> {
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, E> {
        seed.deserialize(&mut serde_json::Deserializer::from_slice(self.0.text().as_bytes()))
            .map_err(|error| E::custom(without_position(&error)))
    }
}

/// The message without its position, which counts from the start of a member that was set aside.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned()
}
