//! Arguments before they are sent, and structured content when it comes back.

use serde_json::{Map, Value, json};
use toolwire::{
    protocol::{RawJson, schema::Violations},
    wire::Tool,
};

use crate::{
    failure::{Code, Failure, Result},
    schema::{self, Member},
    target::{Target, shell_word},
    terminal::{Terminal, closest, printable},
};

/// The number of unknown arguments that are reported.
const MAX_UNKNOWN: usize = 8;

/// The required arguments that are not there.
pub(super) fn missing<'a>(schema: &'a Value, arguments: &Map<String, Value>) -> Vec<&'a str> {
    schema::required(schema).into_iter().filter(|name| !arguments.contains_key(*name)).collect()
}

/// What to say of arguments that the tool does not have, where they are why others are missing: it takes no others, or
/// one that is missing has nearly the same name.
pub(super) fn unknown(
    tool: &Tool,
    schema: &Value,
    missing: &[&str],
    arguments: &Map<String, Value>,
) -> Option<Failure> {
    let alternatives = schema::alternatives(schema, schema);
    let says = |keyword: &str, value: &Value| alternatives.iter().any(|it| it.get(keyword) == Some(value));
    if missing.is_empty() || alternatives.iter().any(|it| it.contains_key("patternProperties")) {
        return None;
    }
    let closed = says("additionalProperties", &Value::Bool(false));
    let unknown = arguments.keys().filter(|name| schema::property(schema, schema, name).is_none());
    let close = unknown.map(|name| (name, closest(name, missing.iter().copied()).first().copied()));
    let close = close.filter(|(_, meant)| closed || meant.is_some()).take(MAX_UNKNOWN);
    let lines: Vec<(&String, String)> = close
        .map(|(name, meant)| {
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            (name, format!("`{}` has no argument `{name}`{meant}", tool.name))
        })
        .collect();
    let (names, lines): (Vec<&String>, Vec<String>) = lines.into_iter().unzip();
    (!names.is_empty()).then(|| {
        Failure::new(Code::InvalidArguments, printable(&lines.join("\n")))
            .hint(expected(tool, schema))
            .data(json!({ "unknown": names, "missing": missing }))
    })
}

/// Says which arguments are missing, and what they are.
pub(super) fn incomplete(
    tool: &Tool,
    schema: &Value,
    missing: &[&str],
    given: &[String],
    target: &Target,
) -> Failure {
    let needed = missing.iter().map(|name| {
        let place = schema::property(schema, schema, name);
        let kind = place.map_or_else(|| "any".to_owned(), |place| schema::short(schema, place));
        let said = place.and_then(|place| schema::description(schema, place)).unwrap_or_default();
        let line = format!("  {name}: {kind}  {}", said.lines().next().unwrap_or_default());
        line.trim_end().to_owned()
    });
    let needed: Vec<String> = needed.collect();
    let text = format!("`{}` is missing required arguments:\n{}", tool.name, needed.join("\n"));
    let given = given.iter().map(|word| shell_word(word));
    let words: Vec<String> = given.chain(missing.iter().map(|name| format!("{name}=…"))).collect();
    let (name, words) = (shell_word(&tool.name), words.join(" "));
    let line = match target.typed() {
        command if command.starts_with("-- ") => format!("toolwire call {name} {words} {command}"),
        server => format!("toolwire call {server} {name} {words}"),
    };
    Failure::new(Code::InvalidArguments, printable(&text))
        .hint(printable(&line))
        .data(json!({ "missing": missing }))
}

/// Checks the arguments against the tool's own schema.
pub(crate) fn arguments(
    tool: &Tool,
    schema: &Value,
    arguments: &Map<String, Value>,
    terminal: Terminal,
) -> Result<()> {
    let value = Value::Object(arguments.clone());
    schema::check("the arguments", schema, &value, terminal).map_err(|violations| {
        let text = format!("the arguments do not fit `{}`:{}", tool.name, lines(&violations));
        Failure::new(Code::InvalidArguments, printable(&text))
            .hint(expected(tool, schema))
            .data(listed(&violations))
    })
}

/// The signature of a tool as a hint.
fn expected(tool: &Tool, schema: &Value) -> String {
    let expected: Vec<String> =
        schema::members(schema, schema).iter().map(|it: &Member<'_>| it.declaration(schema)).collect();
    printable(&format!("{}({})", tool.name, expected.join(", ")))
}

/// Checks what came back against what the tool has promised.
pub(super) fn output(tool: &Tool, structured: Option<&RawJson>, terminal: Terminal) -> Result<()> {
    let Some(promised) = &tool.output_schema else { return Ok(()) };
    let wrong = |what: &str| {
        let text = format!("the result of `{}` is not what its output schema promises:{what}", tool.name);
        Failure::new(Code::InvalidAnswer, printable(&text))
            .hint("this is a fault of the server; the result is shown above")
    };
    let Some(structured) = structured else { return Err(wrong(" there is no structured content")) };
    let value: Value = structured.decode().map_err(|error| wrong(&format!(" {error}")))?;
    schema::check("the result", &Value::Object(promised.clone()), &value, terminal)
        .map_err(|violations| wrong(&lines(&violations)).data(listed(&violations)))
}

fn lines(violations: &Violations) -> String {
    let lines: Vec<String> = violations.iter().map(|violation| format!("  {violation}")).collect();
    format!("\n{}", lines.join("\n"))
}

fn listed(violations: &Violations) -> Value {
    let one = |violation: &toolwire::protocol::schema::Violation| json!({ "path": violation.path, "expected": violation.expected, "found": violation.found });
    json!({ "violations": violations.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(output: &Value) -> Tool {
        serde_json::from_value(
            json!({ "name": "t", "inputSchema": { "type": "object" }, "outputSchema": output }),
        )
        .unwrap()
    }

    #[test]
    fn a_promise_is_held_or_told() {
        let sum = tool(
            &json!({ "type": "object", "required": ["sum"], "properties": { "sum": { "type": "integer" } } }),
        );
        let terminal = Terminal { json: false, verbose: 0 };
        assert!(output(&sum, Some(&RawJson::parse(r#"{"sum":1}"#).unwrap()), terminal).is_ok());
        let broken = output(&sum, Some(&RawJson::parse(r#"{"sum":"1"}"#).unwrap()), terminal).unwrap_err();
        assert_eq!(broken.code(), Code::InvalidAnswer);
        assert!(broken.message().contains("/sum: expected an integer"), "{broken}");
        assert!(output(&sum, None, terminal).is_err());
    }
}
