//! Checks about the schemas of tools: are they valid, and does every host take them?

use serde_json::Value;
use toolwire::{
    protocol::schema::{MAX_SCHEMA_DEPTH, Schema, is_object_root},
    wire::Tool,
};

use super::{
    super::{
        case::Case,
        finding::{Finding, shortened},
        problem::Problem,
    },
    catalog::tools,
    hosts::USUAL_FORMATS,
};

/// How many characters of a place in a schema are shown.
const SHOWN_PLACE: usize = 120;

/// The number of remarks about one tool that are kept; more are not shown.
const MAX_REMARKS: usize = 32;

/// Keywords at the root that OpenAI and Anthropic refuse.
const NOT_AT_ROOT: [&str; 6] = ["oneOf", "anyOf", "allOf", "not", "enum", "$ref"];

/// One line for each tool that has something to be said about, as `name: what, what`.
fn each(case: &Case, look: impl Fn(&Tool) -> Vec<String>) -> Vec<String> {
    let said = case.tools().iter().map(|tool| (tool, look(tool))).filter(|(_, said)| !said.is_empty());
    said.map(|(tool, said)| format!("{}: {}", shortened(&tool.name, 64), said.join(", "))).collect()
}

/// Schemas are valid.
pub(super) fn valid(case: &Case) -> Vec<Finding> {
    let lines = each(case, |tool| {
        let input = compiled("inputSchema", &Value::Object(tool.input_schema.clone()));
        let output = tool
            .output_schema
            .as_ref()
            .and_then(|schema| compiled("outputSchema", &Value::Object(schema.clone())));
        input.into_iter().chain(output).collect()
    });
    let bad = case.talk().map_or(&[][..], |talk| &talk.bad_tools);
    let bad = bad.iter().map(|tool| format!("{}: {}", shortened(&tool.name, 64), tool.why));
    let lines: Vec<_> = bad.chain(lines).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let summary = format!("the schema of {} is not valid", tools(lines.len()));
    vec![Finding::new(Problem::SchemaInvalid, summary).evidence(lines).fix("mend it: hosts refuse the tool")]
}

fn compiled(what: &str, schema: &Value) -> Option<String> {
    Schema::compile(schema).err().map(|error| format!("{what}: {error}"))
}

/// Arguments are objects.
pub(super) fn objects(case: &Case) -> Vec<Finding> {
    let bad = case.tools().iter().filter(|tool| !is_object_root(&tool.input_schema));
    let names: Vec<_> = bad.map(|tool| shortened(&tool.name, 64)).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let summary = format!("the schema of {} is not that of an object", tools(names.len()));
    let finding = Finding::new(Problem::SchemaNotObject, summary).evidence([names.join(", ")]);
    vec![finding.fix("put \"type\": \"object\" at the root of inputSchema")]
}

/// Known hosts take the schemas.
pub(super) fn portable(case: &Case) -> Vec<Finding> {
    let lines = each(case, |tool| {
        let at_root = NOT_AT_ROOT.iter().filter(|keyword| tool.input_schema.contains_key(**keyword));
        let mut said: Vec<_> = at_root.map(|keyword| format!("{keyword} at the root")).collect();
        walk(tool, |place, schema| {
            let is_array = schema.get("type").is_some_and(|kind| kind == "array");
            if is_array && !schema.contains_key("items") && !schema.contains_key("prefixItems") {
                said.push(format!("{place} is an array without items"));
            }
            if let Some(target) = schema.get("$ref").and_then(Value::as_str).filter(|to| !to.starts_with('#'))
            {
                said.push(format!("{place} refers to another document, {}", shortened(target, SHOWN_PLACE)));
            }
        });
        said
    });
    if lines.is_empty() {
        return Vec::new();
    }
    let summary = format!("the schema of {} is refused by some hosts", tools(lines.len()));
    let finding = Finding::new(Problem::SchemaNotPortable, summary).evidence(lines);
    vec![finding.fix("give the root \"properties\", describe the items of arrays, and copy definitions in")]
}

/// Known hosts understand all of the schemas.
pub(super) fn unusual(case: &Case) -> Vec<Finding> {
    let lines = each(case, |tool| {
        let mut said = Vec::new();
        let mut note = |text: String| {
            if said.len() < MAX_REMARKS && !said.contains(&text) {
                said.push(text);
            }
        };
        walk(tool, |place, schema| {
            if schema.get("type").is_some_and(Value::is_array) {
                note("several types at once".to_owned());
            }
            if schema.get("$ref").and_then(Value::as_str).is_some_and(|to| to.starts_with('#'))
                && place != ROOT
            {
                note("$ref".to_owned());
            }
            for keyword in ["oneOf", "anyOf", "allOf", "not", "if", "patternProperties", "dependentSchemas"] {
                if schema.contains_key(keyword) && place != ROOT {
                    note(format!("nested {keyword}"));
                }
            }
            let format = schema.get("format").and_then(Value::as_str);
            if let Some(format) = format.filter(|format| !USUAL_FORMATS.contains(format)) {
                note(format!("format {}", shortened(format, 40)));
            }
        });
        said
    });
    if lines.is_empty() {
        return Vec::new();
    }
    let summary = format!("the schema of {} has parts that some hosts ignore or rewrite", tools(lines.len()));
    let finding = Finding::new(Problem::SchemaUnusual, summary).evidence(lines);
    vec![finding.fix("models of Gemini and OpenAI see less than is written: keep schemas plain")]
}

/// The root, as it is shown.
const ROOT: &str = "the root";

/// Calls `visit` with every subschema and its place. Not deeper than schemas are understood at all.
fn walk(tool: &Tool, mut visit: impl FnMut(&str, &serde_json::Map<String, Value>)) {
    let mut left = vec![(ROOT.to_owned(), &tool.input_schema, 0)];
    while let Some((place, schema, depth)) = left.pop() {
        visit(&place, schema);
        if depth == MAX_SCHEMA_DEPTH {
            continue;
        }
        let inner = |key: &str| {
            let place = if place == ROOT { key.to_owned() } else { format!("{place}.{key}") };
            shortened(&place, SHOWN_PLACE)
        };
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                (
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(map),
                ) => {
                    let schemas = map
                        .iter()
                        .filter_map(|(key, value)| Some((inner(key), value.as_object()?, depth + 1)));
                    left.extend(schemas);
                }
                (
                    "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains",
                    Value::Object(schema),
                ) => {
                    left.push((inner(keyword), schema, depth + 1));
                }
                ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                    let schemas = schemas
                        .iter()
                        .filter_map(|value| Some((inner(keyword), value.as_object()?, depth + 1)));
                    left.extend(schemas);
                }
                _ => {}
            }
        }
    }
}
