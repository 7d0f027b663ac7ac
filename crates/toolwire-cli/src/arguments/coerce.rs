//! Making of a text what a schema wants.

use serde_json::{Map, Number, Value};

use crate::schema;

/// The text as a value of the type that the schema at this place wants.
pub(crate) fn coerce(text: &str, root: &Value, place: &Value) -> Value {
    let choices = schema::choices(root, place);
    let string = Value::from(text);
    if choices.contains(&&string) {
        return string;
    }
    if let Some(choice) = choices.iter().find(|choice| choice.to_string() == text) {
        return (**choice).clone();
    }
    let types = schema::types(root, place);
    if types.is_empty() {
        return if choices.is_empty() { guess(text) } else { string };
    }
    let fits =
        types.iter().filter(|kind| **kind != "string").find_map(|kind| of_type(kind, text, root, place));
    fits.unwrap_or(string)
}

/// Without a schema: JSON where it is some, and else a string.
pub(super) fn guess(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Whether a list is wanted, and nothing that could be meant instead.
pub(super) fn is_list(root: &Value, place: &Value) -> bool {
    let types = schema::types(root, place);
    types.contains(&"array") && !types.contains(&"string")
}

/// Whether a whole number is wanted, and one is written that has more digits than there is room for.
pub(super) fn is_too_large(text: &str, root: &Value, place: &Value) -> bool {
    let types = schema::types(root, place);
    let digits = text.trim().trim_start_matches(['-', '+']);
    types.contains(&"integer")
        && !types.iter().any(|kind| matches!(*kind, "string" | "number"))
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && text.trim().parse::<i64>().is_err()
        && text.trim().parse::<u64>().is_err()
}

fn of_type(kind: &str, text: &str, root: &Value, place: &Value) -> Option<Value> {
    let trimmed = text.trim();
    match kind {
        "null" => (trimmed == "null").then_some(Value::Null),
        "boolean" => boolean(trimmed).map(Value::Bool),
        "integer" => number(trimmed).and_then(|number| whole(&number)).map(Value::Number),
        "number" => number(trimmed).map(Value::Number),
        "array" => list(text, root, place),
        "object" => serde_json::from_str::<Map<String, Value>>(trimmed).ok().map(Value::Object),
        _ => None,
    }
}

/// The words that people use for yes and no.
fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "on" => Some(true),
        "false" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}

/// A JSON number; a leading `+` or `.5` is understood as well.
pub(crate) fn number(text: &str) -> Option<Number> {
    if let Ok(number) = serde_json::from_str(text) {
        return Some(number);
    }
    text.parse().ok().and_then(Number::from_f64)
}

/// A number that is a whole one, however it is written: `1e3` and `1.0` are.
pub(crate) fn whole(number: &Number) -> Option<Number> {
    /// From here on not every whole number has its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return Some(number.clone());
    }
    let value = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < EXACT)?;
    // Written without a point, it is read exactly.
    serde_json::from_str(&format!("{value:.0}")).ok()
}

/// A JSON list, several numbers with commas between them, or one item.
fn list(text: &str, root: &Value, place: &Value) -> Option<Value> {
    if text.trim_start().starts_with('[')
        && let Ok(items) = serde_json::from_str::<Vec<Value>>(text)
    {
        return Some(Value::Array(items));
    }
    // Where a text could be meant, the list has to be asked for.
    if !is_list(root, place) {
        return None;
    }
    let Some(item) = schema::item(root, place, None) else { return Some(Value::Array(vec![guess(text)])) };
    let types = schema::types(root, item);
    // A text may have commas of its own; a number has none.
    let splits =
        !types.is_empty() && types.iter().all(|kind| matches!(*kind, "integer" | "number" | "boolean"));
    let items = if splits {
        text.split(',').map(|text| coerce(text.trim(), root, item)).collect()
    } else {
        vec![coerce(text, root, item)]
    };
    Some(Value::Array(items))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(text: &str, schema: &Value) -> Value {
        coerce(text, schema, schema)
    }

    #[test]
    fn choices_win_over_types() {
        assert_eq!(coerced("1", &json!({ "enum": ["1", 1] })), json!("1"));
        assert_eq!(coerced("1", &json!({ "enum": [1, 2] })), json!(1));
        assert_eq!(coerced("x", &json!({ "enum": [1, 2] })), json!("x"));
    }

    #[test]
    fn numbers_keep_their_digits() {
        let integer = json!({ "type": "integer" });
        assert_eq!(coerced("9223372036854775807", &integer), json!(i64::MAX));
        assert_eq!(coerced("1.5", &integer), json!("1.5"));
        assert_eq!(coerced(".5", &json!({ "type": "number" })), json!(0.5));
        assert_eq!(coerced("NaN", &json!({ "type": "number" })), json!("NaN"));
    }

    #[test]
    fn a_text_that_may_be_a_list_stays_a_text() {
        let either =
            json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
        assert_eq!(coerced("a", &either), json!("a"));
        assert_eq!(coerced(r#"["a"]"#, &either), json!(["a"]));
    }
}
