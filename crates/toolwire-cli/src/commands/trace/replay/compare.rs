//! What counts as the same answer.

use serde_json::{Map, Value};

/// Members that are different each time and say nothing about the answer.
const VOLATILE: [&str; 6] = ["_meta", "requestState", "ttlMs", "cacheScope", "nextCursor", "elicitationId"];

/// What is not compared.
pub(super) struct Volatile {
    members: Vec<String>,
}

impl Volatile {
    pub(super) fn new(more: &[String]) -> Self {
        let members = VOLATILE.iter().map(|&name| name.to_owned()).chain(more.iter().cloned()).collect();
        Self { members }
    }

    /// An answer without what is different each time.
    pub(super) fn normal(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let kept = members.iter().filter(|(name, value)| !self.ignores(name, value));
                Value::Object(
                    kept.map(|(name, value)| (name.clone(), self.normal(value))).collect::<Map<_, _>>(),
                )
            }
            Value::Array(items) => items.iter().map(|item| self.normal(item)).collect(),
            Value::String(text) if is_time(text) => "[time]".into(),
            Value::String(text) if is_uuid(text) => "[uuid]".into(),
            other => other.clone(),
        }
    }

    fn ignores(&self, name: &str, value: &Value) -> bool {
        // A result without a type is a complete one, as all are in the legacy era.
        self.members.iter().any(|member| member == name) || (name == "resultType" && *value == "complete")
    }
}

/// A date with a time: `2026-07-28T12:00:00Z`.
fn is_time(text: &str) -> bool {
    text.len() >= 19 && fits(text.get(..19).unwrap_or_default(), "dddd-dd-ddTdd:dd:dd")
}

fn is_uuid(text: &str) -> bool {
    fits(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

/// Whether a text has this shape: `d` is a digit, `x` a hexadecimal one.
fn fits(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            other => byte == other,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_changes_each_time_is_not_compared() {
        let volatile = Volatile::new(&["mood".to_owned()]);
        let was =
            json!({"resultType": "complete", "ttlMs": 1, "a": [{"mood": 1, "b": "2026-01-01T00:00:00Z"}]});
        let now = json!({"_meta": {}, "a": [{"b": "2027-12-31T23:59:59.5+01:00"}], "requestState": "x"});
        assert_eq!(volatile.normal(&was), volatile.normal(&now));
        let id = |last: &str| json!(format!("123e4567-e89b-12d3-a456-42661417400{last}"));
        assert_eq!(volatile.normal(&id("0")), volatile.normal(&id("f")));
        assert_ne!(volatile.normal(&id("0")), volatile.normal(&id("g")));
        assert_ne!(volatile.normal(&json!({"a": 1})), volatile.normal(&json!({"a": 2})));
        assert_ne!(volatile.normal(&json!({"resultType": "task"})), volatile.normal(&json!({})));
    }
}
