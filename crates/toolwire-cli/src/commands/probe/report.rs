//! Tells what a probe found out.

use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::{Era, wire::ServerCapabilities};

use super::{Attempt, Findings, first_line, times::microseconds};
use crate::{
    commands::doctor::{shortened, web::Look},
    failure::Result,
    render::room,
    terminal::{Terminal, duration, printable, printable_line, wrapped},
};

/// How much of the instructions is shown.
const MAX_INSTRUCTIONS: usize = 240;

/// How much of a reason is shown.
const MAX_REASON: usize = 200;

/// Where the values begin.
const LABEL: usize = 14;

/// How many columns are in front of and behind the text.
const MARGIN: usize = 18;

/// Prints the findings.
pub(super) fn print(findings: &Findings, terminal: Terminal) -> Result<()> {
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
        printable_line(&findings.name).bold(),
        findings.version.green().bold(),
        findings.transport
    )];
    let mut add = |label: &str, values: Vec<String>| {
        let values = values.iter().flat_map(|value| wrapped(&printable(value), room(MARGIN)));
        for (index, value) in values.enumerate() {
            let label = if index == 0 { label } else { "" };
            lines.push(format!("  {:LABEL$}{}", label.dimmed(), value));
        }
    };
    add("found out by", findings.how.clone());
    add("server", server(findings));
    add("can", vec![abilities(&findings.capabilities).join(", ")]);
    add("extensions", names(findings.capabilities.extensions.as_ref().map(|map| map.keys().collect())));
    add("experiments", names(findings.capabilities.experimental.as_ref().map(|map| map.keys().collect())));
    let instructions = findings.instructions.as_deref().map(|text| shortened(text, MAX_INSTRUCTIONS));
    add("instructions", instructions.into_iter().collect());
    add("start", vec![duration(findings.start)]);
    add("answers", answers(findings));
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

fn answers(findings: &Findings) -> Vec<String> {
    let times = &findings.answers;
    let mut lines = match times.summary() {
        Some([min, median, max]) => vec![
            format!("{} … {} … {}", duration(min), duration(median), duration(max)),
            format!("the fastest, median and slowest of {} × {}", times.count(), times.method),
        ],
        None => vec![format!("none to {}", times.method)],
    };
    lines.extend(times.trouble.iter().map(|why| format!("then: {}", shortened(why, MAX_REASON))));
    lines
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
    let (indent, what) = match (attempt.era, attempt.asked) {
        (Era::Modern, _) => ("  ", "modern".to_owned()),
        (Era::Legacy, None) => ("  ", "legacy".to_owned()),
        (Era::Legacy, Some(version)) => ("    ", version.to_string()),
    };
    let why = match &attempt.outcome {
        // That it speaks the version it was asked for goes without saying.
        Ok(version) if attempt.asked == Some(*version) && attempt.era == Era::Legacy => Vec::new(),
        Ok(version) => vec![version.to_string()],
        Err(why) => wrapped(&printable(&shortened(first_line(why), MAX_REASON)), room(MARGIN)),
    };
    let sign = if attempt.outcome.is_ok() { "✓".green().to_string() } else { "✗".red().to_string() };
    let mut why = why.into_iter();
    let first = format!("{indent}{sign} {what:10} {}", why.next().unwrap_or_default());
    let rest = why.map(|line| format!("{indent}  {:10} {line}", ""));
    std::iter::once(first.trim_end().to_owned()).chain(rest).collect()
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
