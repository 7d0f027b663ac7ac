//! What a file would have this program do, shown before it is allowed to.
//!
//! It is shown as it is written, all of it, so that nobody has to open the file to see where a variable would go. The
//! file is the project's: what is written in it is no secret of the user's, unless it is a link that leads elsewhere.
//! Whatever the file says, it cannot control the terminal, nor look like something else.

use std::collections::BTreeSet;

use owo_colors::OwoColorize;
use serde_json::{Value, json};

use super::{
    Verdict,
    found::{Runs, runs},
    influence::is_influential,
};
use crate::{
    config::{Configured, Found, Pending, Places, Untrusted},
    redact,
    render::room,
    target::{Address, Command, shell_word},
    terminal::{folded, printable_line},
};

/// How many characters are shown of all that a file would do. A person does not read more in a terminal.
const MAX_CHARS: usize = 20_000;
/// How far what belongs to a server is from the left.
const INDENT: usize = 4;

/// What one file would do.
#[derive(Debug)]
pub(crate) struct Preview<'a> {
    file: &'a Untrusted,
    servers: Vec<(&'a Configured, &'a Pending)>,
}

/// What is shown to people, and whether that is all of it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) whole: bool,
}

impl<'a> Preview<'a> {
    /// What the untrusted file with this index would do.
    pub(crate) fn of(found: &'a Found, file: usize) -> Self {
        let servers = found.servers.iter().filter_map(|server| Some((server, server.pending.as_ref()?)));
        let servers = servers.filter(|(_, pending)| pending.file == file).collect();
        Self { file: &found.untrusted[file], servers }
    }

    /// All of it for people; or as much as they can read, and where the rest is.
    pub(crate) fn page(&self, places: &Places) -> Page {
        let name = printable_line(&places.short(&self.file.file().display().to_string()));
        let why = match self.file.verdict {
            Verdict::Changed => "is a file of this project and has changed since you last decided about it.",
            _ => "is a file of this project. Anybody can have written it.",
        };
        let mut lines = vec![format!("{} {why}", name.bold())];
        if self.file.outside {
            let real = printable_line(&self.file.content.path().display().to_string());
            lines.push(format!("It is a link that leads out of the project, to {real}"));
        }
        lines.push("If you trust it, it can do this:".to_owned());
        let mut used = 0;
        for (index, (server, pending)) in self.servers.iter().enumerate() {
            let off = if server.disabled { " (switched off)" } else { "" };
            let deeds = deeds(pending, places);
            used += server.name.len() + deeds.iter().map(String::len).sum::<usize>();
            if used > MAX_CHARS {
                let more = self.servers.len() - index;
                lines.push(format!(
                    "  … and {more} more of {} servers, too much to be shown here",
                    self.servers.len()
                ));
                return Page { text: lines.join("\n"), whole: false };
            }
            lines.push(format!("  {}{off}", printable_line(&server.name).bold()));
            lines.extend(deeds.iter().flat_map(|deed| indented(deed)));
        }
        Page { text: lines.join("\n"), whole: true }
    }

    /// All of it for scripts.
    pub(crate) fn to_json(&self, places: &Places) -> Value {
        let server = |(server, pending): &(&Configured, &Pending)| json!({ "name": server.name, "disabled": server.disabled, "would": would(pending, places) });
        let servers: Vec<_> = self.servers.iter().map(server).collect();
        json!({ "file": self.file.file(), "sha256": self.file.content.digest(), "servers": servers })
    }
}

/// A line with all of its characters, below the name of its server.
fn indented(line: &str) -> Vec<String> {
    let margin = |index: usize| " ".repeat(if index == 0 { INDENT } else { INDENT + 2 });
    // What the user keeps secret would not be found again in pieces.
    let line = redact::outgoing(line);
    let pieces = folded(&line, room(INDENT + 2)).into_iter().enumerate();
    pieces.map(|(index, piece)| format!("{}{}", margin(index), piece.trim_end())).collect()
}

