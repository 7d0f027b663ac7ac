//! How the overview looks: a table, what failed and what helps, and a sum.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use owo_colors::OwoColorize;
use serde_json::{Value, json};

use super::visit::{Outcome, Reached, Visited};
use crate::{
    config::Places,
    failure::{Code, Failure},
    render::room,
    target::shell_word,
    terminal::{Table, fit, printable, printable_line, width},
    trust,
};

/// The widest cell; names can be of any length.
const MAX_CELL: usize = 28;
/// How many lines of a reason are shown; `toolwire doctor` has the rest.
const MAX_REASON_LINES: usize = 6;

/// The overview for people.
pub(super) fn page(visited: &[Visited], places: &Places) -> String {
    let heads = ["SERVER", "FROM", "STATE", "PROTOCOL", "VIA", "TOOLS", "TOKENS"];
    let mut table = Table::headed(heads.map(|head| head.bold().to_string())).right(&[5, 6]);
    for one in visited {
        table.row(cells(one));
    }
    let mut page = table.to_string();
    for one in visited {
        if let Some(failure) = failure(one) {
            let _ = write!(page, "\n\n{}", reason(one, failure, places));
        }
    }
    for remark in untrusted(visited, places) {
        let _ = write!(page, "\n\n{remark}");
    }
    let _ = write!(page, "\n\n{}", wrap(&sum(visited), room(0)).join("\n"));
    page
}

/// What is told about one server alone. Those of a file that is not trusted are told together.
fn failure(one: &Visited) -> Option<&Failure> {
    match &one.outcome {
        Outcome::Failed(failure) | Outcome::Broken(failure) => Some(failure),
        Outcome::NotTrusted(failure) if one.row.pending.is_none() => Some(failure),
        _ => None,
    }
}

fn cells(one: &Visited) -> [String; 7] {
    let from = one.row.origins.first().map(|origin| origin.host.name()).unwrap_or_default();
    let from = match one.row.origins.len() {
        0 | 1 => from.to_owned(),
        more => format!("{from} +{}", more - 1),
    };
    let address = one.row.address.as_ref().ok();
    let address = address.or_else(|| one.row.pending.as_ref().map(|pending| &pending.address));
    let via = address.map_or("", |address| address.transport());
    let state = match state(&one.outcome) {
        "ok" => "ok".green().to_string(),
        other @ ("failed" | "broken") => other.red().to_string(),
        other @ ("auth" | "not trusted") => other.yellow().to_string(),
        other => other.dimmed().to_string(),
    };
    let [protocol, tools, tokens] = match &one.outcome {
        Outcome::Works(reached) => {
            let protocol = format!("{} {}", reached.version, reached.era.dimmed());
            [protocol, reached.tools.to_string(), short(reached.tokens)]
        }
        _ => [const { String::new() }; 3],
    };
    [cell(&one.row.name), from, state, protocol, via.to_owned(), tools, tokens]
}

/// The state in one word, for people and scripts.
fn state(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Works(_) => "ok",
        Outcome::Failed(failure) if failure.code() == Code::AuthNeeded => "auth",
        Outcome::Failed(_) => "failed",
        Outcome::Broken(_) => "broken",
        Outcome::NotTrusted(_) => "not trusted",
        Outcome::Off => "off",
        Outcome::NotTried => "–",
    }
}

/// Why a server does not work, and what helps.
fn reason(one: &Visited, failure: &Failure, places: &Places) -> String {
    let name = cell(&one.row.name);
    let message = printable(&places.short(failure.message()));
    // Failures to connect begin with the name already.
    let message = message.strip_prefix(&format!("{}: ", one.row.name)).unwrap_or(&message);
    let mut lines: Vec<String> = Vec::new();
    for line in format!("{name}: {message}").lines() {
        lines.extend(wrap(line, room(2)));
    }
    if lines.len() > MAX_REASON_LINES {
        lines.truncate(MAX_REASON_LINES);
        lines.push("…".to_owned());
    }
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let mark = if index == 0 { format!("{} ", "✗".red()) } else { "\n  ".to_owned() };
        let _ = write!(text, "{mark}{line}");
    }
    for help in help(one, failure) {
        for (index, line) in wrap(&places.short(&help), room(4)).iter().enumerate() {
            let mark = if index == 0 { "→" } else { " " };
            let _ = write!(text, "\n  {} {}", mark.cyan(), line.cyan());
        }
    }
    text
}

/// One remark for each file that is not trusted: why its servers were not tried, and what to do.
fn untrusted(visited: &[Visited], places: &Places) -> Vec<String> {
    let mut files: Vec<(&Path, Vec<String>)> = Vec::new();
    for one in visited {
        let (Outcome::NotTrusted(_), Some(origin)) = (&one.outcome, one.row.origins.first()) else {
            continue;
        };
        if one.row.pending.is_none() {
            continue;
        }
        match files.iter_mut().find(|(file, _)| *file == origin.file) {
            Some((_, names)) => names.push(cell(&one.row.name)),
            None => files.push((&origin.file, vec![cell(&one.row.name)])),
        }
    }
    let remark = |(file, names): (&Path, Vec<String>)| {
        let shown = printable_line(&places.short(&file.display().to_string()));
        let text = format!("{shown} is not trusted, so nothing of it was used: {}", names.join(", "));
        let mut lines = wrap(&text, room(2)).into_iter();
        let mut text = format!("{} {}", "!".yellow(), lines.next().unwrap_or_default());
        for line in lines {
            let _ = write!(text, "\n  {line}");
        }
        // The home directory has its short name only outside of quotes.
        let word = shell_word(&shown);
        let word =
            if word == shown { word } else { shell_word(&printable_line(&file.display().to_string())) };
        let help = format!("toolwire trust {word}");
        let _ = write!(text, "\n  {} {}", "→".cyan(), help.cyan());
        text
    };
    files.into_iter().map(remark).collect()
}

