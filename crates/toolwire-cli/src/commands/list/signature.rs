//! What is called, with what, and what comes back: one line if it fits.

use owo_colors::OwoColorize;
use serde_json::Value;
use toolwire::wire::{Prompt, Tool};

use crate::{
    render,
    schema::{members, returns},
    terminal::{printable, printable_line, width},
};

/// How far arguments and descriptions are indented.
pub(super) const INDENT: usize = 4;

/// `add(a: integer, b: integer) -> {sum: integer}`.
pub(crate) fn tool_signature(tool: &Tool) -> String {
    let input = Value::Object(tool.input_schema.clone());
    let arguments: Vec<(String, String)> = members(&input, &input)
        .iter()
        .map(|member| split(&printable_line(&member.declaration(&input))))
        .collect();
    let output = tool.output_schema.as_ref().map(|schema| {
        let schema = Value::Object(schema.clone());
        let kind = printable(&returns(&schema, render::room(") -> ".len())));
        format!(" {} {}", "->".dimmed(), kind.yellow())
    });
    call(&printable_line(&tool.name), &arguments, &output.unwrap_or_default())
}

/// `greet(name, language?)`.
pub(crate) fn prompt_signature(prompt: &Prompt) -> String {
    let arguments = prompt.arguments.iter().flatten();
    let arguments: Vec<(String, String)> = arguments
        .map(|argument| {
            let mark = if argument.required == Some(true) { "" } else { "?" };
            (format!("{}{mark}", printable_line(&argument.name)), String::new())
        })
        .collect();
    call(&printable_line(&prompt.name), &arguments, "")
}

/// The name and the rest of a declaration.
fn split(declaration: &str) -> (String, String) {
    match declaration.split_once(": ") {
        Some((name, kind)) => (name.to_owned(), format!(": {}", kind.yellow())),
        None => (declaration.to_owned(), String::new()),
    }
}

fn call(name: &str, arguments: &[(String, String)], output: &str) -> String {
    let name = name.bold().green().to_string();
    let arguments: Vec<String> =
        arguments.iter().map(|(name, kind)| format!("{}{kind}", name.cyan())).collect();
    let line = format!("{name}({}){output}", arguments.join(", "));
    if width(&line) <= render::room(0) {
        return line;
    }
    if arguments.is_empty() {
        return line;
    }
    let lines: Vec<String> = arguments.iter().map(|argument| format!("{argument},")).collect();
    format!("{name}(\n{}\n){output}", render::indented(&lines.join("\n"), INDENT))
}

/// `demo://greeting  greeting  text/plain  19 B`.
pub(super) fn place(uri: &str, name: &str, mime_type: Option<&str>, size: Option<u64>) -> String {
    let size = size.map(|size| render::size(usize::try_from(size).unwrap_or(usize::MAX)));
    let parts = [
        Some(printable_line(uri).bold().green().to_string()),
        (name != uri).then(|| printable_line(name).cyan().to_string()),
        mime_type.map(|mime_type| printable_line(mime_type).yellow().to_string()),
        size.map(|size| size.dimmed().to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// What a tool says about itself in a word each.
pub(super) fn marks(tool: &Tool) -> Vec<&'static str> {
    let Some(hints) = &tool.annotations else { return Vec::new() };
    let read_only = hints.read_only_hint == Some(true);
    let marks = [
        (read_only, "read-only"),
        (!read_only && hints.destructive_hint == Some(true), "destructive"),
        (hints.idempotent_hint == Some(true), "idempotent"),
        (hints.open_world_hint == Some(true), "open-world"),
    ];
    marks.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect()
}

/// Marks in brackets, those that warn in red.
pub(super) fn shown_marks(marks: &[&str]) -> String {
    let shown: Vec<String> = marks
        .iter()
        .map(|mark| if *mark == "destructive" { mark.red().to_string() } else { mark.dimmed().to_string() })
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    format!("{}{}{}", "[".dimmed(), shown.join(", "), "]".dimmed())
}

/// The signature, and below it the first line of the description with the marks.
pub(super) fn with_description(signature: &str, description: Option<&str>, marks: &[&str]) -> String {
    let marks = shown_marks(marks);
    let first = description.and_then(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
    let mut below = first.map(|line| shortened(&printable(line), render::room(INDENT))).unwrap_or_default();
    if !marks.is_empty() {
        // The marks come behind the description when there is room, and below it when there is not.
        let gap = if below.is_empty() {
            ""
        } else if width(&below) + 2 + width(&marks) <= render::room(INDENT) {
            "  "
        } else {
            "\n"
        };
        below = format!("{below}{gap}{marks}");
    }
    if below.is_empty() {
        return signature.to_owned();
    }
    format!("{signature}\n{}", render::indented(&below, INDENT))
}

/// The text, cut off between words when it is too long.
fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for word in text.split_whitespace() {
        if width(&short) + width(word) + 2 > columns {
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short += word;
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use serde_json::json;

    use super::*;

    fn plain(text: &str) -> String {
        strip_str(text).to_string()
    }

    #[test]
    fn a_long_signature_gets_a_line_per_argument() {
        let properties: serde_json::Map<String, Value> =
            (0..8).map(|n| (format!("argument_{n}"), json!({ "type": "string" }))).collect();
        let tool: Tool = serde_json::from_value(
            json!({ "name": "many", "inputSchema": { "type": "object", "properties": properties } }),
        )
        .unwrap();
        let shown = plain(&tool_signature(&tool));
        assert!(shown.starts_with("many(\n    argument_0?: string,\n"), "{shown}");
        assert!(shown.ends_with("\n)"), "{shown}");
    }

    #[test]
    fn descriptions_are_one_line_and_marks_find_their_place() {
        let shown = plain(&with_description("x()", Some("\n  First.\nSecond."), &["read-only"]));
        assert_eq!(shown, "x()\n    First.  [read-only]");
        let long = "word ".repeat(30);
        let shown = plain(&with_description("x()", Some(&long), &["destructive"]));
        assert!(shown.lines().all(|line| width(line) <= render::room(0)), "{shown}");
        assert!(shown.ends_with("word…\n    [destructive]"), "{shown}");
    }
}
