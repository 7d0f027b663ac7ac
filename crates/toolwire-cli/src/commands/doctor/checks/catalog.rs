//! Checks about the tools: their names, descriptions, annotations and number.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwire::wire::Tool;

use super::{
    super::{
        case::Case,
        finding::{Finding, shortened},
        problem::{Problem, Severity},
    },
    hosts::{
        CURSOR_TOOLS, HUGE_CATALOG, LARGE_CATALOG, MAX_DESCRIPTION, MAX_NAME, OPENAI_TOOLS, is_good_name,
        tokens,
    },
};

/// How many characters of a name are shown.
const SHOWN_NAME: usize = 80;

/// Words in names of tools that may destroy something.
const DANGEROUS: [&str; 14] = [
    "delete",
    "remove",
    "drop",
    "destroy",
    "kill",
    "overwrite",
    "purge",
    "wipe",
    "erase",
    "truncate",
    "revoke",
    "uninstall",
    "terminate",
    "reset",
];

/// A finding about these tools, if there are any.
fn about<'a>(
    problem: Problem,
    tools: impl IntoIterator<Item = &'a Tool>,
    summary: impl Fn(usize) -> String,
) -> Option<Finding> {
    let names: Vec<_> = tools.into_iter().map(|tool| shortened(&tool.name, SHOWN_NAME)).collect();
    (!names.is_empty()).then(|| Finding::new(problem, summary(names.len())).evidence([names.join(", ")]))
}

/// "1 tool", "2 tools".
pub(super) fn tools(count: usize) -> String {
    if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") }
}

/// Every host takes the names.
pub(super) fn names(case: &Case) -> Vec<Finding> {
    let bad = case.tools().iter().filter(|tool| !is_good_name(&tool.name));
    let summary = |count| format!("the name of {} does not work in every host", tools(count));
    let finding = about(Problem::ToolName, bad, summary);
    let fix = format!("use letters, digits, _ and - only, at most {MAX_NAME}; put the rest into the title");
    finding.map(|finding| finding.fix(fix)).into_iter().collect()
}

/// No name is there twice.
pub(super) fn duplicates(case: &Case) -> Vec<Finding> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for tool in case.tools() {
        *counts.entry(&tool.name).or_default() += 1;
    }
    let twice: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
    if twice.is_empty() {
        return Vec::new();
    }
    let evidence =
        twice.iter().map(|(name, count)| format!("{} is there {count} times", shortened(name, SHOWN_NAME)));
    let finding = Finding::new(Problem::DuplicateName, "tools have the same name").evidence(evidence);
    vec![finding.fix("rename all but one; only one of them can be called")]
}

/// Tools say what they do, and briefly.
pub(super) fn descriptions(case: &Case) -> Vec<Finding> {
    let text = |tool: &Tool| tool.description.as_deref().map_or(0, |text| text.trim().chars().count());
    let missing = case.tools().iter().filter(|tool| text(tool) == 0);
    let missing = about(Problem::DescriptionMissing, missing, |count| {
        format!("{} without a description", tools(count))
    })
    .map(|finding| finding.fix("say in a sentence what each does and when to use it"));
    let long = case.tools().iter().filter(|tool| text(tool) > MAX_DESCRIPTION);
    let long = about(Problem::DescriptionLong, long, |count| {
        format!("{} with a description of more than {MAX_DESCRIPTION} characters", tools(count))
    })
    .map(|finding| finding.fix("OpenAI cuts or refuses it: move details into the arguments' descriptions"));
    missing.into_iter().chain(long).collect()
}

/// Arguments say what they are for.
pub(super) fn arguments(case: &Case) -> Vec<Finding> {
    let mut bare = Vec::new();
    for tool in case.tools() {
        let properties = tool.input_schema.get("properties").and_then(|properties| properties.as_object());
        let described = |schema: &Value| schema.get("description").is_some() || schema.get("$ref").is_some();
        let bare_here = properties.into_iter().flatten().filter(|(_, schema)| !described(schema));
        let tool = shortened(&tool.name, SHOWN_NAME);
        bare.extend(bare_here.map(|(name, _)| format!("{tool}.{}", shortened(name, SHOWN_NAME))));
    }
    if bare.is_empty() {
        return Vec::new();
    }
    let arguments = if bare.len() == 1 { "argument" } else { "arguments" };
    let summary = format!("{} {arguments} without a description", bare.len());
    let finding = Finding::new(Problem::ArgumentUndescribed, summary).evidence([bare.join(", ")]);
    vec![finding.fix("add a description to each: a model fills them in by it")]
}

/// Tools that may destroy something say so.
pub(super) fn annotations(case: &Case) -> Vec<Finding> {
    let silent = case.tools().iter().filter(|tool| is_dangerous(&tool.name) && !says_so(tool));
    let summary = |count| format!("{} may destroy something and has no annotation about it", tools(count));
    let finding = about(Problem::AnnotationsMissing, silent, summary);
    let fix = "set destructiveHint or readOnlyHint, so that hosts know when to ask";
    finding.map(|finding| finding.fix(fix)).into_iter().collect()
}

fn is_dangerous(name: &str) -> bool {
    // camelCase has its words apart as well.
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() || !c.is_alphanumeric() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words.split(|c: char| !c.is_alphanumeric()).any(|word| DANGEROUS.contains(&word))
}

fn says_so(tool: &Tool) -> bool {
    tool.annotations.as_ref().is_some_and(|annotations| {
        annotations.destructive_hint.is_some() || annotations.read_only_hint.is_some()
    })
}

/// There are not more tools than hosts take.
pub(super) fn count(case: &Case) -> Vec<Finding> {
    let count = case.tools().len();
    if count <= CURSOR_TOOLS {
        return Vec::new();
    }
    let many = count > OPENAI_TOOLS;
    let severity = if many { Severity::Warning } else { Severity::Note };
    let limit = if many {
        format!("OpenAI and VS Code take {OPENAI_TOOLS}")
    } else {
        format!("Cursor uses {CURSOR_TOOLS} of all servers together")
    };
    let finding = Finding::new(Problem::TooManyTools, format!("{count} tools")).severity(severity);
    vec![finding.evidence([limit]).fix("offer fewer, or groups that can be chosen at the start")]
}

/// The catalog leaves room for the conversation.
pub(super) fn size(case: &Case) -> Vec<Finding> {
    let mut sizes: Vec<_> = case.tools().iter().map(|tool| (size_of_tool(tool), &tool.name)).collect();
    let total = tokens(sizes.iter().map(|(bytes, _)| bytes).sum());
    if total <= LARGE_CATALOG {
        return Vec::new();
    }
    sizes.sort_by(|a, b| b.cmp(a));
    let severity = if total > HUGE_CATALOG { Severity::Warning } else { Severity::Note };
    let largest = sizes.iter().take(5);
    let largest = largest
        .map(|(bytes, name)| format!("{}: about {} tokens", shortened(name, SHOWN_NAME), tokens(*bytes)));
    let summary = format!("the tools take about {total} tokens of every conversation");
    let finding = Finding::new(Problem::CatalogLarge, summary).severity(severity).evidence(largest);
    vec![finding.fix("shorten the largest ones, or offer fewer tools")]
}

/// How large a tool is on the wire.
pub(crate) fn size_of_tool(tool: &Tool) -> usize {
    serde_json::to_string(tool).map_or(0, |text| text.len())
}
