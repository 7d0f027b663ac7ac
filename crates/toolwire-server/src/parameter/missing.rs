//! What a type makes of a value that is not there.

use serde::{
    de::{DeserializeOwned, Deserializer, Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// The value of a parameter that was not given, if its type has one: `None` for an `Option`.
pub(super) fn missing<T: DeserializeOwned>() -> Option<T> {
    T::deserialize(Missing).ok()
}

/// Nothing at all. Only an `Option` can be made of it.
struct Missing;

impl<'de> Deserializer<'de> for Missing {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("missing"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
