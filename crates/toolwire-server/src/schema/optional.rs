//! What may be left out: `null` stands for it nowhere in a schema of arguments, and everywhere in what models send.

use serde_json::{Number, Value};
use toolwire_protocol::wire::JsonObject;

/// Takes `null` out of a schema that a type made by itself for `Option<T>`.
pub(crate) fn without_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|ty| ty != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum")
        && values.len() > 1
    {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = object.get_mut(keyword) else { continue };
        branches.retain(|branch| branch.get("type") != Some(&"null".into()));
        if branches.len() != 1 {
            continue;
        }
        // What is said beside the alternatives, such as a description, holds for the only one that is left.
        let only = branches.pop();
        object.remove(keyword);
        if let Some(Value::Object(only)) = only {
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// Does that to every property that need not be there, at any depth. One that is required keeps its `null`.
pub(crate) fn without_optional_nulls(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let required = object.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                for (name, property) in properties {
                    if !names(&required, name) {
                        without_null(property);
                        // A default that stands for nothing says nothing.
                        if let Some(property) = property.as_object_mut()
                            && property.get("default") == Some(&Value::Null)
                        {
                            property.retain(|keyword, _| keyword != "default");
                        }
                    }
                    without_optional_nulls(property);
                }
            }
            for (keyword, value) in object {
                match keyword.as_str() {
                    "$defs" => without_optional_nulls_in(value),
                    // What stands below these is data, or was looked at above.
                    "properties" | "default" | "examples" | "const" | "enum" | "required" => {}
                    _ => without_optional_nulls(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_optional_nulls),
        _ => {}
    }
}

/// Does that to every schema of a set of definitions.
pub(crate) fn without_optional_nulls_in(definitions: &mut Value) {
    if let Some(definitions) = definitions.as_object_mut() {
        definitions.values_mut().for_each(without_optional_nulls);
    }
}

/// Whether `null` is a value like any other to a schema, for instance to that of `serde_json::Value`.
pub(crate) fn takes_null(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else { return schema != &Value::Bool(false) };
    let has_null = |list: &Value| list.as_array().is_some_and(|list| list.contains(&Value::Null));
    let any = |keyword| {
        object.get(keyword).and_then(Value::as_array).map(|branches| branches.iter().any(takes_null))
    };
    match object.get("type") {
        Some(Value::String(ty)) => return ty == "null",
        Some(Value::Array(types)) => return types.iter().any(|ty| ty == "null"),
        _ => {}
    }
    match (object.get("const"), object.get("enum")) {
        (Some(value), _) => value.is_null(),
        (None, Some(values)) => has_null(values),
        (None, None) => match (any("anyOf"), any("oneOf")) {
            (None, None) => !object.contains_key("$ref") && !object.contains_key("allOf"),
            (any_of, one_of) => any_of == Some(true) || one_of == Some(true),
        },
    }
}

/// The value without the `null`s that stand for nothing; if `lenient`, with numbers and booleans that were sent as
/// strings. `None` if that makes no difference.
pub(crate) fn mend(raw: &str, schema: &Value, lenient: bool) -> Option<Value> {
    if !lenient && !raw.contains("null") {
        return None;
    }
    let mut value = serde_json::from_str(raw).ok()?;
    mend_value(&mut value, schema, lenient).then_some(value)
}

/// The same, in place. Says whether something was changed.
fn mend_value(value: &mut Value, schema: &Value, lenient: bool) -> bool {
    let mut changed = false;
    match value {
        Value::Object(members) => {
            changed = schema.as_object().is_some_and(|schema| mend_members(members, schema, lenient));
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return false };
            for item in items {
                changed |= mend_value(item, schema, lenient);
            }
        }
        Value::String(text) if lenient => {
            if let Some(read) = read(text.trim(), schema.get("type")) {
                *value = read;
                changed = true;
            }
        }
        _ => {}
    }
    changed
}

/// The same for the members of an object.
pub(crate) fn mend_members(members: &mut JsonObject, schema: &JsonObject, lenient: bool) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let (others, nothing) = (schema.get("additionalProperties"), Value::Null);
    let required = schema.get("required").unwrap_or(&nothing);
    let mut changed = false;
    members.retain(|name, member| {
        let Some(property) = properties.and_then(|properties| properties.get(name)) else {
            changed |= others.is_some_and(|schema| mend_value(member, schema, lenient));
            return true;
        };
        if member.is_null() && !names(required, name) && !takes_null(property) {
            changed = true;
            return false;
        }
        changed |= mend_value(member, property, lenient);
        true
    });
    changed
}

/// The number or boolean that a text stands for, where a schema wants one.
fn read(text: &str, ty: Option<&Value>) -> Option<Value> {
    match ty?.as_str()? {
        "integer" => {
            let signed = text.parse::<i64>().map(Number::from);
            signed.or_else(|_| text.parse::<u64>().map(Number::from)).ok().map(Value::Number)
        }
        "number" => {
            let whole = text.parse::<i64>().ok().map(Number::from);
            whole.or_else(|| Number::from_f64(text.parse().ok()?)).map(Value::Number)
        }
        "boolean" => text.parse().ok().map(Value::Bool),
        _ => None,
    }
}

fn names(required: &Value, name: &str) -> bool {
    required.as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_be_left_out_has_no_null() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": ["integer", "null"], "minimum": 0 },
                "b": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }], "description": "kept" },
                "c": { "enum": ["x", null], "type": ["string", "null"], "default": null },
                "d": { "type": ["string", "null"] },
                "e": { "type": "object", "properties": { "f": { "type": ["boolean", "null"] } } },
            },
            "required": ["d"],
        });
        without_optional_nulls(&mut schema);
        assert_eq!(
            schema["properties"],
            json!({
                "a": { "type": "integer", "minimum": 0 },
                "b": { "$ref": "#/$defs/B", "description": "kept" },
                "c": { "enum": ["x"], "type": "string" },
                "d": { "type": ["string", "null"] },
                "e": { "type": "object", "properties": { "f": { "type": "boolean" } } },
            })
        );
    }

    #[test]
    fn null_is_a_value_only_where_it_is_one() {
        for (schema, takes) in [
            (json!(true), true),
            (json!({}), true),
            (json!({ "description": "anything" }), true),
            (json!({ "type": "string" }), false),
            (json!({ "type": ["string", "null"] }), true),
            (json!({ "enum": ["a"] }), false),
            (json!({ "$ref": "#/$defs/A" }), false),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), true),
            (json!({ "oneOf": [{ "const": "a" }] }), false),
        ] {
            assert_eq!(takes_null(&schema), takes, "{schema}");
        }
    }

    #[test]
    fn nulls_are_taken_out_and_strings_are_read() {
        let schema = json!({
            "properties": {
                "a": { "type": "integer" },
                "b": { "type": "boolean" },
                "c": { "type": "array", "items": { "properties": { "d": { "type": "number" } } } },
                "must": { "type": ["string", "null"] },
            },
            "required": ["must"],
        });
        let sent = r#"{"a":null,"b":null,"c":[{"d":null},{"d":"1.5"}],"must":null,"other":null}"#;
        let expected = json!({ "c": [{}, { "d": "1.5" }], "must": null, "other": null });
        assert_eq!(mend(sent, &schema, false), Some(expected));
        assert_eq!(mend(r#"{"a":"3"}"#, &schema, false), None);
        assert_eq!(mend(r#"{"a":" 3","b":"true"}"#, &schema, true), Some(json!({ "a": 3, "b": true })));
        assert_eq!(mend(r#"{"a":"three"}"#, &schema, true), None);
    }
}
