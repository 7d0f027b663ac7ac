//! A server in a text of JSON: put in, replaced or taken out, with everything else left as it is written.
//!
//! The new text is read again and must say what the old one said, plus or minus the one server. So a mistake
//! here becomes a message, and never a damaged file.

use std::path::Path;

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode},
};
use serde_json::{Map, Value};

use super::entry::{Entry, Field};
use crate::{
    config::{Format, syntax},
    failure::{Code, Failure, Result},
    target::shell_word,
};

/// The text with the server in it.
pub(super) fn with_server(
    path: &Path,
    text: &str,
    key: &str,
    name: &str,
    entry: &Entry,
    force: bool,
) -> Result<String> {
    // A new file, and one with nothing in it, begins as one without servers.
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let mut expected = syntax::parse(path, text, Format::Json)?;
    let root = expected.as_object_mut().ok_or_else(|| unexpected(path, "the settings are no object { }"))?;
    let servers = root.entry(key).or_insert_with(|| Value::Object(Map::new()));
    let servers =
        servers.as_object_mut().ok_or_else(|| unexpected(path, &format!("{key} is not an object {{ }}")))?;
    if servers.insert(name.to_owned(), entry.value()).is_some() && !force {
        return Err(taken(path, name));
    }
    let tree = tree(path, text)?;
    let servers = tree.object_value().and_then(|root| root.object_value_or_create(key));
    let servers = servers.ok_or_else(|| unexpected(path, "its structure is not understood"))?;
    match last(&servers, name) {
        Some(old) => old.set_value(entry.into()),
        None => drop(servers.append(name, entry.into())),
    }
    checked(path, tree.to_string(), &expected)
}

/// The text without a server that is in the table that the keys lead to.
pub(super) fn without_server(path: &Path, text: &str, keys: &[String], name: &str) -> Result<String> {
    let mut expected = syntax::parse(path, text, Format::Json)?;
    let table = keys.iter().try_fold(&mut expected, |table, key| table.get_mut(key));
    if let Some(table) = table.and_then(Value::as_object_mut) {
        table.remove(name);
    }
    let tree = tree(path, text)?;
    let table = keys.iter().try_fold(tree.object_value(), |table, key| {
        Some(last(&table?, key).and_then(|member| member.object_value()))
    });
    let server = table.flatten().and_then(|table| last(&table, name));
    server.ok_or_else(|| unexpected(path, "its structure is not understood"))?.remove();
    checked(path, tree.to_string(), &expected)
}

/// The failure for a name that is in use.
pub(super) fn taken(path: &Path, name: &str) -> Failure {
    let message = format!("{}: there is a server `{name}` already", path.display());
    Failure::new(Code::Usage, message)
        .hint(format!("--force replaces it; toolwire tools {} shows what it is", shell_word(name)))
}

/// The text as a tree with every space and comment in it.
fn tree(path: &Path, text: &str) -> Result<CstRootNode> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| unexpected(path, &error.to_string()))
}

/// The member with this name; of several, the last one counts.
fn last(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    object.properties().into_iter().rfind(|member| member.decoded_name().as_deref() == Some(name))
}

fn checked(path: &Path, new: String, expected: &Value) -> Result<String> {
    match syntax::parse(path, &new, Format::Json) {
        Ok(value) if value == *expected => Ok(new),
        _ => Err(unexpected(path, "it cannot be edited without changing something else")),
    }
}

pub(super) fn unexpected(path: &Path, why: &str) -> Failure {
    Failure::new(Code::ConfigBroken, format!("{}: {why}; nothing was changed", path.display()))
        .hint("change it by hand")
}

/// In the order of its fields.
impl From<&Entry> for CstInputValue {
    fn from(entry: &Entry) -> Self {
        Self::Object(entry.0.iter().map(|(name, field)| ((*name).to_owned(), field.into())).collect())
    }
}

impl From<&Field> for CstInputValue {
    fn from(field: &Field) -> Self {
        match field {
            Field::Text(text) => Self::String(text.clone()),
            Field::List(list) => Self::Array(list.iter().cloned().map(Self::String).collect()),
            Field::Pairs(pairs) => Self::Object(
                pairs.iter().map(|(name, value)| (name.clone(), Self::String(value.clone()))).collect(),
            ),
        }
    }
}
