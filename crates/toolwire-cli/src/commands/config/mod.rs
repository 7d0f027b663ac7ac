//! `toolwire add` and `toolwire remove`: a server in the configuration of a host.
//!
//! The rest of the file stays as it is, comments included. What changes is shown first and wants consent, and
//! the old file is kept beside the new one.

mod entry;
mod json;
mod toml;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use crate::{
    config::{Format, Host, Place, Places, Scope, file, syntax},
    failure::{Code, Failure, Result},
    redact, target,
    terminal::{Terminal, printable},
    trust,
};
use entry::Entry;

/// How many lines around a change are shown.
const CONTEXT: usize = 3;
/// How many characters of a line are shown.
const MAX_LINE: usize = 400;

const ADD_USAGE: &str = "toolwire add NAME [OPTIONS] -- COMMAND [ARGUMENTS]...
       toolwire add NAME [OPTIONS] URL";

const ADD_HELP: &str = "\
The change is shown first, and what was there before is kept beside it as a backup.

Hosts: project, toolwire, claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex, gemini

Examples:
  toolwire add demo -- toolwire demo --stdio
  toolwire add files --to cursor -- npx -y @modelcontextprotocol/server-filesystem .
  toolwire add team --to project https://example.com/mcp --header 'X-Team: blue'";

const REMOVE_HELP: &str = "\
The change is shown first, and what was there before is kept beside it as a backup.

Hosts: project, toolwire, claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex, gemini

Examples:
  toolwire remove demo
  toolwire remove files --from cursor --dry-run";

/// Add a server to the configuration of a host
#[derive(Args, Debug)]
#[command(after_help = ADD_HELP, override_usage = ADD_USAGE)]
pub(crate) struct AddOptions {
    /// What to call it
    pub(crate) name: String,

    /// The host that shall use it
    #[arg(long, value_name = "HOST", default_value = "toolwire", hide_possible_values = true)]
    pub(crate) to: Host,

    /// The URL of a server on the network
    #[arg(value_name = "URL", group = "network", conflicts_with = "command")]
    pub(crate) address: Option<String>,

    /// The URL of a server on the network
    #[arg(long, group = "network", conflicts_with = "command", hide = true)]
    pub(crate) url: Option<String>,

    /// Send a header with every HTTP request (NAME: VALUE)
    #[arg(long, value_name = "HEADER", value_parser = target::header, requires = "network")]
    pub(crate) header: Vec<(String, String)>,

    /// Set a variable for the program (NAME=VALUE)
    #[arg(long, value_name = "VARIABLE", value_parser = target::variable, conflicts_with = "network")]
    pub(crate) env: Vec<(String, String)>,

    /// Replace a server that has this name already
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) consent: Consent,

    /// The program that is the server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Remove a server from the configuration of a host
#[derive(Args, Debug)]
#[command(after_help = REMOVE_HELP)]
pub(crate) struct RemoveOptions {
    /// What it is called
    pub(crate) name: String,

