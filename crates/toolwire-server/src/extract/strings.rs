//! Decoding a set of named strings into a typed struct: prompt arguments and template variables.
//!
//! A field that is a number or a boolean is parsed from its string; everything else is taken as text.

use serde::{
    de::{
        DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};
use toolwire_protocol::uri_template::{Value as Variable, Variables};

type Error = serde::de::value::Error;

/// Decodes named strings.
fn decode<T: DeserializeOwned>(pairs: impl Iterator<Item = (String, String)>) -> Result<T, String> {
    deserialize(pairs.map(|(name, text)| (name, Variable::Text(text))))
}

/// Decodes the variables of a URI template. A list becomes a sequence, pairs become a map.
pub(crate) fn decode_variables<T: DeserializeOwned>(variables: &Variables) -> Result<T, String> {
    deserialize(variables.iter().map(|(name, value)| (name.to_owned(), value.clone())))
}

fn deserialize<T: DeserializeOwned>(pairs: impl Iterator<Item = (String, Variable)>) -> Result<T, String> {
    let fields = pairs.map(|(name, value)| {
        let field = Named { name: name.clone(), field: Field(value) };
        (name, field)
    });
    T::deserialize(MapDeserializer::new(fields)).map_err(|error: Error| error.to_string())
}

/// Decodes one variable of a URI template.
pub(crate) fn decode_variable<T: DeserializeOwned>(name: &str, value: &Variable) -> Result<T, String> {
    T::deserialize(Field(value.clone())).map_err(|error: Error| format!("variable `{name}`: {error}"))
}

/// Decodes one argument of a prompt from its JSON.
pub(crate) fn decode_value<T: DeserializeOwned>(raw: &str) -> Result<T, String> {
    let value = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    T::deserialize(Field(Variable::Text(text_of(value)?))).map_err(|error: Error| error.to_string())
}

/// The text of a scalar. Some clients send numbers and booleans as they are.
fn text_of(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Array(_) | Value::Object(_) => Err("expected a string".to_owned()),
        scalar => Ok(scalar.to_string()),
    }
}

/// Decodes a JSON object of strings. Other scalars are taken by their text: some clients send them.
pub(crate) fn decode_json<T: DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    let object: Map<String, Value> = serde_json::from_slice(raw).map_err(|error| error.to_string())?;
    let pairs = object.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
        let text = text_of(value).map_err(|error| format!("argument `{name}`: {error}"))?;
        Ok::<_, String>((name, text))
    });
    decode(pairs.collect::<Result<Vec<_>, _>>()?.into_iter()).map_err(|error| {
        // In the words that are used for everything else.
        let missing = error.strip_prefix("missing field ");
        missing.map_or_else(|| error.clone(), |name| format!("argument {name} is missing"))
    })
}

/// A field that says its name when it does not fit.
struct Named {
    name: String,
    field: Field,
}

impl IntoDeserializer<'_, Error> for Named {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Hands everything on to the field.
macro_rules! named {
    ($($method:ident($($arg:ident: $ty:ty),*);)+) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $ty,)* visitor: V) -> Result<V::Value, Error> {
            let Self { name, field } = self;
            field.$method($($arg,)* visitor).map_err(|error| Error::custom(format_args!("argument `{name}`: {error}")))
        }
    )+};
}

impl<'de> Deserializer<'de> for Named {
    type Error = Error;

    named! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_f32();
        deserialize_f64();
        deserialize_option();
        deserialize_seq();
        deserialize_newtype_struct(name_of_type: &'static str);
        deserialize_enum(name_of_type: &'static str, variants: &'static [&'static str]);
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier
        ignored_any
    }
}

struct Field(Variable);

impl Field {
    fn text(&self) -> Result<&str, Error> {
        match &self.0 {
            Variable::Text(text) => Ok(text),
            _ => Err(Error::custom("expected one value, found several")),
        }
    }
}

impl IntoDeserializer<'_, Error> for Field {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $ty:ty, $what:literal;)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let text = self.text()?;
            let value: $ty = text.trim().parse()
                .map_err(|_| Error::custom(format_args!("expected {}, found {text:?}", $what)))?;
            visitor.$visit(value)
        }
    )+};
}

impl<'de> Deserializer<'de> for Field {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let texts = |texts: Vec<String>| texts.into_iter().map(|text| Self(Variable::Text(text)));
        match self.0 {
            Variable::Text(text) => visitor.visit_string(text),
            Variable::List(items) => visitor.visit_seq(SeqDeserializer::new(texts(items))),
            Variable::Pairs(pairs) => {
                let pairs = pairs.into_iter().map(|(name, text)| (name, Self(Variable::Text(text))));
                visitor.visit_map(MapDeserializer::new(pairs))
            }
        }
    }

    /// One value is as good as a list of one.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Variable::Text(text) => Self(Variable::List(vec![text])).deserialize_any(visitor),
            _ => self.deserialize_any(visitor),
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

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.text()?.to_owned().into_deserializer())
    }

    parsed! {
        deserialize_bool visit_bool bool, "true or false";
        deserialize_i8 visit_i8 i8, "a whole number";
        deserialize_i16 visit_i16 i16, "a whole number";
        deserialize_i32 visit_i32 i32, "a whole number";
        deserialize_i64 visit_i64 i64, "a whole number";
        deserialize_u8 visit_u8 u8, "a whole number";
        deserialize_u16 visit_u16 u16, "a whole number";
        deserialize_u32 visit_u32 u32, "a whole number";
        deserialize_u64 visit_u64 u64, "a whole number";
        deserialize_f32 visit_f32 f32, "a number";
        deserialize_f64 visit_f64 f64, "a number";
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Tone {
        Warm,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wanted {
        name: String,
        times: Option<u8>,
        loud: bool,
        tone: Tone,
    }

    #[test]
    fn fields_are_read_from_their_text() {
        let wanted: Wanted = decode_json(br#"{"name":"7","times":"3","loud":"true","tone":"warm"}"#).unwrap();
        assert_eq!(wanted, Wanted { name: "7".into(), times: Some(3), loud: true, tone: Tone::Warm });
        let wanted: Wanted = decode_json(br#"{"name":"x","times":null,"loud":false,"tone":"warm"}"#).unwrap();
        assert_eq!(wanted.times, None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, message) in [
            (r#"{"loud":"true","tone":"warm"}"#, "argument `name` is missing"),
            (
                r#"{"name":"x","times":"many","loud":"true","tone":"warm"}"#,
                "argument `times`: expected a whole number, found \"many\"",
            ),
            (r#"{"name":[],"loud":"true","tone":"warm"}"#, "argument `name`: expected a string"),
            (
                r#"{"name":"x","loud":"true","tone":"cold"}"#,
                "argument `tone`: unknown variant `cold`, expected `warm`",
            ),
        ] {
            assert_eq!(decode_json::<Wanted>(text.as_bytes()).unwrap_err(), message);
        }
    }
}
