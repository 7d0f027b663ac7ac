//! A server in a text of TOML; the rest stays as it is written.

use std::path::Path;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{
    entry::{Entry, Field},
    json::{taken, unexpected},
};
use crate::{
    config::{Format, syntax},
    failure::Result,
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
    let mut document = parse(path, text)?;
    let servers = document.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        // It has no line of its own: the servers below it name it.
        table.set_implicit(true);
        Item::Table(table)
    });
    let inline = servers.is_inline_table();
    let servers =
        servers.as_table_like_mut().ok_or_else(|| unexpected(path, &format!("{key} is not a table")))?;
    if servers.contains_key(name) && !force {
        return Err(taken(path, name));
    }
    put(servers, name, entry, inline);
    Ok(document.to_string())
}

/// The text without a server that is in the table that the keys lead to.
pub(super) fn without_server(path: &Path, text: &str, keys: &[String], name: &str) -> Result<String> {
    let mut document = parse(path, text)?;
    let table = keys.iter().try_fold(document.as_item_mut(), |table, key| table.get_mut(key));
    if let Some(table) = table.and_then(Item::as_table_like_mut) {
        table.remove(name);
    }
    Ok(document.to_string())
}

fn parse(path: &Path, text: &str) -> Result<DocumentMut> {
    // For its message, which knows line and column.
    syntax::parse(path, text, Format::Toml)?;
    text.parse().map_err(|_| unexpected(path, "its structure is not understood"))
}

fn put(servers: &mut dyn TableLike, name: &str, entry: &Entry, inline: bool) {
    let fields = entry.0.iter().map(|(name, field)| (*name, value(field)));
    let item = if inline {
        Item::Value(Value::InlineTable(fields.collect::<InlineTable>()))
    } else {
        let mut table: Table = fields.map(|(name, value)| (name, Item::Value(value))).collect();
        // A table that is replaced keeps its place and the comments above it.
        if let Some(old) = servers.get(name).and_then(Item::as_table) {
            table.set_position(old.position());
            *table.decor_mut() = old.decor().clone();
        }
        Item::Table(table)
    };
    servers.insert(name, item);
}

fn value(field: &Field) -> Value {
    match field {
        Field::Text(text) => text.into(),
        Field::List(list) => Value::Array(list.iter().collect::<Array>()),
        Field::Pairs(pairs) => Value::InlineTable(pairs.iter().cloned().collect::<InlineTable>()),
    }
}