/// What a server of an untrusted file would do, for scripts.
pub(crate) fn would(pending: &Pending, places: &Places) -> Value {
    let (verb, what) = deed(pending);
    let mut told = json!({ "variables": pending.wants.variables, "files": pending.wants.files });
    told[verb] = json!(what);
    let pairs = |pairs: &[(String, String)]| -> Vec<Value> {
        let pair = |(name, value)| json!({ "name": name, "value": shown(pending, name, value) });
        pairs.iter().map(|(name, value)| pair((name, value))).collect()
    };
    match &pending.address {
        Address::Command(command) => {
            told["env"] = json!(pairs(&command.env));
            told["folder"] = json!(command.directory);
            told["runs"] = match runs(command, pending, places) {
                Some(Runs::Own(file) | Runs::Elsewhere(file)) => json!(file),
                Some(Runs::Nothing | Runs::Depends) | None => Value::Null,
            };
            told["warnings"] = json!(warnings(command));
        }
        Address::Http(remote) | Address::WebSocket(remote) => {
            told["headers"] = json!(pairs(&remote.headers));
        }
        Address::Unix(_) => {}
    }
    told
}

/// What is started or contacted, as it is written.
fn deed(pending: &Pending) -> (&'static str, String) {
    match &pending.address {
        address if pending.outside => {
            let starts = matches!(address, Address::Command(_) | Address::Unix(_));
            (if starts { "starts" } else { "contacts" }, address.to_string())
        }
        Address::Command(command) => ("starts", command.line()),
        Address::Unix(_) => ("starts", pending.address.to_string()),
        Address::Http(remote) | Address::WebSocket(remote) => ("contacts", printable_line(&remote.url)),
    }
}

/// The value of a variable or header. What is in a file elsewhere may be the user's own.
fn shown<'a>(pending: &Pending, name: &str, value: &'a str) -> &'a str {
    let hidden = pending.outside && !value.is_empty() && redact::is_hidden_pair(name, value);
    if hidden { redact::REDACTED } else { value }
}

/// The lines about one server.
fn deeds(pending: &Pending, places: &Places) -> Vec<String> {
    let (verb, what) = deed(pending);
    let mut lines = vec![format!("{verb} {what}")];
    match &pending.address {
        Address::Command(command) => {
            lines.extend(program(command, pending, places));
            if let Some(directory) = &command.directory {
                lines.push(format!("in the folder {}", printable_line(&directory.display().to_string())));
            }
            for (name, value) in &command.env {
                lines.push(format!(
                    "sets {}={}",
                    printable_line(name),
                    shell_word(shown(pending, name, value))
                ));
            }
            lines.extend(warnings(command).into_iter().map(|warning| format!("! {warning}")));
        }
        Address::Http(remote) | Address::WebSocket(remote) => {
            for (name, value) in &remote.headers {
                let value = printable_line(shown(pending, name, value));
                lines.push(format!("sends {}: {value}", printable_line(name)));
            }
        }
        Address::Unix(_) => {}
    }
    lines.extend(listed("reads from your environment:", &pending.wants.variables));
    lines.extend(listed("reads variables, which can be any, from the files", &pending.wants.files));
    lines
}

/// Which program that would be, if the file has a say in it.
fn program(command: &Command, pending: &Pending, places: &Places) -> Option<String> {
    let shown = |file: &std::path::Path| printable_line(&places.short(&file.display().to_string()));
    Some(match runs(command, pending, places)? {
        Runs::Own(file) => format!("! that is {}, a file of this project", shown(&file)),
        Runs::Elsewhere(file) => format!("that is {}", shown(&file)),
        Runs::Nothing => "! that is not found now, by the PATH that it sets".to_owned(),
        Runs::Depends => "! which program that is depends on variables".to_owned(),
    })
}

/// What is dangerous about the variables that are set.
fn warnings(command: &Command) -> Vec<String> {
    let names: BTreeSet<_> =
        command.env.iter().map(|(name, _)| name).filter(|name| is_influential(name)).collect();
    let warning = |name: &String| {
        format!("{} can make it run something else than the command says", printable_line(name))
    };
    names.into_iter().map(warning).collect()
}

fn listed<'a>(what: &str, names: impl IntoIterator<Item = &'a String>) -> Option<String> {
    let names: BTreeSet<String> = names.into_iter().map(|name| printable_line(name)).collect();
    let names: Vec<_> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
}