    /// The host that shall not use it any more
    #[arg(long, value_name = "HOST", default_value = "toolwire", hide_possible_values = true)]
    pub(crate) from: Host,

    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Whether a file may be changed.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Consent {
    /// Change the file without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub(crate) yes: bool,

    /// Only show what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What a file is to become.
#[derive(Debug)]
struct Change {
    file: PathBuf,
    /// What is in the file; there may be no file.
    old: Option<file::Text>,
    new: String,
    /// Whose file it is.
    scope: Scope,
}

/// Adds a server.
pub(crate) fn add(options: &AddOptions, terminal: Terminal) -> Result<()> {
    let change = adding(options, &Places::here())?;
    let done = format!("added {} to {}", options.name, options.to);
    carry_out(&change, options.consent, &done, terminal)
}

/// Removes a server.
pub(crate) fn remove(options: &RemoveOptions, terminal: Terminal) -> Result<()> {
    let change = removing(options, &Places::here())?;
    let done = format!("removed {} from {}", options.name, options.from);
    carry_out(&change, options.consent, &done, terminal)
}

fn adding(options: &AddOptions, places: &Places) -> Result<Change> {
    if options.name.trim().is_empty() || options.name.contains(char::is_control) {
        return Err(Failure::new(Code::Usage, "a server needs a name of visible characters"));
    }
    let entry = Entry::new(options)?;
    entry.learn();
    let host = options.to;
    let path = host.own_file(places).ok_or_else(|| no_home(host))?;
    let old = readable(&path)?;
    let text = old.as_ref().map_or("", |old| old.text.as_str());
    learn(&path, text, host.format());
    let new = match host.format() {
        Format::Json => json::with_server(&path, text, host.key(), &options.name, &entry, options.force)?,
        Format::Toml => toml::with_server(&path, text, host.key(), &options.name, &entry, options.force)?,
    };
    let scope = if host == Host::Project { Scope::Project } else { Scope::User };
    Ok(Change { file: path, old, new, scope })
}

fn removing(options: &RemoveOptions, places: &Places) -> Result<Change> {
    let mut broken = None;
    for place in options.from.files(places) {
        match without(&place, &options.name) {
            Ok(Some(change)) => return Ok(change),
            Ok(None) => {}
            Err(failure) => broken = broken.or(Some(failure)),
        }
    }
    // A file that cannot be read may have had it.
    Err(broken.unwrap_or_else(|| {
        let message = format!("{} has no server `{}`", options.from, options.name);
        Failure::new(Code::UnknownServer, message)
            .hint(format!("toolwire list --no-connect --host {}", options.from))
    }))
}

/// The change that removes a server from a file, if it is there.
fn without(place: &Place, name: &str) -> Result<Option<Change>> {
    let Some(old) = readable(&place.file)? else { return Ok(None) };
    let value = syntax::parse(&place.file, &old.text, place.format)?;
    redact::learn_server(&value);
    let has = |keys: &&Vec<String>| {
        let table = keys.iter().try_fold(&value, |table, key| table.get(key));
        table.is_some_and(|table| table.get(name).is_some())
    };
    let Some(keys) = place.tables.iter().find(has) else { return Ok(None) };
    let new = match place.format {
        Format::Json => json::without_server(&place.file, &old.text, keys, name)?,
        Format::Toml => toml::without_server(&place.file, &old.text, keys, name)?,
    };
    Ok(Some(Change { file: place.file.clone(), old: Some(old), new, scope: place.scope }))
}

/// What is around a change is shown with it, and may be somebody's token.
fn learn(path: &Path, text: &str, format: Format) {
    if let Ok(value) = syntax::parse(path, text, format) {
        redact::learn_server(&value);
    }
}

/// A file that can be written again as it was.
fn readable(path: &Path) -> Result<Option<file::Text>> {
    let text = file::read(path)?;
    if text.as_ref().is_some_and(|text| text.encoding == file::Encoding::Utf16) {
        return Err(file::broken(path, "is UTF-16 text, which is not edited here; save it as UTF-8"));
    }
    Ok(text)
}

fn no_home(host: Host) -> Failure {
    Failure::new(Code::Io, format!("the settings of {host} are in the home directory, and there is none"))
        .hint("set HOME, or use --to project")
}

/// Shows the change, asks, and makes it.
fn carry_out(change: &Change, consent: Consent, done: &str, terminal: Terminal) -> Result<()> {
    if !consent.yes && !consent.dry_run && !terminal.can_ask() {
        return Err(Failure::new(
            Code::Usage,
            format!("{} is not changed: add --yes to confirm", change.file.display()),
        )
        .hint("--dry-run shows what would change"));
    }
    let diff = change.diff();
    if !terminal.json {
        terminal.print(format!("{}\n{}", change.file.display().bold(), diff))?;
    }
    if !consent.dry_run && !consent.yes && !agreed()? {
        return Err(Failure::new(Code::Other, "nothing was changed"));
    }
    let backup = if consent.dry_run { None } else { write::replace(change)? };
    if !consent.dry_run && change.scope == Scope::Project {
        let (old, new) = change.bytes();
        // The file is changed, whether that can be remembered or not.
        if let Err(failure) = trust::follow(&Places::here(), &change.file, old.as_deref(), &new) {
            terminal.warn(failure);
        }
    }
    if terminal.json {
        let diff = anstream::adapter::strip_str(&diff).to_string();
        return terminal.print_json(&json!({
            "file": change.file, "written": !consent.dry_run, "backup": backup, "diff": diff,
        }));
    }
    if consent.dry_run {
        terminal.note("nothing was changed (--dry-run)");
    } else {
        terminal.note(format!("{} {done}", "✓".green()));
        if let Some(backup) = backup {
            terminal.note(format!("  the old file is kept as {}", backup.display()).dimmed());
        }
    }
    Ok(())
}

fn agreed() -> Result<bool> {
    match inquire::Confirm::new("Change the file?").with_default(true).prompt() {
        Ok(agreed) => Ok(agreed),
        Err(inquire::InquireError::OperationCanceled | inquire::InquireError::OperationInterrupted) => {
            Ok(false)
        }
        Err(error) => Err(Failure::new(Code::Io, format!("the answer could not be read: {error}"))),
    }
}

/// A line as it can be shown. Some programs write all of their settings in one.
fn shown(line: &str) -> String {
    let line = printable(line.trim_end_matches(['\r', '\n']));
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

impl Change {
    /// What was and will be in the file.
    fn bytes(&self) -> (Option<Vec<u8>>, Vec<u8>) {
        let mark = self.old.as_ref().is_some_and(|old| old.encoding == file::Encoding::Utf8WithMark);
        let encoded =
            |text: &str| if mark { format!("\u{feff}{text}") } else { text.to_owned() }.into_bytes();
        (self.old.as_ref().map(|old| encoded(&old.text)), encoded(&self.new))
    }

    /// The lines that change, and those around them.
    fn diff(&self) -> String {
        let old = self.old.as_ref().map_or("", |old| old.text.as_str());
        let diff = TextDiff::from_lines(old, &self.new);
        let mut lines = Vec::new();
        for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
            if index > 0 {
                lines.push("  …".dimmed().to_string());
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let line = shown(change.value());
                lines.push(match change.tag() {
                    ChangeTag::Delete => format!("- {line}").red().to_string(),
                    ChangeTag::Insert => format!("+ {line}").green().to_string(),
                    ChangeTag::Equal => format!("  {line}"),
                });
            }
        }
        lines.join("\n")
    }
}
