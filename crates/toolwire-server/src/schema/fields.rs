//! Which names a type reads, and in which order they are declared, asked of the type itself.
//!
//! `serde_json` sorts the members of objects unless it is built otherwise, which would bring three more crates into every
//! server. What a type says of its fields is enough to put the few objects in order that people and models read.

use std::collections::BTreeMap;

use serde::{
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
        SeqAccess, VariantAccess, Visitor, value::Error,
    },
    forward_to_deserialize_any,
};

/// How many types are asked for the order of one. A type may contain itself.
const MAX_ASKED: usize = 256;

/// How deep one inside another is asked for.
const MAX_DEPTH: usize = 8;

/// The names of the fields that a struct reads, with all their aliases, or those of the variants of an enum. `None` for
/// everything that takes what comes, such as a map, or that cannot be asked.
pub(super) fn names<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    names_at::<T>(&[])
}

/// The order in which a type declares its members, and those of the types inside it. The members of an enum are its
/// variants, as it is written with them as keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) names: Vec<&'static str>,
    /// For those members that have an order of their own, also when they are lists of what has it.
    pub(crate) inside: BTreeMap<&'static str, Self>,
}

impl Order {
    /// Where a member comes in a schema that requires the members `required`, in their order: as it is declared, or else
    /// as it is required, for types that cannot be asked. What is written and never read is one of those, and so is
    /// what serde reads as a whole before it looks at it, as it does with tags among the members.
    pub(crate) fn place(&self, required: &[impl AsRef<str>], member: &str) -> (usize, usize) {
        let declared = self.names.iter().position(|name| *name == member);
        let required = required.iter().position(|name| name.as_ref() == member);
        (declared.unwrap_or(usize::MAX), required.unwrap_or(usize::MAX))
    }

    /// The order of a type's own members, without what is inside them.
    pub(crate) fn flat<T: DeserializeOwned>() -> Self {
        Self { names: names::<T>().unwrap_or_default().to_vec(), inside: BTreeMap::new() }
    }

    /// The order of a type.
    pub(crate) fn of<T: DeserializeOwned>() -> Self {
        let mut asked = 0;
        Self::at::<T>(&mut Vec::new(), &mut asked)
    }

    fn at<T: DeserializeOwned>(path: &mut Vec<&'static str>, asked: &mut usize) -> Self {
        *asked += 1;
        if path.len() > MAX_DEPTH || *asked > MAX_ASKED {
            return Self::default();
        }
        let Some(names) = names_at::<T>(path) else { return Self::default() };
        let mut order = Self { names: names.to_vec(), inside: BTreeMap::new() };
        for name in names {
            path.push(name);
            let inner = Self::at::<T>(path, asked);
            path.pop();
            if !inner.names.is_empty() {
                order.inside.insert(name, inner);
            }
        }
        order
    }
}

/// The names of the fields of what is found on a path of members. Lists and maps on the way stand for what is in them.
fn names_at<T: DeserializeOwned>(path: &[&str]) -> Option<&'static [&'static str]> {
    let mut names = None;
    // It always fails: there is nothing to make a value of.
    let _ = T::deserialize(Probe { path, names: &mut names });
    names
}

struct Probe<'a> {
    path: &'a [&'a str],
    names: &'a mut Option<&'static [&'static str]>,
}

fn only_asked<T>() -> Result<T, Error> {
    Err(Error::custom("only asked"))
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        only_asked()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.path {
            [] => {
                *self.names = Some(fields);
                only_asked()
            }
            [member, path @ ..] => visitor
                .visit_map(Inside { name: Some(member), probe: Some(Probe { path, names: self.names }) }),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.path {
            [] => {
                *self.names = Some(variants);
                only_asked()
            }
            [variant, path @ ..] => {
                visitor.visit_enum(Variant { name: variant, probe: Probe { path, names: self.names } })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // A list at the very top is nothing that arguments could be.
        visitor.visit_seq(Inside { name: None, probe: Some(self) })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Inside { name: Some(""), probe: Some(self) })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

/// The one variant that is asked.
struct Variant<'a> {
    name: &'a str,
    probe: Probe<'a>,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Error;
    type Variant = Probe<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Probe<'a>), Error> {
        let name: serde::de::value::StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.probe))
    }
}

impl<'de> VariantAccess<'de> for Probe<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        only_asked()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        only_asked()
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}

/// The one member or item that is asked.
struct Inside<'a> {
    name: Option<&'a str>,
    probe: Option<Probe<'a>>,
}

impl<'de> SeqAccess<'de> for Inside<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        self.probe.take().map_or_else(only_asked, |probe| seed.deserialize(probe).map(Some))
    }
}

impl<'de> MapAccess<'de> for Inside<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let name = self.name.take();
        name.map_or_else(only_asked, |name| seed.deserialize(name.into_deserializer()).map(Some))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        self.probe.take().map_or_else(only_asked, |probe| seed.deserialize(probe))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

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

    #[test]
    fn a_type_knows_the_order_of_what_is_inside_it() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only asked for its order")]
        struct Zoo {
            zebra: Option<Cage>,
            ants: Vec<Cage>,
            by_name: BTreeMap<String, Cage>,
            anything: serde_json::Value,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only asked for its order")]
        struct Cage {
            width: u8,
            height: u8,
            inner: Option<Box<Self>>,
        }
        let order = Order::of::<Zoo>();
        assert_eq!(order.names, ["zebra", "ants", "by_name", "anything"]);
        for member in ["zebra", "ants", "by_name"] {
            let cage = &order.inside[member];
            assert_eq!(cage.names, ["width", "height", "inner"], "{member}");
            assert_eq!(cage.inside["inner"].names, cage.names);
        }
        assert!(!order.inside.contains_key("anything"));
        assert_eq!(Order::of::<String>(), Order::default());
    }

    #[test]
    fn an_enum_knows_the_order_of_its_variants_and_of_their_fields() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only asked for its order")]
        enum Shape {
            Square { width: u8, height: u8 },
            Point,
            Circle(Round),
            Line(u8, u8),
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only asked for its order")]
        struct Round {
            radius: u8,
            centre: Option<u8>,
        }
        let order = Order::of::<Shape>();
        assert_eq!(order.names, ["Square", "Point", "Circle", "Line"]);
        assert_eq!(order.inside["Square"].names, ["width", "height"]);
        assert_eq!(order.inside["Circle"].names, ["radius", "centre"]);
        assert_eq!(order.inside.len(), 2);
    }
}
