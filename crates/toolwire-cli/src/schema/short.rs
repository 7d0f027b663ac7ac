//! A schema in a few characters, as a header file would have it: `string[]`, `"a" | "b"`, `{sum: integer}`.

use std::{cell::Cell, collections::HashSet};

use serde_json::{Map, Value};

use super::{beginning, resolve};
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
/// The number of parts of one type that are looked at: more do not fit into the characters that it may take.
const MAX_PARTS: usize = 100;
/// The number of required members of a nested object that are looked at.
const MAX_REQUIRED: usize = 64;

/// The number of bytes that the name of a member of a nested object may have to be looked up, as many places may share.
const MAX_NAME_BYTES: usize = 512;

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
        let default = self.schema.get("default").filter(|default| !default.is_null())?;
        Some(cut(&json(default), MAX_DEFAULT_CHARS))
    }

    /// `name: type`, or `name?: type = default`.
    pub(crate) fn declaration(&self, root: &Value) -> String {
        let mark = if self.required { "" } else { "?" };
        let default = self.default().map(|default| format!(" = {default}")).unwrap_or_default();
        let kind = without_null(&short(root, self.schema), self.required);
        cut(&format!("{}{mark}: {kind}{default}", self.name), MAX_CHARS)
    }
}

/// What may be left out is often also allowed to be null, which says nothing new.
fn without_null(kind: &str, required: bool) -> String {
    let plain = if required { None } else { kind.strip_suffix(" | null") };
    plain.unwrap_or(kind).to_owned()
}

/// The members of an object: those that must be there first, in the schema's order.
pub(crate) fn members<'a>(root: &'a Value, schema: &'a Value) -> Vec<Member<'a>> {
    let object = resolve(root, schema).as_object();
    object.into_iter().flat_map(|object| in_order(object, usize::MAX, usize::MAX)).collect()
}

/// The members of an object in that order. Of the required ones, so many are looked up, with names of so many bytes.
fn in_order(object: &Map<String, Value>, count: usize, bytes: usize) -> impl Iterator<Item = Member<'_>> {
    fn member<'a>((name, schema): (&'a String, &'a Value), required: bool) -> Member<'a> {
        Member { name, schema, required }
    }

    let properties = object.get("properties").and_then(Value::as_object);
    let required = object.get("required").and_then(Value::as_array).into_iter().flatten();
    let required = required.take(count).filter_map(Value::as_str);
    let required: Vec<&str> = required.filter(|name| name.len() <= bytes).collect();
    let names: HashSet<&str> = required.iter().copied().collect();
    let first = required.into_iter().filter_map(move |name| properties?.get_key_value(name));
    let is_first = move |name: &str| name.len() <= bytes && names.contains(name);
    let rest = properties.into_iter().flatten().filter(move |(name, _)| !is_first(name));
    first.map(|entry| member(entry, true)).chain(rest.map(|entry| member(entry, false)))
}

/// What a tool returns, as it stands behind the arrow: as deep as fits into the columns.
pub(crate) fn returns(schema: &Value, columns: usize) -> String {
    let shallower = (0..=MAX_NESTING).rev().map(|nesting| Writer::new(schema, nesting).kind(schema, 0, 0));
    let mut texts = shallower.map(|text| cut(&text, MAX_CHARS)).peekable();
    let deepest = texts.peek().cloned().unwrap_or_default();
    texts.find(|text| width(text) <= columns).unwrap_or(deepest)
}

/// The schema in a few characters.
pub(crate) fn short(root: &Value, schema: &Value) -> String {
    cut(&Writer::new(root, MAX_NESTING).kind(schema, 0, 0), MAX_CHARS)
}

pub(super) fn cut(text: &str, chars: usize) -> String {
    let kept = beginning(text, chars);
    if kept.len() == text.len() { text.to_owned() } else { format!("{kept}…") }
}

/// A value as JSON, of which not much more is written than may be shown.
fn json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    cut(&text, MAX_CHARS)
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => text.push_str(&Value::from(beginning(string, MAX_CHARS)).to_string()),
        Value::Array(items) => list('[', items.iter(), ']', text, write),
        Value::Object(members) => list('{', members.iter(), '}', text, |(name, member), text| {
            text.push_str(&Value::from(beginning(name, MAX_CHARS)).to_string());
            text.push(':');
            write(member, text);
        }),
        other => text.push_str(&other.to_string()),
    }
}

/// Writes items until the text has as many characters as may be shown, whatever they are.
fn list<T>(
    open: char,
    items: impl Iterator<Item = T>,
    close: char,
    text: &mut String,
    each: impl Fn(T, &mut String),
) {
    text.push(open);
    for (index, item) in items.enumerate() {
        if text.len() > 4 * MAX_CHARS {
            break;
        }
        if index > 0 {
            text.push(',');
        }
        each(item, text);
    }
    text.push(close);
}

