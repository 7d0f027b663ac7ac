//! Which keywords hold subschemas, and JSON pointers to them.

use serde_json::Value;

use super::words;

/// How the value of a keyword holds subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The value is a subschema, or in older drafts an array of them.
    Schema,
    /// The value is an array of subschemas.
    List,
    /// The value is an object whose members are subschemas.
    Map,
    /// The value is data.
    Nothing,
}

pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
        | "properties" => Holds::Map,
        _ => Holds::Nothing,
    }
}

/// Whether `value` can be a schema at all.
pub(super) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// Appends one token to a JSON pointer.
pub(super) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// The pointer one token below `pointer`.
pub(super) fn below(pointer: &str, token: &str) -> String {
    let mut longer = pointer.to_owned();
    push_token(&mut longer, token);
    longer
}

/// The value one escaped pointer token below `value`.
pub(super) fn step<'v>(value: &'v Value, token: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => members.get(&unescape(token)),
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Undoes the escapes of one pointer token.
pub(super) fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The pointer from `root` to `target`, a value inside it, for people to read: long names in it are shortened.
///
/// Recursive, so only for values of checked depth.
pub(super) fn pointer_to(root: &Value, target: &Value) -> String {
    let mut tokens = Vec::new();
    find(root, target, &mut tokens);
    let mut pointer = String::new();
    for token in tokens.iter().rev() {
        push_token(&mut pointer, &words::shortened(token));
    }
    pointer
}

/// Collects the tokens to `target`, the last one first.
fn find(value: &Value, target: &Value, tokens: &mut Vec<String>) -> bool {
    if std::ptr::eq(value, target) {
        return true;
    }
    let token = match value {
        Value::Object(members) => {
            members.iter().find(|(_, below)| find(below, target, tokens)).map(|(name, _)| name.clone())
        }
        Value::Array(items) => {
            items.iter().position(|below| find(below, target, tokens)).map(|index| index.to_string())
        }
        _ => None,
    };
    let found = token.is_some();
    tokens.extend(token);
    found
}
