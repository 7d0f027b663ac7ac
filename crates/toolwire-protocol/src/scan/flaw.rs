//! What is wrong with a text that is JSON.

use std::fmt;

use super::MAX_DEPTH;

/// Why a text that is JSON is not accepted: not every reader would see the same in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// More than [`MAX_DEPTH`] levels.
    TooDeep,
    /// A number beyond the range of `f64`.
    NumberOutOfRange,
    /// An escape that stands for one half of a character.
    LoneSurrogate,
    /// Two members of the same name in one object.
    Duplicate(Box<str>),
    /// A member whose name makes the decoder see something else than the object that is there.
    Reserved(Box<str>),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
            Self::NumberOutOfRange => f.write_str("a number is out of range"),
            Self::LoneSurrogate => f.write_str("a string has an escape that is half of a character"),
            Self::Duplicate(name) => write!(f, "the member {name:?} is duplicated"),
            Self::Reserved(name) => write!(f, "no member may be named {name:?}"),
        }
    }
}
