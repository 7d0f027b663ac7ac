//! Which names a type reads, asked of the type itself.

use serde::{
    de::{DeserializeOwned, Deserializer, Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// The names of the fields that a struct reads, with all their aliases. `None` for everything that takes what comes,
/// such as a map, or that cannot be asked.
pub(super) fn names<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut names = None;
    // It always fails: there is nothing to make a value of.
    let _ = T::deserialize(Probe(&mut names));
    names
}

struct Probe<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only asked"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Some(fields);
        Err(Error::custom("only asked"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::names;

    #[test]
    fn a_struct_knows_its_names() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only asked for its names")]
        struct Search {
            #[serde(alias = "q")]
            query: String,
            #[serde(rename = "max")]
            limit: Option<u8>,
            #[serde(skip)]
            own: u8,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only asked for its names")]
        struct Open {
            #[serde(flatten)]
            rest: BTreeMap<String, String>,
        }
        let mut known = names::<Search>().unwrap().to_vec();
        known.sort_unstable();
        assert_eq!(known, ["max", "q", "query"]);
        assert_eq!(names::<Box<Search>>().map(<[_]>::len), Some(3));
        assert_eq!(names::<Open>(), None);
        assert_eq!(names::<BTreeMap<String, u8>>(), None);
        assert_eq!(names::<serde_json::Value>(), None);
    }
}
