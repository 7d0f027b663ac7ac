//! What a file would have this program do, shown before it is allowed to.
//!
//! It is shown as it is written, so that nobody has to open the file to see where a variable would go. Whatever the
//! file says, it cannot control the terminal.

use std::collections::BTreeSet;

use owo_colors::OwoColorize;
use serde_json::{Value, json};

use super::Verdict;
use crate::{
    config::{Configured, Found, Pending, Places, Untrusted},
    redact,
    render::room,
    target::{Address, Command, Remote},
    terminal::{printable_line, wrapped},
};

/// How many servers are shown.
const MAX_SERVERS: usize = 50;
/// How many characters of a command or URL are shown.
const MAX_CHARS: usize = 1000;
/// How far what belongs to a server is from the left.
const INDENT: usize = 4;

/// What one file would do.
#[derive(Debug)]
pub(crate) struct Preview<'a> {
    file: &'a Untrusted,
    servers: Vec<(&'a Configured, &'a Pending)>,
}

impl<'a> Preview<'a> {
    /// What the untrusted file with this index would do.
    pub(crate) fn of(found: &'a Found, file: usize) -> Self {
        let servers = found.servers.iter().filter_map(|server| Some((server, server.pending.as_ref()?)));
        let servers = servers.filter(|(_, pending)| pending.file == file).collect();
        Self { file: &found.untrusted[file], servers }
    }

    /// All of it for people.
    pub(crate) fn page(&self, places: &Places) -> String {
        let name = printable_line(&places.short(&self.file.file().display().to_string()));
        let why = match self.file.verdict {
            Verdict::Changed => "is a file of this project and has changed since you last decided about it.",
            _ => "is a file of this project. Anybody can have written it.",
        };
        let mut lines = vec![format!("{} {why}", name.bold()), "If you trust it, it can do this:".to_owned()];
        for (server, pending) in self.servers.iter().take(MAX_SERVERS) {
            let off = if server.disabled { " (switched off)" } else { "" };
            lines.push(format!("  {}{off}", printable_line(&server.name).bold()));
            for line in deeds(pending) {
                let line = printable_line(&line);
                let pieces = wrapped(&line, room(INDENT + 2));
                let margin = |index: usize| " ".repeat(if index == 0 { INDENT } else { INDENT + 2 });
                let pieces = pieces.iter().enumerate();
                lines.extend(pieces.map(|(index, piece)| format!("{}{piece}", margin(index))));
            }
        }
        if let more @ 1.. = self.servers.len().saturating_sub(MAX_SERVERS) {
            lines.push(format!("  … and {more} servers more"));
        }
        lines.join("\n")
    }

    /// All of it for scripts.
    pub(crate) fn to_json(&self) -> Value {
        let server = |(server, pending): &(&Configured, &Pending)| json!({ "name": server.name, "disabled": server.disabled, "would": would(pending) });
        let servers: Vec<_> = self.servers.iter().map(server).collect();
        json!({ "file": self.file.file(), "sha256": self.file.content.digest(), "servers": servers })
    }
}

/// What a server of an untrusted file would do, for scripts.
pub(crate) fn would(pending: &Pending) -> Value {
    let (verb, what) = deed(&pending.address);
    let mut told = json!({ "variables": pending.wants.variables, "files": pending.wants.files });
    told[verb] = json!(what);
    told
}

/// What is started or contacted, as it is written.
fn deed(address: &Address) -> (&'static str, String) {
    match address {
        Address::Command(_) | Address::Unix(_) => ("starts", address.to_string()),
        Address::Http(remote) | Address::WebSocket(remote) => ("contacts", redact::sentence(&remote.url)),
    }
}

/// The lines about one server.
fn deeds(pending: &Pending) -> Vec<String> {
    let (verb, what) = deed(&pending.address);
    let what: String = match what.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}… (and more)", what.get(..end).unwrap_or_default()),
        None => what,
    };
    let mut lines = vec![format!("{verb} {what}")];
    match &pending.address {
        Address::Command(Command { env, directory, .. }) => {
            if let Some(directory) = directory {
                lines.push(format!("in the folder {}", directory.display()));
            }
            lines.extend(listed("with the variables", env.iter().map(|(name, _)| name)));
        }
        Address::Http(Remote { headers, .. }) | Address::WebSocket(Remote { headers, .. }) => {
            lines.extend(listed("with the headers", headers.iter().map(|(name, _)| name)));
        }
        Address::Unix(_) => {}
    }
    lines.extend(listed("reads from your environment:", &pending.wants.variables));
    lines.extend(listed("reads variables from the files", &pending.wants.files));
    lines
}

fn listed<'a>(what: &str, names: impl IntoIterator<Item = &'a String>) -> Option<String> {
    let names: BTreeSet<&str> = names.into_iter().map(String::as_str).collect();
    let names: Vec<_> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
}
