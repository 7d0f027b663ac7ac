//! Tells what a probe found out.

use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::{Era, wire::ServerCapabilities};

use super::{Attempt, Findings, first_line, times::microseconds};
use crate::{
    commands::doctor::{shortened, web::Look},
    failure::Result,
    terminal::{Terminal, duration, printable, width},
};

/// How much of the instructions is shown.
const MAX_INSTRUCTIONS: usize = 240;

/// How much of a reason is shown.
const MAX_REASON: usize = 200;

/// Where the values begin.
const LABEL: usize = 14;

/// Prints the findings.
pub(super) fn print(findings: &Findings, terminal: &Terminal) -> Result<()> {
    if terminal.json {
        terminal.print_json(&to_json(findings))
    } else {
        terminal.print(lines(findings).join("\n"))
    }
}

fn lines(findings: &Findings) -> Vec<String> {
    let era = match findings.version.era() {
        Era::Modern => "modern",
        Era::Legacy => "legacy",
    };
    let mut lines = vec![format!(
        "{} speaks {} ({era}) over {}",
        printable(&findings.name).bold(),
        findings.version.green().bold(),
        findings.transport
    )];
    let mut add = |label: &str, values: Vec<String>| {
        for (index, value) in values.into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            lines.push(format!("  {:LABEL$}{}", label.dimmed(), printable(&value)));
        }
    };
    add("found out by", findings.how.clone());
    add("server", server(findings));
    add("can", vec![abilities(&findings.capabilities).join(", ")]);
    add("extensions", names(findings.capabilities.extensions.as_ref().map(|map| map.keys().collect())));
    add("experiments", names(findings.capabilities.experimental.as_ref().map(|map| map.keys().collect())));
    let instructions = findings.instructions.as_deref().map(|text| shortened(text, MAX_INSTRUCTIONS));
    add("instructions", instructions.map(|text| wrapped(&text)).unwrap_or_default());
    add("start", vec![duration(findings.start)]);
    add("answers", vec![answers(findings)]);
    add("http", http(findings.http.as_ref()));
    lines.push(String::new());
    lines.extend(findings.attempts.iter().flat_map(verdict));
    lines
}

fn server(findings: &Findings) -> Vec<String> {
    let Some(info) = &findings.server else { return vec!["(it does not say)".to_owned()] };
    let title = info.title.as_ref().map(|title| format!(" — {title}")).unwrap_or_default();
    vec![shortened(&format!("{} {}{title}", info.name, info.version), MAX_REASON)]
}

/// What a server can do, in the words of the specification.
fn abilities(can: &ServerCapabilities) -> Vec<String> {
    let with = |name: &str, details: &[(&str, Option<bool>)]| {
        let details: Vec<_> =
            details.iter().filter(|(_, on)| *on == Some(true)).map(|(name, _)| *name).collect();
        if details.is_empty() { name.to_owned() } else { format!("{name} ({})", details.join(", ")) }
    };
    let tools = can.tools.as_ref().map(|tools| with("tools", &[("listChanged", tools.list_changed)]));
    let resources = can.resources.as_ref().map(|resources| {
        let details = [("subscribe", resources.subscribe), ("listChanged", resources.list_changed)];
        with("resources", &details)
    });
    let prompts =
        can.prompts.as_ref().map(|prompts| with("prompts", &[("listChanged", prompts.list_changed)]));
    let simple = [
        can.completions.as_ref().map(|_| "completions"),
        can.logging.as_ref().map(|_| "logging"),
        can.tasks.as_ref().map(|_| "tasks"),
    ];
    let simple = simple.into_iter().flatten().map(str::to_owned);
    let all: Vec<_> = [tools, resources, prompts].into_iter().flatten().chain(simple).collect();
    if all.is_empty() { vec!["nothing".to_owned()] } else { all }
}

fn names(names: Option<Vec<&String>>) -> Vec<String> {
    const MOST: usize = 20;
    names.into_iter().flatten().take(MOST).map(|name| shortened(name, MAX_REASON)).collect()
}

fn answers(findings: &Findings) -> String {
    let times = &findings.answers;
    let trouble = times.trouble.as_ref().map(|why| format!("; then: {}", shortened(why, MAX_REASON)));
    let trouble = trouble.unwrap_or_default();
    match times.summary() {
        Some([min, median, max]) => format!(
            "{} / {} / {} (fastest, median, slowest of {} × {}){trouble}",
            duration(min),
            duration(median),
            duration(max),
            times.count(),
            times.method
        ),
        None => format!("none to {}{trouble}", times.method),
    }
}

/// What HTTP says about `initialize`.
fn http(look: Option<&Look>) -> Vec<String> {
    let Some(Look::Answer(answer)) = look else { return Vec::new() };
    let session = if answer.session { "with a session" } else { "without a session" };
    let kind = answer.content_type.as_deref().unwrap_or("no content type");
    let mut lines = vec![format!("initialize: {}, {kind}, {session}", answer.status)];
    lines.extend(answer.server.iter().map(|server| format!("Server: {server}")));
    lines
}

fn verdict(attempt: &Attempt) -> Vec<String> {
    let era = match attempt.era {
        Era::Modern => "modern",
        Era::Legacy => "legacy",
    };
    let indent = if attempt.asked.is_some() && attempt.era == Era::Legacy { "    " } else { "  " };
    let what = match attempt.asked {
        Some(version) if attempt.era == Era::Legacy => version.to_string(),
        _ => era.to_owned(),
    };
    match &attempt.outcome {
        Ok(version) => vec![format!("{indent}{} {what:10} {version}", "✓".green())],
        Err(why) => {
            let why = printable(&shortened(first_line(why), MAX_REASON));
            let mut lines = wrapped(&why).into_iter();
            let first = lines.next().unwrap_or_default();
            let head = format!("{indent}{} {what:10} {}", "✗".red(), first.dimmed());
            let rest = lines.map(|line| format!("{indent}  {:10} {}", "", line.dimmed()));
            std::iter::once(head).chain(rest).collect()
        }
    }
}

/// The text in lines that leave room for a label.
fn wrapped(text: &str) -> Vec<String> {
    const WIDTH: usize = 62;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + width(word) < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn to_json(findings: &Findings) -> Value {
    let attempt = |attempt: &Attempt| {
        json!({
            "era": match attempt.era { Era::Modern => "modern", Era::Legacy => "legacy" },
            "asked": attempt.asked,
            "version": attempt.outcome.as_ref().ok(),
            "error": attempt.outcome.as_ref().err(),
        })
    };
    let http = findings.http.as_ref().and_then(|look| match look {
        Look::Answer(answer) => Some(json!({
            "status": answer.status,
            "contentType": answer.content_type,
            "session": answer.session,
            "server": answer.server,
        })),
        Look::Nothing(_) => None,
    });
    json!({
        "name": findings.name,
        "transport": findings.transport,
        "version": findings.version,
        "foundOutBy": findings.how,
        "serverInfo": findings.server,
        "capabilities": findings.capabilities,
        "instructions": findings.instructions,
        "startMicroseconds": microseconds(findings.start),
        "answers": findings.answers.to_json(),
        "attempts": findings.attempts.iter().map(attempt).collect::<Vec<_>>(),
        "http": http,
    })
}
