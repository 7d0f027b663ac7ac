//! Tells what was found: for people with the worst first and the fix beside it, for scripts as one document.

use owo_colors::OwoColorize;
use serde_json::{Value, json};

use super::{
    case::{Case, Listed, Talk},
    checks,
    finding::{Finding, shortened},
    problem::{Problem, Severity},
};
use crate::{
    failure::{Code, Failure, Result},
    render::room,
    target::shell_word,
    terminal::{Terminal, printable, printable_line, width, wrapped},
};

/// How many columns are in front of and behind the text.
const MARGIN: usize = 10;

/// What was found out about one server.
#[derive(Debug)]
pub(super) struct Report {
    name: String,
    /// How it is reached, if that is known.
    address: Option<String>,
    /// What it is and offers, if it could be asked.
    server: Option<String>,
    /// The same for scripts.
    facts: Value,
    /// What was looked at.
    checked: Vec<&'static str>,
    findings: Vec<Finding>,
}

impl Report {
    /// The report about a server that was looked at.
    pub(super) fn of_case(case: &Case, findings: Vec<Finding>) -> Self {
        Self {
            name: case.name.clone(),
            address: Some(case.address.to_string()),
            server: case.talk().map(|talk| described(talk, case.program.is_some())),
            facts: facts(case),
            checked: checks::areas(case),
            findings,
        }
    }

    /// The report about something that could not be looked at.
    pub(super) fn of_failure(failure: &Failure) -> Self {
        let problem = match failure.code() {
            Code::ConfigBroken => Problem::ConfigBroken,
            Code::NotTrusted => Problem::NotTrusted,
            Code::Timeout => Problem::Timeout,
            _ => Problem::Other,
        };
        let (name, text) =
            failure.message().split_once(": ").unwrap_or_else(|| ("configuration", failure.message()));
        // An excerpt of a file is lines that belong below each other.
        let (text, excerpt) = text.split_once('\n').unwrap_or((text, ""));
        let finding = Finding::new(problem, shortened(text, 300)).evidence(excerpt.lines());
        let finding = match failure.advice() {
            Some(advice) => finding.fix(advice),
            None => match failure.to_json()["error"]["data"]["file"].as_str() {
                Some(file) if problem == Problem::ConfigBroken => {
                    finding.fix(format!("edit {}", shell_word(file)))
                }
                _ => finding,
            },
        };
        Self {
            name: name.to_owned(),
            address: None,
            server: None,
            facts: Value::Null,
            checked: Vec::new(),
            findings: vec![finding],
        }
    }

    fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).min()
    }

    /// What the program would end with for this server alone, if it does not count as healthy.
    pub(super) fn code(&self, strict: bool) -> Option<Code> {
        let limit = if strict { Severity::Warning } else { Severity::Error };
        let worst = self.findings.first().filter(|finding| finding.severity <= limit)?;
        Some(worst.problem.code())
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    fn to_json(&self, strict: bool) -> Value {
        json!({
            "name": self.name,
            "address": self.address,
            "healthy": self.code(strict).is_none(),
            "server": self.facts,
            "checked": self.checked,
            "findings": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }

    fn lines(&self) -> Vec<String> {
        let sign = match self.worst() {
            Some(Severity::Error) => "✗".red().to_string(),
            Some(Severity::Warning) => "!".yellow().to_string(),
            _ => "✓".green().to_string(),
        };
        let mut lines = vec![format!("{sign} {}", printable_line(&self.name).bold())];
        if let Some(address) = self.address.as_ref().filter(|address| **address != self.name) {
            lines.push(format!("  {}", printable_line(address).dimmed()));
        }
        let server = self.server.iter().flat_map(|server| wrapped(&printable(server), room(MARGIN)));
        lines.extend(server.map(|line| format!("  {line}")));
        for finding in &self.findings {
            lines.push(String::new());
            lines.extend(told(finding));
        }
        if !self.findings.is_empty() {
            lines.push(String::new());
        }
        lines.extend(wrapped(&self.summary(), room(MARGIN)).iter().map(|line| format!("  {line}")));
        lines
    }

    fn summary(&self) -> String {
        let counts = [Severity::Error, Severity::Warning, Severity::Note].map(|severity| {
            let count = self.count(severity);
            (count > 0).then(|| format!("{count} {}{}", severity.name(), if count == 1 { "" } else { "s" }))
        });
        let counts: Vec<_> = counts.into_iter().flatten().collect();
        let verdict = match self.worst() {
            None => "healthy".green().bold().to_string(),
            Some(Severity::Note) => format!("{}, {}", "healthy".green().bold(), counts.join(", ")),
            Some(_) => counts.join(", ").bold().to_string(),
        };
        match self.checked.as_slice() {
            [] => verdict,
            checked => format!("{verdict} · checked: {}", checked.join(", ")),
        }
    }
}

/// Prints the reports.
pub(super) fn print(reports: &[Report], strict: bool, terminal: Terminal) -> Result<()> {
    if terminal.json {
        let servers: Vec<_> = reports.iter().map(|report| report.to_json(strict)).collect();
        return terminal.print_json(&json!({ "servers": servers }));
    }
    let reports: Vec<_> = reports.iter().map(|report| report.lines().join("\n")).collect();
    terminal.print(reports.join("\n\n"))
}

/// A finding for people.
fn told(finding: &Finding) -> Vec<String> {
    let head = format!("{}[{}]", finding.severity.name(), finding.problem.name());
    let head = match finding.severity {
        Severity::Error => head.red().bold().to_string(),
        Severity::Warning => head.yellow().bold().to_string(),
        Severity::Note => head.cyan().bold().to_string(),
    };
    let summary = format!("{head} {}", printable(&finding.summary));
    let summary = wrapped(&summary, room(MARGIN));
    let mut lines: Vec<_> = summary.iter().map(|line| format!("  {line}")).collect();
    for evidence in &finding.evidence {
        let evidence = printable_line(evidence);
        let fits = width(&evidence) <= room(MARGIN);
        let pieces = if fits { vec![evidence] } else { wrapped(&evidence, room(MARGIN)) };
        lines.extend(pieces.iter().map(|piece| format!("    {} {piece}", "│".dimmed())));
    }
    let fixes = finding.fix.iter().flat_map(|fix| wrapped(&printable(fix), room(MARGIN)));
    for (index, fix) in fixes.enumerate() {
        let label = if index == 0 { "fix:" } else { "    " };
        lines.push(format!("    {} {fix}", label.green()));
    }
    lines.push(format!("    {} toolwire explain {}", "more:".dimmed(), finding.problem.name()));
    lines
}

/// What the server is, in one line.
fn described(talk: &Talk, started: bool) -> String {
    let server = talk.server.as_ref().map_or_else(
        || "a server without a name".to_owned(),
        |server| format!("{} {}", shortened(&server.name, 60), shortened(&server.version, 20)),
    );
    let time = talk.took.as_millis();
    // Most of the time of a program is that of its start.
    let time = if started { format!("starts in {time} ms") } else { format!("answers in {time} ms") };
    let mut parts = vec![server, talk.version.to_string(), time];
    parts.extend(
        [
            counted("tool", &talk.tools),
            counted("resource", &talk.resources),
            counted("template", &talk.templates),
            counted("prompt", &talk.prompts),
        ]
        .into_iter()
        .flatten(),
    );
    parts.join(" · ")
}

fn counted<T>(what: &str, listed: &Listed<T>) -> Option<String> {
    match listed {
        Listed::All(items) if items.len() == 1 => Some(format!("1 {what}")),
        Listed::All(items) if !items.is_empty() => Some(format!("{} {what}s", items.len())),
        _ => None,
    }
}

fn facts(case: &Case) -> Value {
    case.talk().map_or(Value::Null, |talk| {
        json!({
            "info": talk.server,
            "version": talk.version,
            "milliseconds": u64::try_from(talk.took.as_millis()).unwrap_or(u64::MAX),
            "tools": talk.tools.items().len(),
            "resources": talk.resources.items().len(),
            "templates": talk.templates.items().len(),
            "prompts": talk.prompts.items().len(),
        })
    })
}
