//! Reading the words of an enumeration of strings.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{Error, Visitor},
};

/// An enumeration whose members are words on the wire.
pub(crate) trait Word: Sized {
    /// The words it knows, for the error message.
    const EXPECTED: &'static [&'static str];

    /// The member that stands behind `word`.
    fn from_word(word: &str) -> Option<Self>;
}

/// Reads one word without copying it first.
pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(WordVisitor(PhantomData))
}

struct WordVisitor<T>(PhantomData<T>);

impl<T: Word> Visitor<'_> for WordVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of the words {:?}", T::EXPECTED)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        T::from_word(word).ok_or_else(|| E::unknown_variant(word, T::EXPECTED))
    }
}