/// What to type next.
fn help(one: &Visited, failure: &Failure) -> Vec<String> {
    let mut help: Vec<_> = failure.advice().map(printable).into_iter().collect();
    match (&one.outcome, one.row.origins.first()) {
        (Outcome::Broken(_), Some(origin)) if help.is_empty() => {
            help.push(format!("edit {}", shell_word(&origin.file.display().to_string())));
        }
        (Outcome::Broken(_) | Outcome::NotTrusted(_), _) => {}
        _ => help.push(format!("toolwire doctor {}", shell_word(&one.row.word))),
    }
    help
}

/// All servers in one line.
fn sum(visited: &[Visited]) -> String {
    let count = |wanted: &[&str]| visited.iter().filter(|one| wanted.contains(&state(&one.outcome))).count();
    let servers = visited.len();
    let mut text = format!("{servers} server{}", if servers == 1 { "" } else { "s" });
    let parts = [
        (count(&["ok"]), ["works", "work"]),
        (count(&["failed"]), ["fails", "fail"]),
        (count(&["auth"]), ["needs auth", "need auth"]),
        (count(&["broken"]), ["is broken", "are broken"]),
        (count(&["not trusted"]), ["is not trusted", "are not trusted"]),
        (count(&["off"]), ["is off", "are off"]),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts
        .map(|(number, [one, many])| format!("{number} {}", if *number == 1 { one } else { many }))
        .collect();
    if !parts.is_empty() {
        let _ = write!(text, ": {}", parts.join(", "));
    }
    let reached = || visited.iter().filter_map(reached);
    let tools: usize = reached().map(|reached| reached.tools).sum();
    if tools > 0 {
        let tokens = short(reached().map(|reached| reached.tokens).sum());
        let _ = write!(text, " · {tools} tools, about {tokens} tokens");
    }
    text
}

const fn reached(one: &Visited) -> Option<&Reached> {
    match &one.outcome {
        Outcome::Works(reached) => Some(reached),
        _ => None,
    }
}

/// The overview for scripts.
pub(super) fn json(visited: &[Visited], broken: &[Failure], searched: &[PathBuf], places: &Places) -> Value {
    let broken: Vec<_> = broken.iter().map(|failure| failure.to_json()["error"].take()).collect();
    let servers: Vec<_> = visited.iter().map(|one| server(one, places)).collect();
    json!({ "servers": servers, "broken": broken, "searched": searched })
}

fn server(one: &Visited, places: &Places) -> Value {
    let row = &one.row;
    let state = match state(&one.outcome) {
        "–" => "unknown",
        "not trusted" => "not-trusted",
        state => state,
    };
    let mut server = json!({
        "name": row.name, "target": row.word, "origins": row.origins, "state": state, "disabled": row.disabled,
    });
    if let Ok(address) = &row.address {
        server["address"] = json!(address.to_string());
        server["transport"] = json!(address.transport());
    }
    match &one.outcome {
        Outcome::Works(reached) => {
            server["era"] = json!(reached.era.as_str());
            server["version"] = json!(reached.version.as_str());
            server["tools"] = json!(reached.tools);
            server["tokens"] = json!(reached.tokens);
            if let Some((name, version)) = &reached.server {
                server["server"] = json!({ "name": name, "version": version });
            }
        }
        Outcome::Failed(failure) | Outcome::Broken(failure) => {
            server["error"] = failure.to_json()["error"].take();
            server["help"] = json!(help(one, failure));
        }
        Outcome::NotTrusted(failure) => {
            server["error"] = failure.to_json()["error"].take();
            if let Some(pending) = &row.pending {
                server["would"] = trust::would(pending, places);
            }
        }
        Outcome::Off | Outcome::NotTried => {}
    }
    server
}

/// A number as people read it: 412, 18.2k, 1.3M.
fn short(number: usize) -> String {
    let tenths = |unit: usize| (number + unit / 20) * 10 / unit;
    match number {
        0..1_000 => number.to_string(),
        1_000..999_950 => format!("{}.{}k", tenths(1_000) / 10, tenths(1_000) % 10),
        _ => format!("{}.{}M", tenths(1_000_000) / 10, tenths(1_000_000) % 10),
    }
}

/// A text for one cell: in one line, with nothing that controls a terminal, and not too wide.
pub(super) fn cell(text: &str) -> String {
    fit(&printable_line(text), MAX_CELL)
}

/// Breaks a line between words; a word that is too wide is cut. What the line begins with, all lines do.
fn wrap(line: &str, most: usize) -> Vec<String> {
    if width(line) <= most {
        return vec![line.to_owned()];
    }
    let indent: String = line.chars().take_while(|c| *c == ' ').take(most / 2).collect();
    let mut lines: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let word = fit(word, most - indent.len());
        match lines.last_mut() {
            Some(last) if width(last) + 1 + width(&word) <= most => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines
}
