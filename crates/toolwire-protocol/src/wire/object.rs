//! How the objects of the protocol are read and written, one member at a time.
//!
//! Everything `wire_struct!` generates goes through the [`Object`] trait, so that the unions (content,
//! resource contents, elicitation parameters) can pick the struct first and feed it members afterwards.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::Value;

use super::JsonObject;

/// A JSON object with known members.
pub(crate) trait Object: Sized {
    /// The members read so far.
    type Draft: Default;

    /// The name of the type, for error messages.
    const NAME: &'static str;
    /// The member with a fixed value, if the type has one.
    const TAG: Option<(&'static str, &'static str)>;

    /// Reads the value of the member `key`, which is next in `map`.
    fn read<'de, A: MapAccess<'de>>(draft: &mut Self::Draft, key: &str, map: &mut A) -> Result<(), A::Error>;

    /// Checks that nothing required is missing.
    fn finish<E: Error>(draft: Self::Draft) -> Result<Self, E>;

    /// Writes all members, the tag included.
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// Writes `object` as a map.
pub(crate) fn serialize<T: Object, S: Serializer>(object: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    object.write(&mut map)?;
    map.end()
}

/// Reads an object whose type is known; the tag, if there is one, must be right.
pub(crate) fn deserialize<'de, T: Object, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(ObjectVisitor(PhantomData))
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Object> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object ({})", T::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut draft = T::Draft::default();
        let mut tag: Option<()> = None;
        while let Some(Key(key)) = map.next_key()? {
            match T::TAG {
                Some((name, value)) if key == name => read_tag(&mut tag, name, value, &mut map)?,
                _ => T::read(&mut draft, &key, &mut map)?,
            }
        }
        match T::TAG {
            Some((name, _)) if tag.is_none() => Err(A::Error::missing_field(name)),
            _ => T::finish(draft),
        }
    }
}

fn read_tag<'de, A: MapAccess<'de>>(
    slot: &mut Option<()>,
    name: &'static str,
    value: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    let mut found: Option<String> = None;
    read(&mut found, name, map)?;
    if slot.replace(()).is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    match found {
        Some(found) if found == value => Ok(()),
        found => {
            let found = found.unwrap_or_default();
            Err(A::Error::custom(format_args!("field {name:?}: expected {value:?}, found {found:?}")))
        }
    }
}

/// Reads the value of member `name` into its slot, which must still be empty.
pub(crate) fn read<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if slot.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *slot = Some(map.next_value().map_err(|error| in_field(name, &error))?);
    Ok(())
}

/// The error for a member whose value does not fit.
pub(crate) fn in_field<E: Error>(name: &str, error: &impl fmt::Display) -> E {
    E::custom(format_args!("field {name:?}: {error}"))
}

/// The error for a member that occurs twice.
pub(crate) fn duplicate<E: Error>(key: &str) -> E {
    E::custom(format_args!("duplicate field `{key}`"))
}

/// A member's name, borrowed from the input where it has no escapes.
pub(crate) struct Key<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(name.to_owned())))
    }

    fn visit_string<E>(self, name: String) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(name)))
    }
}

/// Adds a member that must not be there yet.
pub(crate) fn insert_new<E: Error>(object: &mut JsonObject, key: String, value: Value) -> Result<(), E> {
    if object.contains_key(&key) {
        return Err(duplicate(&key));
    }
    object.insert(key, value);
    Ok(())
}

/// Writes the members of `entries` into `map`.
pub(crate) fn write_all<'a, K, V, M>(
    entries: impl IntoIterator<Item = (K, &'a V)>,
    map: &mut M,
) -> Result<(), M::Error>
where
    K: AsRef<str>,
    V: Serialize + 'a,
    M: SerializeMap,
{
    entries.into_iter().try_for_each(|(key, value)| map.serialize_entry(key.as_ref(), value))
}
