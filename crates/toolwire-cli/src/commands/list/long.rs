//! Everything there is to know about one tool, resource, template or prompt.

use owo_colors::OwoColorize;
use serde::Serialize;
use serde_json::Value;
use toolwire::wire::{Annotations, Icon, Meta, Prompt, Resource, ResourceTemplate, Tool};

use super::signature::{self, INDENT};
use crate::{
    render::{indented, wrapped},
    schema::{Member, description, members, plain, short},
    terminal::{printable, printable_line},
};

/// What a schema may say about a value besides its type.
const LIMITS: [(&str, &str); 10] = [
    ("format", "format"),
    ("pattern", "pattern"),
    ("minimum", "at least"),
    ("maximum", "at most"),
    ("exclusiveMinimum", "more than"),
    ("exclusiveMaximum", "less than"),
    ("minLength", "length at least"),
    ("maxLength", "length at most"),
    ("minItems", "items at least"),
    ("maxItems", "items at most"),
];

pub(super) fn tool(tool: &Tool) -> String {
    let mut page = Page::new(signature::tool_signature(tool), tool.title.as_deref());
    page.text(tool.description.as_deref());
    let marks = signature::marks(tool);
    if !marks.is_empty() {
        page.lines.push(indented(&signature::shown_marks(&marks), INDENT));
    }
    let input = Value::Object(tool.input_schema.clone());
    page.members("arguments", &input);
    if let Some(output) = &tool.output_schema {
        page.members("returns", &Value::Object(output.clone()));
    }
    if let Some(execution) = &tool.execution {
        page.json("execution", execution);
    }
    page.rest(tool.icons.as_deref(), None, tool.meta.as_ref());
    page.finish()
}

pub(super) fn resource(resource: &Resource) -> String {
    let line = signature::place(&resource.uri, &resource.name, resource.mime_type.as_deref(), resource.size);
    let mut page = Page::new(line, resource.title.as_deref());
    page.text(resource.description.as_deref());
    page.rest(resource.icons.as_deref(), resource.annotations.as_ref(), resource.meta.as_ref());
    page.finish()
}

pub(super) fn template(template: &ResourceTemplate) -> String {
    let line = signature::place(&template.uri_template, &template.name, template.mime_type.as_deref(), None);
    let mut page = Page::new(line, template.title.as_deref());
    page.text(template.description.as_deref());
    page.rest(template.icons.as_deref(), template.annotations.as_ref(), template.meta.as_ref());
    page.finish()
}

pub(super) fn prompt(prompt: &Prompt) -> String {
    let mut page = Page::new(signature::prompt_signature(prompt), prompt.title.as_deref());
    page.text(prompt.description.as_deref());
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    if !arguments.is_empty() {
        page.heading("arguments");
    }
    for argument in arguments {
        let mark = if argument.required == Some(true) { "required" } else { "optional" };
        page.entry(
            &format!("{}  {}", printable_line(&argument.name).cyan(), mark.dimmed()),
            argument.description.as_deref(),
        );
    }
    page.rest(prompt.icons.as_deref(), None, prompt.meta.as_ref());
    page.finish()
}

struct Page {
    lines: Vec<String>,
}

impl Page {
    fn new(signature: String, title: Option<&str>) -> Self {
        let mut lines = vec![signature];
        if let Some(title) = title {
            lines.push(indented(&printable_line(title).bold().to_string(), INDENT));
        }
        Self { lines }
    }

    fn text(&mut self, text: Option<&str>) {
        if let Some(text) = text {
            self.lines.push(wrapped(&printable(text), INDENT));
        }
    }

    fn heading(&mut self, name: &str) {
        self.lines.push(format!("  {}", name.dimmed()));
    }

    fn entry(&mut self, line: &str, text: Option<&str>) {
        self.lines.push(indented(line, INDENT));
        if let Some(text) = text {
            self.lines.push(wrapped(&printable(text), 2 * INDENT));
        }
    }

    fn json(&mut self, name: &str, value: &impl Serialize) {
        let json = serde_json::to_string(value).unwrap_or_default();
        self.lines.push(format!("  {} {}", name.dimmed(), printable(&json)));
    }

    fn members(&mut self, heading: &str, schema: &Value) {
        let members = members(schema, schema);
        if members.is_empty() {
            let kind = printable(&short(schema, schema));
            if heading == "returns" {
                self.lines.push(format!("  {} {}", heading.dimmed(), kind.yellow()));
            }
            return;
        }
        self.heading(heading);
        for member in members {
            let declaration = printable_line(&member.declaration(schema));
            let (name, kind) = declaration.split_once(": ").unwrap_or((&declaration, ""));
            let limits = limits(schema, &member);
            let line = format!("{}: {}{}", name.cyan(), kind.yellow(), limits.dimmed());
            self.entry(&line, description(schema, member.schema));
        }
    }

    fn rest(&mut self, icons: Option<&[Icon]>, annotations: Option<&Annotations>, meta: Option<&Meta>) {
        if let Some(annotations) = annotations {
            self.json("annotations", annotations);
        }
        for icon in icons.unwrap_or_default() {
            self.json("icon", icon);
        }
        if let Some(meta) = meta {
            self.json("meta", meta);
        }
    }

    fn finish(self) -> String {
        self.lines.join("\n")
    }
}

/// What the value must be like, in parentheses.
fn limits(root: &Value, member: &Member<'_>) -> String {
    let schema = crate::schema::resolve(root, member.schema);
    let said = LIMITS.iter().filter_map(|(keyword, words)| {
        let value = schema.get(*keyword)?;
        Some(format!("{words} {}", plain(value)))
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { String::new() } else { printable(&format!("  ({})", said.join(", "))) }
}