/// A value as people read it: a text without quotes, and the rest as JSON; no more of it than may be shown.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| json(value), |text| cut(text, MAX_CHARS))
}

struct Writer<'a> {
    root: &'a Value,
    /// How deep objects are shown.
    nesting: usize,
    /// The number of parts that may still be looked at.
    left: Cell<usize>,
}

impl<'a> Writer<'a> {
    const fn new(root: &'a Value, nesting: usize) -> Self {
        Self { root, nesting, left: Cell::new(MAX_PARTS) }
    }

    fn kind(&self, schema: &Value, nesting: usize, depth: usize) -> String {
        let Some(left) = self.left.get().checked_sub(1) else { return "…".to_owned() };
        self.left.set(left);
        let schema = resolve(self.root, schema);
        let Some(object) = schema.as_object() else {
            return if schema == &Value::Bool(false) { "never" } else { "any" }.to_owned();
        };
        if depth > MAX_DEPTH {
            return "…".to_owned();
        }
        if let Some(value) = object.get("const") {
            return json(value);
        }
        if let Some(values) = object.get("enum").and_then(Value::as_array) {
            if values.is_empty() {
                return "never".to_owned();
            }
            let shown = values.iter().take(MAX_CHOICES).map(json);
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
                let names = names.iter().take(MAX_CHOICES).filter_map(Value::as_str);
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
            other => cut(other, MAX_CHARS),
        }
    }

    fn object(&self, schema: &Map<String, Value>, nesting: usize, depth: usize) -> String {
        let mut members: Vec<_> =
            in_order(schema, MAX_REQUIRED, MAX_NAME_BYTES).take(MAX_MEMBERS + 1).collect();
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
        let more = (members.len() > MAX_MEMBERS).then(|| "…".to_owned());
        members.truncate(MAX_MEMBERS);
        let shown = members.iter().map(|member| {
            let mark = if member.required { "" } else { "?" };
            let kind = without_null(&self.kind(member.schema, nesting + 1, depth + 1), member.required);
            format!("{}{mark}: {kind}", cut(member.name, MAX_CHARS))
        });
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
        let self_seven_times = vec![json!({ "$ref": "#" }); 7];
        let tree = json!({ "anyOf": self_seven_times });
        assert!(of(&tree).chars().count() <= MAX_CHARS + 1);
    }

    /// So many members that looking through a list of them for each takes many times as long as looking each up.
    const MANY: usize = 200_000;

    fn many() -> Map<String, Value> {
        (0..MANY).map(|n| (format!("member {n:06}"), json!({}))).collect()
    }

    #[test]
    fn values_are_json_as_far_as_they_are_shown() {
        for value in [json!({ "a": [1, "x\n", {}], "b": null }), json!([]), json!(1.5)] {
            assert_eq!(json(&value), value.to_string());
        }
        assert_eq!(json(&json!("x".repeat(1000))).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn required_members_are_looked_up_and_not_searched_for() {
        // What all names begin with is read whenever two of them are compared.
        let long = "x".repeat(200);
        let properties: Map<String, Value> =
            many().into_iter().map(|(name, schema)| (format!("{long}{name}"), schema)).collect();
        let required: Vec<_> = properties.keys().rev().skip(1).collect();
        let schema = json!({ "required": required, "properties": properties });
        let members = members(&schema, &schema);
        let [first, last] = [&members[0], &members[MANY - 1]].map(|it| (&it.name[200..], it.required));
        assert_eq!((members.len(), first, last), (MANY, ("member 199998", true), ("member 199999", false)));
    }

    #[test]
    fn what_many_members_share_is_not_written_in_full_for_each() {
        let long = "x".repeat(1_000_000);
        let required: Vec<_> = (0..MANY).map(|n| format!("not there {n}")).collect();
        let root = json!({ "$defs": {
            "const": { "const": [{ long.as_str(): long }, long] },
            "choice": { "enum": [[long], [long]] },
            "types": { "type": vec![&long; 9] },
            "object": { "type": "object", "required": required, "properties": many() },
            "names": { "type": "object", "required": ["a"], "properties": { long.as_str(): {} } },
            "required": { "type": "object", "required": vec![&long; 64], "properties": { "a": {}, "b": {} } },
        }});
        for name in ["const", "choice", "types", "object", "names", "required"] {
            let place = json!({ "$ref": format!("#/$defs/{name}") });
            for _ in 0..2000 {
                assert!(short(&root, &place).chars().count() <= MAX_CHARS + 1);
            }
        }
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
