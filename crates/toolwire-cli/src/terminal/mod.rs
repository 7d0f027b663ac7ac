//! What people and scripts see: data on standard output, everything else on standard error.

mod closest;
mod duration;
mod fit;
mod foreign;
mod moment;
mod outlet;
mod table;
mod wrap;

use std::io::{self, IsTerminal, Write};

use owo_colors::OwoColorize;
use serde::Serialize;

use crate::failure::{Explain, Result};

pub(crate) use closest::closest;
pub(crate) use duration::{duration, seconds};
pub(crate) use fit::fit;
pub(crate) use foreign::{escape, is_unseen, printable, printable_line};
pub(crate) use moment::Moment;
use outlet::styled;
pub(crate) use outlet::{json, plain};
pub(crate) use table::{MAX_COLUMN, Table, width};
pub(crate) use wrap::{folded, wrapped};

/// How this run talks: set once from the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Data as JSON.
    pub(crate) json: bool,
    /// How often `-v` was given.
    pub(crate) verbose: u8,
}

#[expect(clippy::unused_self, reason = "whoever speaks does so through the terminal of the run")]
impl Terminal {
    /// Whether somebody is there who can be asked: both the keyboard and the screen are a terminal's.
    pub(crate) fn can_ask(self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether moving lines on standard error make sense.
    pub(crate) fn is_live(self) -> bool {
        !self.json && io::stderr().is_terminal()
    }

    /// Data for people, as it is.
    pub(crate) fn print(self, text: impl std::fmt::Display) -> Result<()> {
        let text = text.to_string();
        let text = styled(&text);
        let mut out = anstream::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).context("standard output")
    }

    /// Data for scripts: one JSON value per line.
    pub(crate) fn print_json(self, value: &impl Serialize) -> Result<()> {
        let text = json(&serde_json::to_string(value).map_err(io::Error::from)?);
        let mut out = anstream::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).context("standard output")
    }

    /// What to do with the lines that servers write to their standard error, if anything.
    pub(crate) const fn passes_on(self) -> Option<fn(&str)> {
        match (self.verbose, self.json) {
            (0, _) => None,
            (_, false) => Some(server_said),
            (_, true) => Some(server_said_json),
        }
    }

    /// A remark on standard error.
    pub(crate) fn note(self, text: impl std::fmt::Display) {
        let _ = writeln!(anstream::stderr(), "{}", styled(&text.to_string()));
    }

    /// A remark on standard error for scripts.
    pub(crate) fn note_json(self, value: &serde_json::Value) {
        let _ = writeln!(anstream::stderr(), "{}", json(&value.to_string()));
    }

    /// A warning on standard error.
    pub(crate) fn warn(self, text: impl std::fmt::Display) {
        warn(text);
    }
}

/// Tells something that went wrong, and does not end the command.
pub(crate) fn warn(text: impl std::fmt::Display) {
    let text = text.to_string();
    let text = styled(&text);
    let _ = writeln!(anstream::stderr(), "{} {text}", "warning:".yellow().bold());
}

/// Passes on a line that a server wrote to its standard error.
pub(crate) fn server_said(line: &str) {
    let line = plain(line);
    let _ = writeln!(anstream::stderr(), "{} {}", "server:".dimmed(), line.dimmed());
}

/// The same for scripts, which get JSON on standard error as well.
pub(crate) fn server_said_json(line: &str) {
    let line = serde_json::json!({ "stderr": line }).to_string();
    let _ = writeln!(anstream::stderr(), "{}", json(&line));
}
