//! A schema in a few characters, as a header file would have it: `string[]`, `"a" | "b"`, `{sum: integer}`.

use serde_json::{Map, Value};

use super::resolve;
use crate::terminal::width;

/// How many characters one type may take before the rest is left out.
const MAX_CHARS: usize = 160;
/// How many characters of a default are shown.
const MAX_DEFAULT_CHARS: usize = 40;
/// How deep objects are shown.
const MAX_NESTING: usize = 2;
/// How many choices of an enumeration are shown.
const MAX_CHOICES: usize = 8;
/// How many members of a nested object are shown.
const MAX_MEMBERS: usize = 8;
/// How many combinations inside each other are followed.
const MAX_DEPTH: usize = 12;

/// One member of an object: its name, its type, whether it may be left out, and what it is then.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: &'a Value,
    pub(crate) required: bool,
}

impl Member<'_> {
    /// The default, as it would be typed.
    pub(crate) fn default(&self) -> Option<String> {
        let default = self.schema.get("default").filter(|default| !default.is_null())?.to_string();
        let is_short = default.chars().count() <= MAX_DEFAULT_CHARS;
        Some(if is_short {
            default
        } else {
            default.chars().take(MAX_DEFAULT_CHARS).chain(['…']).collect()
        })
    }

    /// `name: type`, or `name?: type = default`.
    pub(crate) fn declaration(&self, root: &Value) -> String {
        let mark = if self.required { "" } else { "?" };
        let default = self.default().map(|default| format!(" = {default}")).unwrap_or_default();
        let kind = without_null(&short(root, self.schema), self.required);
        cut(&format!("{}{mark}: {kind}{default}", self.name))
    }
}

/// What may be left out is often also allowed to be null, which says nothing new.
fn without_null(kind: &str, required: bool) -> String {
    let plain = if required { None } else { kind.strip_suffix(" | null") };
    plain.unwrap_or(kind).to_owned()
}

/// The members of an object: those that must be there first, in the schema's order.
pub(crate) fn members<'a>(root: &'a Value, schema: &'a Value) -> Vec<Member<'a>> {
    let schema = resolve(root, schema);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required = super::required(schema);
    let first = required.iter().filter_map(|name| properties.get_key_value(*name));
    let rest = properties.iter().filter(|(name, _)| !required.contains(&name.as_str()));
    let member = |(name, schema): (&'a String, &'a Value), required| Member { name, schema, required };
    first.map(|entry| member(entry, true)).chain(rest.map(|entry| member(entry, false))).collect()
}

/// What a tool returns, as it stands behind the arrow: as deep as fits into the columns.
pub(crate) fn returns(schema: &Value, columns: usize) -> String {
    let shallower =
        (0..=MAX_NESTING).rev().map(|nesting| Writer { root: schema, nesting }.kind(schema, 0, 0));
    let mut texts = shallower.map(|text| cut(&text)).peekable();
    let deepest = texts.peek().cloned().unwrap_or_default();
    texts.find(|text| width(text) <= columns).unwrap_or(deepest)
}

/// The schema in a few characters.
pub(crate) fn short(root: &Value, schema: &Value) -> String {
    cut(&Writer { root, nesting: MAX_NESTING }.kind(schema, 0, 0))
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS).chain(['…']).collect()
}

struct Writer<'a> {
    root: &'a Value,
    /// How deep objects are shown.
    nesting: usize,
}

