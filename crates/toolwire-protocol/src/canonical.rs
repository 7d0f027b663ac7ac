//! JSON text in which equal values are equal: the members of every object in the order of their names.

use std::fmt::Write as _;

use serde_json::Value;

/// Appends an object made of `members`.
pub(crate) fn write_object<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut String) {
    out.push('{');
    for (name, value) in sorted_members(members) {
        // Writing to a string cannot fail.
        let _ = write!(out, "{name:?}:");
        write_value(value, out);
        out.push(',');
    }
    out.push('}');
}

/// A map may keep the order of insertion, which says nothing about equality.
pub(crate) fn sorted_members<'a>(
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Vec<(&'a String, &'a Value)> {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => write_object(members.iter(), out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_value(item, out);
                out.push(',');
            }
            out.push(']');
        }
        // A whole number is the same number with and without a fraction of zero.
        Value::Number(number) => {
            match number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0) {
                Some(whole) => drop(write!(out, "{whole:.0}")),
                None => out.push_str(&number.to_string()),
            }
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> String {
        let mut out = String::new();
        write_value(value, &mut out);
        out
    }

    #[test]
    fn order_and_spelling_do_not_matter() {
        let one: Value = serde_json::from_str(r#"{"b":[1.0,{"y":1,"x":null}],"a":"\u0041"}"#).unwrap();
        assert_eq!(text(&one), text(&json!({"a": "A", "b": [1, {"x": null, "y": 1}]})));
        assert_ne!(text(&json!(1.5)), text(&json!(1)));
        assert_ne!(text(&json!("1")), text(&json!(1)));
        assert_ne!(text(&json!([1, 2])), text(&json!([12])));
    }
}
