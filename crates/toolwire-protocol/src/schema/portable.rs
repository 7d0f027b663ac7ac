//! Schemas in the form that most hosts understand: without references where that is possible.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    MAX_SCHEMA_DEPTH, SchemaError,
    keyword::{Holds, holds, is_schema, unescape},
    uri, value, words,
};

/// How many JSON values a schema may have after its references were replaced. 64 bytes of text count as another one.
pub const MAX_INLINED_VALUES: usize = 50_000;

/// How many references the search for recursive definitions follows.
const MAX_REFERENCES_FOLLOWED: usize = 1_000_000;

/// Keywords that say something about a schema without demanding anything, so that they may override those
/// of the definition they stand next to.
const ANNOTATIONS: [&str; 10] = [
    "$comment",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// Keywords that give a subschema a name, which must stay unique.
const IDENTIFIERS: [&str; 4] = ["$anchor", "$dynamicAnchor", "$id", "$recursiveAnchor"];

/// Whether a schema says `"type": "object"` at its root, as the schema of a tool must.
pub fn is_object_root(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// Replaces each local reference to a definition by the definition, and drops the definitions nobody needs
/// any more.
///
/// Recursive definitions, and those with an `$id` or an anchor, stay definitions.
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::schema::inline_local_refs;
///
/// let schema = json!({
///     "properties": { "unit": { "$ref": "#/$defs/Unit", "description": "of the answer" } },
///     "$defs": { "Unit": { "enum": ["C", "F"] } },
/// });
/// let portable = json!({ "properties": { "unit": { "enum": ["C", "F"], "description": "of the answer" } } });
/// assert_eq!(inline_local_refs(schema)?, portable);
/// # Ok::<(), toolwire_protocol::schema::SchemaError>(())
/// ```
pub fn inline_local_refs(schema: Value) -> Result<Value, SchemaError> {
    if value::is_deeper_than(&schema, MAX_SCHEMA_DEPTH) {
        return Err(SchemaError::new("", format!("nested deeper than {MAX_SCHEMA_DEPTH} levels")));
    }
    let Value::Object(mut root) = schema else { return Ok(schema) };
    let mut definitions = BTreeMap::new();
    for section in ["$defs", "definitions"] {
        if let Some(Value::Object(members)) = root.get(section) {
            for (name, definition) in members.clone() {
                definitions.insert(Name { section, name }, definition);
            }
            root.remove(section);
        }
    }
    let mut kept = recursive(&definitions)?;
    kept.extend(definitions.iter().filter(|(_, it)| names_something(it)).map(|(name, _)| name.clone()));
    let mut inliner = Inliner { definitions: &definitions, kept, values: 0 };
    let mut root = inliner.schema(&Value::Object(root), 0)?;
    inliner.restore(&mut root)?;
    Ok(root)
}

/// A definition at the root of the document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    section: &'static str,
    name: String,
}

impl Name {
    /// The definition that `reference` points at or into.
    fn of(reference: &str) -> Option<(Self, bool)> {
        let pointer = uri::decode(reference.strip_prefix('#')?);
        let (section, rest) = ["$defs", "definitions"].into_iter().find_map(|section| {
            Some((section, pointer.strip_prefix('/')?.strip_prefix(section)?.strip_prefix('/')?))
        })?;
        let (name, exactly) = match rest.split_once('/') {
            Some((name, _)) => (name, false),
            None => (rest, true),
        };
        Some((Self { section, name: unescape(name) }, exactly))
    }
}

type Definitions = BTreeMap<Name, Value>;

/// The definitions whose references lead back to them.
fn recursive(definitions: &Definitions) -> Result<BTreeSet<Name>, SchemaError> {
    // By number, because names may be long and each of them is looked up very often.
    let mut numbers = BTreeMap::new();
    numbers.extend(definitions.keys().enumerate().map(|(number, name)| (name, number)));
    let targets = |it| needed(it).iter().filter_map(|name| numbers.get(name).copied()).collect();
    let edges: Vec<Vec<usize>> = definitions.values().map(targets).collect();
    let mut recursive = BTreeSet::new();
    let mut steps = 0;
    for (start, name) in definitions.keys().enumerate() {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(number) = open.pop() {
            let next = edges.get(number).map_or(&[][..], Vec::as_slice);
            steps += 1 + next.len();
            if steps > MAX_REFERENCES_FOLLOWED {
                return Err(SchemaError::new("", "too many definitions that refer to each other"));
            }
            open.extend(next.iter().copied().filter(|number| seen.insert(*number)));
        }
        if seen.contains(&start) {
            recursive.insert(name.clone());
        }
    }
    Ok(recursive)
}

/// The definitions that a schema refers to.
fn needed(schema: &Value) -> Vec<Name> {
    let mut names = Vec::new();
    each_subschema(schema, &mut |keywords| {
        let reference = keywords.get("$ref").and_then(Value::as_str);
        names.extend(reference.and_then(Name::of).map(|(name, _)| name));
    });
    names
}

fn names_something(schema: &Value) -> bool {
    let mut found = false;
    each_subschema(schema, &mut |keywords| {
        found |= IDENTIFIERS.iter().any(|key| keywords.contains_key(*key));
    });
    found
}

/// Visits the schema and every subschema; recursive, so only for schemas of checked depth.
fn each_subschema(schema: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    let Value::Object(keywords) = schema else { return };
    visit(keywords);
    for (keyword, value) in keywords {
        match (holds(keyword), value) {
            (Holds::Schema | Holds::List, Value::Array(list)) => {
                for schema in list {
                    each_subschema(schema, visit);
                }
            }
            (Holds::Map, Value::Object(members)) => {
                for schema in members.values() {
                    each_subschema(schema, visit);
                }
            }
            (Holds::Schema, schema) => each_subschema(schema, visit),
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Inliner<'d> {
    definitions: &'d Definitions,
    /// What stays a definition.
    kept: BTreeSet<Name>,
    values: usize,
}

impl<'d> Inliner<'d> {
    /// Copies a schema with its references replaced.
    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, SchemaError> {
        let Value::Object(keywords) = schema else { return self.copy(schema) };
        if depth > MAX_SCHEMA_DEPTH {
            let reason = format!("nested deeper than {MAX_SCHEMA_DEPTH} levels without references");
            return Err(SchemaError::new("", reason));
        }
        if depth > 0 && keywords.contains_key("$id") {
            // What is below has another base, so its references mean something else.
            return self.copy(schema);
        }
        self.count(1)?;
        let mut rewritten = Map::new();
        let mut target = None;
        for (keyword, value) in keywords {
            // A reference is read as often as what it stands in is copied, and may be long.
            self.count_name(value.as_str().filter(|_| keyword == "$ref").unwrap_or_default())?;
            if keyword == "$ref"
                && let Some(definition) = self.inlinable(value)
            {
                target = Some(self.schema(definition, depth + 1)?);
            } else {
                self.count_name(keyword)?;
                rewritten.insert(keyword.clone(), self.keyword(keyword, value, depth)?);
            }
        }
        Ok(match target {
            Some(target) => combine(target, rewritten),
            None => Value::Object(rewritten),
        })
    }

    fn keyword(&mut self, keyword: &str, value: &Value, depth: usize) -> Result<Value, SchemaError> {
        let below = depth + 1;
        match (holds(keyword), value) {
            (Holds::Schema | Holds::List, Value::Array(list)) => {
                list.iter().map(|schema| self.schema(schema, below)).collect()
            }
            (Holds::Map, Value::Object(members)) => {
                let members = members.iter().map(|(name, it)| {
                    self.count_name(name)?;
                    Ok((name.clone(), self.schema(it, below)?))
                });
                Ok(Value::Object(members.collect::<Result<_, _>>()?))
            }
            (Holds::Schema, schema) if is_schema(schema) => self.schema(schema, below),
            _ => self.copy(value),
        }
    }

    fn inlinable(&self, reference: &Value) -> Option<&'d Value> {
        let (name, exactly) = Name::of(reference.as_str()?)?;
        if !exactly || self.kept.contains(&name) { None } else { self.definitions.get(&name) }
    }

    fn copy(&mut self, value: &Value) -> Result<Value, SchemaError> {
        self.count(usize::try_from(value::weight(value)).unwrap_or(usize::MAX))?;
        Ok(value.clone())
    }

    /// A name is copied as often as what it names, and may be long.
    fn count_name(&mut self, name: &str) -> Result<(), SchemaError> {
        self.count(usize::try_from(value::text_weight(name)).unwrap_or(usize::MAX))
    }

    fn count(&mut self, values: usize) -> Result<(), SchemaError> {
        self.values = self.values.saturating_add(values);
        if self.values <= MAX_INLINED_VALUES {
            return Ok(());
        }
        let reason = format!("more than {MAX_INLINED_VALUES} values when its references are replaced");
        Err(SchemaError::new("", reason))
    }

    /// Puts the definitions back that are still referred to.
    fn restore(&mut self, root: &mut Value) -> Result<(), SchemaError> {
        let mut open = needed(root);
        let mut restored = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(definition) = self.definitions.get(&name) else {
                let reason = format!("there is no definition {}", words::quoted(&name.name));
                return Err(SchemaError::new(format!("/{}", name.section), reason));
            };
            if !restored.insert(name.clone()) {
                continue;
            }
            let definition = self.schema(definition, 1)?;
            open.extend(needed(&definition));
            let section = root
                .as_object_mut()
                .map(|root| root.entry(name.section).or_insert_with(|| Value::Object(Map::new())));
            if let Some(Value::Object(section)) = section {
                section.insert(name.name, definition);
            }
        }
        Ok(())
    }
}

/// A definition in the place of a reference that had `siblings` next to it.
fn combine(target: Value, mut siblings: Map<String, Value>) -> Value {
    let only_annotations =
        siblings.keys().all(|key| ANNOTATIONS.contains(&key.as_str()) || key.starts_with("x-"));
    match target {
        Value::Object(mut target) if only_annotations => {
            target.extend(siblings);
            Value::Object(target)
        }
        Value::Bool(true) => Value::Object(siblings),
        target if siblings.is_empty() => target,
        target => {
            let all = siblings.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.push(target);
            }
            Value::Object(siblings)
        }
    }
}
