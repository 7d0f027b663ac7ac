//! Checks about what a server tells the model behind the back of its user.
//!
//! It goes by characters and by phrases, so a clever text is not found, and a harmless one may be. A person has to look.

use std::collections::BTreeSet;

use serde_json::Value;
use toolwire::wire::Tool;

use super::{
    super::{
        case::Case,
        finding::{Finding, shortened},
        problem::Problem,
    },
    catalog::tools,
};

/// How many characters of a name are shown.
const SHOWN_NAME: usize = 64;
/// How many characters around a phrase are shown.
const SHOWN_BESIDE: usize = 40;

/// What a description of a tool has no reason to say.
const ORDERS: [&str; 14] = [
    "ignore previous",
    "ignore all previous",
    "ignore the above",
    "disregard previous",
    "previous instructions",
    "system prompt",
    "<important>",
    "<system>",
    "do not tell the user",
    "don't tell the user",
    "do not mention this",
    "without telling the user",
    "without asking the user",
    "hide this from the user",
];

/// No text has characters that people do not see.
pub(super) fn hidden(case: &Case) -> Vec<Finding> {
    let line = |tool: &Tool| {
        let texts = texts(tool);
        let found: BTreeSet<char> =
            texts.iter().flat_map(|text| text.chars()).filter(|c| is_hidden(*c)).collect();
        let found: Vec<String> = found.into_iter().map(|c| format!("U+{:04X}", u32::from(c))).collect();
        (!found.is_empty()).then(|| format!("{}: {}", shortened(&tool.name, SHOWN_NAME), found.join(", ")))
    };
    let lines: Vec<_> = case.tools().iter().filter_map(line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let summary = format!("{} with characters that people do not see and models do", have(lines.len()));
    let fix = "look at the texts before you let a model read them; if it is your server, remove them";
    vec![Finding::new(Problem::HiddenText, summary).evidence(lines).fix(fix)]
}

/// No text gives orders to the model.
pub(super) fn orders(case: &Case) -> Vec<Finding> {
    let line = |tool: &Tool| {
        let said = texts(tool).iter().find_map(|text| order(text))?;
        Some(format!("{}: {said}", shortened(&tool.name, SHOWN_NAME)))
    };
    let lines: Vec<_> = case.tools().iter().filter_map(line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let summary = format!("{} with texts that give orders to the model", have(lines.len()));
    let fix = "read the whole of it: toolwire tools --long; do not use a server that you do not trust";
    vec![Finding::new(Problem::DescriptionSuspicious, summary).evidence(lines).fix(fix)]
}

fn have(count: usize) -> String {
    format!("there {} {}", if count == 1 { "is" } else { "are" }, tools(count))
}

/// The first order in a text, with what is around it.
fn order(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = ORDERS.iter().filter_map(|order| text.find(order)).min()?;
    let before = text.get(..at)?.chars().count();
    let from = before.saturating_sub(SHOWN_BESIDE);
    let piece: String = text.chars().skip(from).take(before - from + 2 * SHOWN_BESIDE).collect();
    Some(format!("… {piece} …"))
}

/// Everything of a tool that a model reads.
fn texts(tool: &Tool) -> Vec<String> {
    let mut texts = vec![tool.name.clone()];
    texts.extend(tool.title.clone());
    texts.extend(tool.description.clone());
    strings(&Value::Object(tool.input_schema.clone()), &mut texts);
    if let Some(schema) = &tool.output_schema {
        strings(&Value::Object(schema.clone()), &mut texts);
    }
    texts
}

/// All names and texts in a schema, whose depth is limited by the reader of the message.
fn strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        Value::Object(members) => {
            for (name, member) in members {
                texts.push(name.clone());
                strings(member, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a character takes no room on a screen, or turns around what follows. Those that join letters are needed by
/// some scripts, and by pictures.
const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}')
}
