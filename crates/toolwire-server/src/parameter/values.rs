//! The arguments of one call, split by name and not yet decoded.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use toolwire_protocol::{
    Method, RpcError, for_each_member, schema::MAX_SHOWN_CHARS, uri_template::Variables,
};

use super::{Signature, Table, missing::missing};
use crate::{
    Context, extract::strings, handler::Rejection, nearest::nearest, route::ToolRoute, schema::mend,
};

/// The values for the `N` parameters of a function. Those of extractors are never there.
#[derive(Debug)]
pub struct Values<'a, const N: usize> {
    table: &'a Table,
    /// All the arguments.
    text: &'a str,
    found: [Option<&'a str>; N],
}

impl<'a, const N: usize> Values<'a, N> {
    /// Splits the arguments of a request.
    ///
    /// # Errors
    /// When an argument is unknown, duplicated or missing.
    pub fn split(cx: &'a Context, signature: &'a Signature) -> Result<Self, Rejection> {
        let table = &signature.table;
        let mut found = [None; N];
        let text = if table.rows.is_empty() { "{}" } else { fill(cx, table, &mut found)? };
        Ok(Self { table, text, found })
    }

    /// The value for a parameter.
    pub fn slot(&self, position: usize) -> Slot<'a> {
        let raw = self.found.get(position).copied().flatten();
        Slot { raw, table: self.table, position }
    }

    /// Decodes an argument with attributes of its own: `T` is a struct with it as its only field.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn field<T: DeserializeOwned>(&self, cx: &Context) -> Result<T, Rejection> {
        let decoded = if is_prompt(cx) {
            strings::decode_json(self.text.as_bytes())
        } else {
            serde_json::from_str(self.text).map_err(|error| error.to_string()).or_else(|error| {
                let mended = tool(cx).and_then(|route| route.mend(self.text)).ok_or(error)?;
                serde_json::from_value(mended).map_err(|error| error.to_string())
            })
        };
        decoded.map_err(Rejection::InvalidArguments)
    }
}

/// The value for one parameter.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    raw: Option<&'a str>,
    table: &'a Table,
    position: usize,
}

impl Slot<'_> {
    /// Whether nothing was given.
    pub fn is_absent(&self) -> bool {
        self.raw.is_none()
    }

    /// The argument, as this type.
    pub(super) fn decode<T: DeserializeOwned>(self, cx: &Context) -> Result<T, Rejection> {
        let Some(raw) = self.raw else {
            return missing().ok_or_else(|| self.rejection(&"it is missing"));
        };
        if is_prompt(cx) {
            return strings::decode_value(raw).map_err(|error| self.rejection(&error));
        }
        serde_json::from_str(raw).or_else(|error| {
            let mended = self.mended(cx, raw).ok_or_else(|| self.rejection(&error))?;
            serde_json::from_value(mended).map_err(|error| self.rejection(&error))
        })
    }

    /// The value without what means nothing, and as the schema has it, if that makes a difference.
    fn mended(&self, cx: &Context, raw: &str) -> Option<serde_json::Value> {
        let route = tool(cx)?;
        let schema = route.input.schema.get("properties")?.get(self.name())?;
        mend(raw, schema, route.lenient)
    }

    fn name(&self) -> &str {
        let row = self.table.rows.iter().find(|row| row.position == self.position);
        row.and_then(|row| row.names.first()).map_or("?", |name| name)
    }

    fn rejection(&self, why: &dyn std::fmt::Display) -> Rejection {
        Rejection::InvalidArguments(format!("argument `{}`: {why}", self.name()))
    }
}

/// Decodes a variable of a resource template.
///
/// # Errors
/// When it does not fit its type, and when there are no variables at all.
pub fn variable<T: DeserializeOwned>(cx: &Context, name: &str) -> Result<T, Rejection> {
    let captures =
        cx.captures().ok_or_else(|| RpcError::internal("only resource templates have variables"))?;
    match captures.get(name) {
        Some(value) => strings::decode_variable(name, value).map_err(Rejection::InvalidArguments),
        None => missing().ok_or_else(|| Rejection::InvalidArguments(format!("variable `{name}` is missing"))),
    }
}

/// Decodes the variables of a resource template together.
///
/// # Errors
/// When they do not fit, and when there are none at all.
pub fn variables<T: DeserializeOwned>(cx: &Context) -> Result<T, Rejection> {
    strings::decode_variables(captures(cx)?).map_err(Rejection::InvalidArguments)
}

fn captures(cx: &Context) -> Result<&Variables, Rejection> {
    cx.captures().ok_or_else(|| RpcError::internal("only resource templates have variables").into())
}

/// Whether a variable of a resource template was left out.
pub fn variable_is_absent(cx: &Context, name: &str) -> bool {
    cx.captures().is_none_or(|captures| captures.get(name).is_none())
}

fn is_prompt(cx: &Context) -> bool {
    cx.method().known() == Some(Method::GetPrompt)
}

fn tool(cx: &Context) -> Option<&Arc<ToolRoute>> {
    cx.0.tool.get()
}

/// Finds the values, and everything that is wrong with the names. Gives the arguments as text.
fn fill<'a>(cx: &'a Context, table: &Table, found: &mut [Option<&'a str>]) -> Result<&'a str, Rejection> {
    let text = match cx.0.peek.arguments.as_deref().map(std::str::from_utf8) {
        Some(Ok(text)) => text,
        Some(Err(_)) => return Err(Rejection::InvalidArguments("the arguments are not UTF-8".to_owned())),
        None => "{}",
    };
    // Prompts are filled in by forms; what else a host sends with them is no mistake of anybody's.
    let closed = tool(cx).is_some_and(|route| !route.lenient);
    let mut problem = None;
    let is_object = for_each_member(text, |name, value| match table.find(&name) {
        Some(row) if row.whole => {}
        Some(row) => {
            let place = found.get_mut(row.position);
            if place.is_some_and(|place| place.replace(value).is_some()) {
                problem = Some(format!("argument `{name}` is duplicated"));
            }
        }
        None if closed && problem.is_none() => problem = Some(unknown(&name, table.names())),
        None => {}
    });
    if !is_object {
        return Err(Rejection::InvalidArguments("the arguments are not a JSON object".to_owned()));
    }
    for row in &table.rows {
        let Some(place) = found.get_mut(row.position) else { continue };
        // The arguments of a prompt are texts, and this is none.
        if *place == Some("null") && (row.null_is_absent || is_prompt(cx)) {
            *place = None;
        }
        if row.required && place.is_none() && problem.is_none() {
            let name = row.names.first().map_or("?", |name| name);
            problem = Some(format!("argument `{name}` is missing"));
        }
    }
    match problem {
        Some(problem) => Err(Rejection::InvalidArguments(problem)),
        None => Ok(text),
    }
}

/// Says that there is no such argument, and which one may have been meant.
pub(crate) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let shown: String = name.chars().take(MAX_SHOWN_CHARS).collect();
    match nearest(name, known) {
        Some(known) => format!("unknown argument `{shown}`; did you mean `{known}`?"),
        None => format!("unknown argument `{shown}`"),
    }
}