impl Writer<'_> {
    fn kind(&self, schema: &Value, nesting: usize, depth: usize) -> String {
        let schema = resolve(self.root, schema);
        let Some(object) = schema.as_object() else {
            return if schema == &Value::Bool(false) { "never" } else { "any" }.to_owned();
        };
        if depth > MAX_DEPTH {
            return "…".to_owned();
        }
        if let Some(value) = object.get("const") {
            return value.to_string();
        }
        if let Some(values) = object.get("enum").and_then(Value::as_array) {
            if values.is_empty() {
                return "never".to_owned();
            }
            let shown = values.iter().take(MAX_CHOICES).map(ToString::to_string);
            let more = (values.len() > MAX_CHOICES).then(|| "…".to_owned());
            return union(shown.chain(more));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = object.get(keyword).and_then(Value::as_array) {
                let shown =
                    branches.iter().take(MAX_CHOICES).map(|branch| self.kind(branch, nesting, depth + 1));
                let more = (branches.len() > MAX_CHOICES).then(|| "…".to_owned());
                return union(shown.chain(more));
            }
        }
        if let Some([only]) = object.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            return self.kind(only, nesting, depth + 1);
        }
        match object.get("type") {
            Some(Value::String(name)) => self.named(name, object, nesting, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                union(names.map(|name| self.named(name, object, nesting, depth)))
            }
            _ if object.contains_key("properties") => self.named("object", object, nesting, depth),
            _ => "any".to_owned(),
        }
    }

    fn named(&self, name: &str, schema: &Map<String, Value>, nesting: usize, depth: usize) -> String {
        match name {
            "array" => match schema.get("items") {
                Some(items) => {
                    let items = self.kind(items, nesting, depth + 1);
                    if items.contains(" | ") && !items.starts_with('{') {
                        format!("({items})[]")
                    } else {
                        format!("{items}[]")
                    }
                }
                None => "any[]".to_owned(),
            },
            "object" => self.object(schema, nesting, depth),
            other => other.to_owned(),
        }
    }

    fn object(&self, schema: &Map<String, Value>, nesting: usize, depth: usize) -> String {
        let value = Value::Object(schema.clone());
        let members = members(self.root, &value);
        if members.is_empty() {
            return match schema.get("additionalProperties") {
                Some(others) if others.is_object() => {
                    format!("{{[key]: {}}}", self.kind(others, nesting + 1, depth + 1))
                }
                _ => "object".to_owned(),
            };
        }
        if nesting >= self.nesting {
            return "{…}".to_owned();
        }
        let shown = members.iter().take(MAX_MEMBERS).map(|member| {
            let mark = if member.required { "" } else { "?" };
            let kind = without_null(&self.kind(member.schema, nesting + 1, depth + 1), member.required);
            format!("{}{mark}: {kind}", member.name)
        });
        let more = (members.len() > MAX_MEMBERS).then(|| "…".to_owned());
        format!("{{{}}}", shown.chain(more).collect::<Vec<_>>().join(", "))
    }
}

/// Alternatives, each once; `null` comes last.
fn union(kinds: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for kind in kinds {
        if !seen.contains(&kind) {
            seen.push(kind);
        }
    }
    seen.sort_by_key(|kind| kind == "null");
    seen.join(" | ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: &Value) -> String {
        short(schema, schema)
    }

    #[test]
    fn types_read_like_a_header_file() {
        for (schema, expected) in [
            (json!({ "type": "integer" }), "integer"),
            (json!({ "enum": [] }), "never"),
            (json!({ "enum": ["a", "b"] }), r#""a" | "b""#),
            (json!({ "type": ["null", "string"] }), "string | null"),
            (json!({ "type": "array", "items": { "type": "string" } }), "string[]"),
            (json!({ "type": "array", "items": { "enum": [1, 2] } }), "(1 | 2)[]"),
            (json!({ "oneOf": [{ "const": "s", "title": "S" }, { "const": "l" }] }), r#""s" | "l""#),
            (json!({ "type": "object", "additionalProperties": { "type": "number" } }), "{[key]: number}"),
            (json!({ "type": "object" }), "object"),
            (json!({}), "any"),
            (json!(true), "any"),
            (
                json!({ "allOf": [{ "$ref": "#/$defs/x" }], "$defs": { "x": { "type": "boolean" } } }),
                "boolean",
            ),
        ] {
            assert_eq!(of(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn objects_are_shown_to_a_depth() {
        let user = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" },
            "age": { "type": ["integer", "null"] },
            "home": { "type": "object", "properties": { "city": { "type": "object", "properties": { "x": {} } } } },
        }});
        assert_eq!(of(&user), "{name: string, age?: integer, home?: {city?: {…}}}");
    }

    #[test]
    fn nothing_goes_on_for_ever() {
        let wide: Vec<Value> = (0..1000).map(|n| json!(format!("choice {n}"))).collect();
        assert!(of(&json!({ "enum": wide })).ends_with(" | …"));
        let circle = json!({ "$defs": { "x": { "anyOf": [{ "$ref": "#/$defs/x" }, { "type": "string" }] } }, "$ref": "#/$defs/x" });
        assert!(of(&circle).chars().count() <= MAX_CHARS + 1);
    }

    #[test]
    fn declarations_say_what_may_be_left_out() {
        let root = json!({ "type": "object", "required": ["q"], "properties": {
            "limit": { "type": "integer", "default": 10 }, "q": { "type": "string" }, "x": { "type": ["string", "null"], "default": null },
        }});
        let shown: Vec<_> = members(&root, &root).iter().map(|member| member.declaration(&root)).collect();
        assert_eq!(shown, ["q: string", "limit?: integer = 10", "x?: string"]);
    }
}
