//! Reading an enumeration of strings.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{Error, Visitor},
};

/// An enumeration whose variants are strings on the wire.
pub(crate) trait StringEnum: Sized {
    /// The strings it knows, for the error message.
    const EXPECTED: &'static [&'static str];

    /// The variant that `text` stands for.
    fn from_text(text: &str) -> Option<Self>;
}

/// Reads one string without copying it first.
pub(crate) fn deserialize<'de, T: StringEnum, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(StringVisitor(PhantomData))
}

struct StringVisitor<T>(PhantomData<T>);

impl<T: StringEnum> Visitor<'_> for StringVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of the strings {:?}", T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).ok_or_else(|| E::unknown_variant(text, T::EXPECTED))
    }
}
