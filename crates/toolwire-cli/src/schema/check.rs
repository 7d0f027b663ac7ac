//! Checking values against the schemas of servers, which is not always possible.

use serde_json::{Value, json};
use toolwire::protocol::schema::{Schema, Violations};

use super::short::cut;
use crate::terminal::{Terminal, printable_line};

/// The number of characters that are shown of why something is not checked.
const MAX_WHY: usize = 400;

/// Checks a value. That it cannot be checked, or only in part, is a warning on standard error; `what` is what the value
/// is called there.
pub(crate) fn check(what: &str, schema: &Value, value: &Value, terminal: Terminal) -> Result<(), Violations> {
    let (compiled, unchecked) = compiled(schema);
    if let Some((extent, why)) = unchecked {
        warn(what, extent, &why, terminal);
    }
    compiled.map_or(Ok(()), |schema| schema.validate(value))
}

/// The schema, if it is one, and how far and why values are not checked by it.
fn compiled(schema: &Value) -> (Option<Schema>, Option<(&'static str, String)>) {
    match Schema::compile(schema) {
        Ok(schema) => {
            let skipped = schema.skipped().join(", ");
            let unchecked = (!skipped.is_empty()).then_some(("checked only in part", skipped));
            (Some(schema), unchecked)
        }
        Err(error) => (None, Some(("not checked", error.to_string()))),
    }
}

fn warn(what: &str, extent: &str, why: &str, terminal: Terminal) {
    let why = cut(why, MAX_WHY);
    if terminal.json {
        terminal.note_json(&json!({ "unchecked": { "what": what, "extent": extent, "why": why } }));
    } else {
        terminal.warn(printable_line(&format!("{what}: {extent}: {why}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(schema: &Value) -> Option<&'static str> {
        compiled(schema).1.map(|(extent, _)| extent)
    }

    #[test]
    fn what_is_not_checked_is_known() {
        assert_eq!(extent(&json!({ "type": "object" })), None);
        assert_eq!(extent(&json!({ "type": "int" })), Some("not checked"));
        assert_eq!(extent(&json!({ "$ref": "https://example.com/schema" })), Some("checked only in part"));
        let many: Vec<Value> = (0..20_000).map(|_| json!({})).collect();
        assert_eq!(extent(&json!({ "anyOf": many })), Some("not checked"));
    }

    #[test]
    fn what_can_be_checked_is() {
        let terminal = Terminal { json: false, verbose: 0 };
        let schema = json!({ "type": "integer", "$ref": "https://example.com/schema" });
        assert!(check("the value", &schema, &json!(1), terminal).is_ok());
        assert!(check("the value", &schema, &json!("1"), terminal).is_err());
    }
}
