//! Reading the JSON Schemas of servers: what is at a place, and how that is said in a few characters.
//!
//! It follows references inside one document only, and gives up early on schemas that go round in circles or
//! on for ever. Whether a value fits is not decided here but by `toolwire::protocol::schema`.

mod check;
mod short;

use serde_json::{Map, Value};

pub(crate) use check::check;
pub(crate) use short::{Member, members, plain, returns, short};

/// How many references and combinations are followed inside each other.
const MAX_DEPTH: usize = 16;
/// How many alternatives of one place are looked at.
const MAX_ALTERNATIVES: usize = 64;
/// The number of bytes that a reference may have to be followed: many places may lead to the same one.
const MAX_REFERENCE_BYTES: usize = 512;
/// The number of characters that are taken of a description that a reference leads to.
const MAX_SHARED_DESCRIPTION: usize = 2000;

/// The schema that a local reference stands for, or the schema itself.
pub(crate) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let reference = reference.filter(|reference| reference.len() <= MAX_REFERENCE_BYTES);
        let target = reference.and_then(|reference| reference.strip_prefix('#'));
        match target.and_then(|pointer| root.pointer(pointer)) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

/// The schema without its wrappers: every alternative that a value at this place may follow.
pub(crate) fn alternatives<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Map<String, Value>> {
    let mut found = Vec::new();
    let mut left = MAX_ALTERNATIVES;
    collect(root, schema, 0, &mut left, &mut found);
    found
}

/// Adds the alternatives of a schema. `left` is how many may still be looked at, objects or not.
fn collect<'a>(
    root: &'a Value,
    schema: &'a Value,
    depth: usize,
    left: &mut usize,
    found: &mut Vec<&'a Map<String, Value>>,
) {
    if depth > MAX_DEPTH || *left == 0 {
        return;
    }
    *left -= 1;
    let Some(object) = resolve(root, schema).as_object() else { return };
    found.push(object);
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for branch in object.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            if *left == 0 {
                return;
            }
            collect(root, branch, depth + 1, left, found);
        }
    }
}

/// The schema of a property, if the object's schema says anything about it.
pub(crate) fn property<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    let objects = alternatives(root, schema);
    let named = objects.iter().find_map(|object| object.get("properties")?.get(name));
    let others = || objects.iter().find_map(|object| object.get("additionalProperties"));
    named.or_else(others).filter(|schema| schema.is_object())
}

/// The schema of the items of a list.
pub(crate) fn item<'a>(root: &'a Value, schema: &'a Value, index: Option<usize>) -> Option<&'a Value> {
    let lists = alternatives(root, schema);
    let first = |list: &&'a Map<String, Value>| list.get("prefixItems")?.get(index?);
    let first = lists.iter().find_map(first);
    first.or_else(|| lists.iter().find_map(|list| list.get("items"))).filter(|schema| schema.is_object())
}

/// The names of the types that a value may have; none when the schema does not say.
pub(crate) fn types<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a str> {
    let mut types = Vec::new();
    for alternative in alternatives(root, schema) {
        match alternative.get("type") {
            Some(Value::String(name)) => types.push(name.as_str()),
            Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    types
}

/// The values that are listed as the only ones.
pub(crate) fn choices<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut values = Vec::new();
    for alternative in alternatives(root, schema) {
        values.extend(alternative.get("const"));
        values.extend(alternative.get("enum").and_then(Value::as_array).into_iter().flatten());
    }
    values
}

/// The names of the properties that must be there, in the order the schema lists them.
pub(crate) fn required(schema: &Value) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What the schema says to people.
pub(crate) fn description<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a str> {
    let said = |schema: &'a Value| schema.get("description").and_then(Value::as_str);
    said(schema).or_else(|| said(resolve(root, schema)).map(|text| beginning(text, MAX_SHARED_DESCRIPTION)))
}

/// The first characters of a text.
fn beginning(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_and_circles_are_left() {
        let root = json!({
            "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "type": "integer" }, "c": { "$ref": "#/$defs/c" } },
            "properties": { "x": { "$ref": "#/$defs/a" }, "y": { "$ref": "#/$defs/c" } },
        });
        assert_eq!(types(&root, property(&root, &root, "x").unwrap()), ["integer"]);
        assert_eq!(types(&root, property(&root, &root, "y").unwrap()), Vec::<&str>::new());
        let deep = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        assert!(alternatives(&deep, &deep).len() <= MAX_ALTERNATIVES);
    }

    #[test]
    fn what_many_places_share_is_not_read_again_for_each() {
        let long = "x".repeat(1_000_000);
        let root = json!({
            "$defs": {
                "far": { "$ref": format!("#/$defs/{long}") },
                "said": { "description": long },
                "wide": { "anyOf": vec![true; 1_000_000] },
            },
        });
        let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let (far, said, wide) = (to("far"), to("said"), to("wide"));
        for _ in 0..10_000 {
            assert_eq!(resolve(&root, &far)["$ref"].as_str().map(str::len), Some(1_000_008));
            assert_eq!(alternatives(&root, &wide).len(), 1);
        }
        assert_eq!(description(&root, &said).map(str::len), Some(MAX_SHARED_DESCRIPTION));
    }

    #[test]
    fn every_alternative_counts() {
        let schema = json!({ "anyOf": [{ "type": ["string", "null"] }, { "type": "array", "items": { "type": "number" } }] });
        assert_eq!(types(&schema, &schema), ["string", "null", "array"]);
        assert_eq!(types(&schema, item(&schema, &schema, None).unwrap()), ["number"]);
    }
}
