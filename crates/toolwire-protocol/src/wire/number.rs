//! A JSON number that remembers whether it was written as a whole one.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};

/// A number of the protocol: progress, priorities, temperatures, bounds of a form field.
///
/// `50` stays `50` and `0.5` stays `0.5`. JSON has no way to write what is not finite, so a NaN becomes
/// `0` and an infinity the largest number there is.
///
/// ```
/// use toolwire_protocol::wire::Number;
///
/// assert_eq!(Number::from(50).to_string(), "50");
/// assert_eq!(Number::from(0.5).as_f64(), 0.5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(Repr);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Repr {
    Signed(i64),
    /// Only what does not fit into `Signed`, so that equal numbers have one form.
    Unsigned(u64),
    Float(f64),
}

impl Number {
    /// The value, rounded where a float cannot hold all digits.
    #[expect(clippy::cast_precision_loss, reason = "the method says that it rounds")]
    pub const fn as_f64(self) -> f64 {
        match self.0 {
            Repr::Signed(number) => number as f64,
            Repr::Unsigned(number) => number as f64,
            Repr::Float(number) => number,
        }
    }

    /// The value, if it is a whole number in the range of an `i64`.
    pub const fn as_i64(self) -> Option<i64> {
        match self.0 {
            Repr::Signed(number) => Some(number),
            _ => None,
        }
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        let finite = if number.is_nan() { 0.0 } else { number.clamp(f64::MIN, f64::MAX) };
        Self(Repr::Float(finite))
    }
}

impl From<f32> for Number {
    fn from(number: f32) -> Self {
        Self::from(f64::from(number))
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(i64::try_from(number).map_or(Repr::Unsigned(number), Repr::Signed))
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self(Repr::Signed(number))
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Self(Repr::Signed(number.into()))
    }
}

impl From<i32> for Number {
    fn from(number: i32) -> Self {
        Self(Repr::Signed(number.into()))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Repr::Signed(number) => fmt::Display::fmt(&number, f),
            Repr::Unsigned(number) => fmt::Display::fmt(&number, f),
            Repr::Float(number) => fmt::Display::fmt(&number, f),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Repr::Signed(number) => serializer.serialize_i64(number),
            Repr::Unsigned(number) => serializer.serialize_u64(number),
            Repr::Float(number) => serializer.serialize_f64(number),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
        Ok(number.into())
    }
}
