//! How much of one list may be fetched.

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use toolwire_protocol::Method;

use crate::{
    error::{Delivery, Error, ErrorKind},
    limits::ClientLimits,
};

/// The shortest item of a page, with the comma behind it.
const SHORTEST_ITEM: usize = "{},".len();

/// What is left of the budget of one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListBudget {
    bytes: usize,
    items: usize,
    limits: (usize, usize),
}

impl ListBudget {
    pub(super) const fn new(limits: &ClientLimits) -> Self {
        let (bytes, items) = (limits.list_bytes, limits.list_items);
        Self { bytes, items, limits: (bytes, items) }
    }

    /// Takes the text of a page into account, before anything is decoded of it.
    pub(super) fn charge(&mut self, method: Method, page: &str) -> Result<(), Error> {
        self.bytes = self.bytes.checked_sub(page.len()).ok_or_else(|| {
            let limit = self.limits.0;
            too_large(format!("the answer to {method} goes on beyond {limit} bytes")).with_limit("list_bytes")
        })?;
        // Many small items take far more memory than their text, so a page that may have too many is counted first.
        if page.len() / SHORTEST_ITEM > self.items && longest_array(page) > self.items {
            return Err(self.too_many_items(method));
        }
        Ok(())
    }

    /// Takes the items of a page into account.
    pub(super) fn charge_items(&mut self, method: Method, items: usize) -> Result<(), Error> {
        self.items = self.items.checked_sub(items).ok_or_else(|| self.too_many_items(method))?;
        Ok(())
    }

    fn too_many_items(&self, method: Method) -> Error {
        let limit = self.limits.1;
        too_large(format!("the answer to {method} goes on beyond {limit} items")).with_limit("list_items")
    }
}

fn too_large(text: String) -> Error {
    Error::new(ErrorKind::TooLarge, Delivery::Rejected, text)
}

/// How many elements the longest array among the members of an object has. What cannot be read has none: decoding it
/// will say what is wrong.
fn longest_array(object: &str) -> usize {
    struct Members(usize);
    struct Elements(usize);
    struct MembersVisitor;
    struct ElementsVisitor;

    impl<'de> Deserialize<'de> for Members {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(MembersVisitor)
        }
    }

    impl<'de> Visitor<'de> for MembersVisitor {
        type Value = Members;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
            let mut longest = 0;
            while let Some((IgnoredAny, Elements(count))) = map.next_entry()? {
                longest = longest.max(count);
            }
            Ok(Members(longest))
        }
    }

    impl<'de> Deserialize<'de> for Elements {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(ElementsVisitor)
        }
    }

    impl<'de> Visitor<'de> for ElementsVisitor {
        type Value = Elements;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a value")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Elements, A::Error> {
            let mut count = 0;
            while elements.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(Elements(count))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Elements, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Elements(0))
        }

        fn visit_bool<E>(self, _: bool) -> Result<Elements, E> {
            Ok(Elements(0))
        }

        fn visit_i64<E>(self, _: i64) -> Result<Elements, E> {
            Ok(Elements(0))
        }

        fn visit_u64<E>(self, _: u64) -> Result<Elements, E> {
            Ok(Elements(0))
        }

        fn visit_f64<E>(self, _: f64) -> Result<Elements, E> {
            Ok(Elements(0))
        }

        fn visit_str<E>(self, _: &str) -> Result<Elements, E> {
            Ok(Elements(0))
        }

        fn visit_unit<E>(self) -> Result<Elements, E> {
            Ok(Elements(0))
        }
    }

    serde_json::from_str(object).map_or(0, |Members(count)| count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_array_of_a_page_is_counted() {
        for (page, count) in [
            (
                r#"{"tools":[{},{"a":[1,2,3]},{}],"nextCursor":"x","ttlMs":-1,"a":1.5,"b":null,"c":{"d":[1,2,3,4]}}"#,
                3,
            ),
            (r#"{"tools":[],"x":[1,2],"b":true,"n":7}"#, 2),
            ("{}", 0),
            ("[1,2]", 0),
            ("{\"a\":[1,", 0),
        ] {
            assert_eq!(longest_array(page), count, "{page}");
        }
    }
}
