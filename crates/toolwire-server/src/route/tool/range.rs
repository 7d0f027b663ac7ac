//! Integers that do not fit the width which the schema gives them as their format.
//!
//! Schemas do not have to check formats, so this only explains what decoding has refused.

use serde_json::{Number, Value};

/// How deep arguments are looked at.
const MAX_DEPTH: usize = 32;

/// The first integer that does not fit, with its path and what would.
pub(super) fn out_of_range(schema: &Value, value: &Value) -> Option<String> {
    look(schema, schema, value, "", MAX_DEPTH)
}

fn look(root: &Value, schema: &Value, value: &Value, path: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    if let Some(place) = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'))
    {
        return look(root, root.pointer(place)?, value, path, depth);
    }
    // An optional one is written as a choice, of which one is null.
    let choices =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
    for choice in choices {
        if let Some(found) = look(root, choice, value, path, depth) {
            return Some(found);
        }
    }
    match value {
        Value::Number(number) => {
            misfit(schema.get("format")?.as_str()?, number).map(|why| format!("{path}: {why}"))
        }
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let inner = schema
                .get("properties")
                .and_then(|all| all.get(name))
                .or_else(|| schema.get("additionalProperties"));
            let dot = if path.is_empty() { "" } else { "." };
            look(root, inner?, member, &format!("{path}{dot}{name}"), depth)
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            look(root, schema.get("items")?, item, &format!("{path}[{index}]"), depth)
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

fn misfit(format: &str, number: &Number) -> Option<String> {
    let (least, most): (i128, i128) = match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" | "int" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" | "uint" => (0, u64::MAX.into()),
        _ => return None,
    };
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let fits = whole.is_some_and(|whole| (least..=most).contains(&whole));
    (!fits).then(|| format!("expected an integer from {least} to {most}, found {number}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_found_wherever_it_is() {
        let schema = json!({ "properties": {
            "a": { "type": "integer", "format": "int64" },
            "list": { "items": { "$ref": "#/$defs/Small" } },
            "maybe": { "anyOf": [{ "$ref": "#/$defs/Small" }, { "type": "null" }] },
        }, "$defs": { "Small": { "properties": { "n": { "format": "uint8" } } }, "Loop": { "$ref": "#/$defs/Loop" } } });
        let found = |value: Value| out_of_range(&schema, &value);
        assert_eq!(
            found(json!({ "a": 9_223_372_036_854_775_808_u64 })).as_deref(),
            Some(
                "a: expected an integer from -9223372036854775808 to 9223372036854775807, found 9223372036854775808"
            )
        );
        let expected = "expected an integer from 0 to 255, found 256";
        assert_eq!(
            found(json!({ "list": [{ "n": 1 }, { "n": 256 }] })),
            Some(format!("list[1].n: {expected}"))
        );
        assert_eq!(found(json!({ "maybe": { "n": 256 } })), Some(format!("maybe.n: {expected}")));
        assert_eq!(found(json!({ "a": -1, "list": [{ "n": 255 }], "maybe": null, "other": 1e300 })), None);
        let endless = json!({ "$ref": "#/$defs/Loop", "$defs": { "Loop": { "$ref": "#/$defs/Loop" } } });
        assert_eq!(out_of_range(&endless, &json!(1)), None);
    }
}
