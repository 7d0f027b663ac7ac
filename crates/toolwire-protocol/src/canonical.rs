//! JSON text in which equal values are equal: the members of every object in the order of their names.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::Value;

use crate::scan::{Malformed, Scanner};

/// The object in `text`, without the members at its top that are to be left out. `None` if it is not one, or has a flaw.
///
/// Nothing is lost in it, so that different values never become the same text: a number keeps all its digits, also
/// those that no type here could hold.
pub(crate) fn object(text: &str, leave_out: &[&str]) -> Option<String> {
    let mut scanner = Scanner::new(text);
    if scanner.peek() != Some(b'{') {
        return None;
    }
    let mut out = String::new();
    let whole = write_members(&mut scanner, leave_out, &mut out).is_ok() && scanner.is_done();
    (whole && scanner.flaw(whole).is_none()).then_some(out)
}

fn write_members(scanner: &mut Scanner<'_>, leave_out: &[&str], out: &mut String) -> Result<(), Malformed> {
    let mut members: Vec<(Cow<'_, str>, String)> = Vec::new();
    scanner.object(|scanner, name| {
        let name = name.text().ok_or(Malformed)?;
        if leave_out.contains(&&*name) {
            return scanner.value().map(drop);
        }
        let mut value = String::new();
        write_text(scanner, &mut value)?;
        members.push((name, value));
        Ok(())
    })?;
    members.sort_unstable();
    out.push('{');
    for (name, value) in members {
        write_string(&name, out);
        out.push(':');
        out.push_str(&value);
        out.push(',');
    }
    out.push('}');
    Ok(())
}

/// Appends the value that the scanner stands before. Recursive, which the scanner bounds.
fn write_text(scanner: &mut Scanner<'_>, out: &mut String) -> Result<(), Malformed> {
    match scanner.peek() {
        Some(b'{') => write_members(scanner, &[], out)?,
        Some(b'[') => {
            out.push('[');
            scanner.array(|scanner| {
                write_text(scanner, out)?;
                out.push(',');
                Ok(())
            })?;
            out.push(']');
        }
        Some(b'"') => write_string(&scanner.string()?.text().ok_or(Malformed)?, out),
        Some(b'-' | b'0'..=b'9') => write_number(scanner.value()?, out),
        _ => out.push_str(scanner.value()?),
    }
    Ok(())
}

fn write_string(text: &str, out: &mut String) {
    // Writing to a string cannot fail. The debugging form escapes quotes and itself, so no two texts share one.
    let _ = write!(out, "{text:?}");
}

/// Appends a number as its digits without zeros around them, and the power of ten to be multiplied with.
fn write_number(number: &str, out: &mut String) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let shorter = digits.trim_end_matches('0');
    if shorter.is_empty() {
        // Zero has a sign, and no power of ten changes it.
        out.extend([sign, "0"]);
        return;
    }
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent).parse::<i64>().ok();
    let moved = i64::try_from(digits.len() - shorter.len()).ok().zip(i64::try_from(fraction.len()).ok());
    let exponent =
        exponent.zip(moved).and_then(|(power, (cut, places))| power.checked_add(cut)?.checked_sub(places));
    match exponent {
        // Writing to a string cannot fail.
        Some(power) => drop(write!(out, "{sign}{shorter}e{power}")),
        None => out.push_str(number),
    }
}

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

    fn canonical(text: &str) -> String {
        object(text, &["left"]).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn text_is_the_same_for_the_same_values_only() {
        for (one, other) in [
            (r#"{"b":[1.0,{"y":1,"x":null}],"a":"\u0041"}"#, r#" {"a":"A", "b":[1,{"x":null,"y":10e-1}]}"#),
            (r#"{"a":1.50}"#, r#"{"a":0.15E+1}"#),
            (r#"{"a":100}"#, r#"{"a":1e2}"#),
            (r#"{"a":0}"#, r#"{"a":0.0e999999999999999999999}"#),
            (r#"{"left":1e3,"a":[]}"#, r#"{"a":[],"left":{}}"#),
        ] {
            assert_eq!(canonical(one), canonical(other));
        }
        let different = [
            "{}",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":-1}"#,
            r#"{"a":0}"#,
            r#"{"a":-0}"#,
            r#"{"a":1.5}"#,
            r#"{"a":12}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[12]}"#,
            r#"{"a":[]}"#,
            r#"{"a":{}}"#,
            r#"{"a":{"left":1}}"#,
            r#"{"a":null}"#,
            r#"{"a":true}"#,
            r#"{"a":18446744073709551617}"#,
            r#"{"a":18446744073709551618}"#,
            r#"{"a":0.1}"#,
            r#"{"a":0.10000000000000000001}"#,
            r#"{"a":1e-400}"#,
            r#"{"a":1e-401}"#,
            r#"{"a":1e-99999999999999999999}"#,
            r#"{"a,b":1}"#,
            r#"{"a\"":1}"#,
            r#"{"A":1}"#,
        ];
        for (index, one) in different.iter().enumerate() {
            for other in different.iter().skip(index + 1) {
                assert_ne!(canonical(one), canonical(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_is_not_an_object_or_has_a_flaw_has_no_text() {
        for text in [
            "",
            "[]",
            "1",
            "{",
            "{} {}",
            r#"{"a":1e999}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"left":1,"left":2}"#,
        ] {
            assert_eq!(object(text, &["left"]), None, "{text}");
        }
        assert_eq!(object(&format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127)), &[]), None);
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
