//! `toolwire trace show`: a trace as a conversation.

mod document;
mod lines;

use std::path::PathBuf;

use clap::Args;
use owo_colors::OwoColorize;

use super::summary::one_line;
use crate::{failure::Result, terminal::Terminal};

/// Show a trace as a conversation
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  toolwire trace show talk.jsonl\n  toolwire trace show --long talk.jsonl"
)]
pub(super) struct Options {
    /// The trace
    file: PathBuf,

    /// Show whole messages
    #[arg(short, long)]
    long: bool,
}

/// Runs the command.
pub(super) fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let recorded = super::read(&options.file, terminal)?;
    if terminal.json {
        return terminal.print_json(&document::of(&recorded));
    }
    let header = &recorded.header;
    let (server, target) = (one_line(&header.server), one_line(&header.target));
    let when = header.started.replace('T', " ").replace('Z', " UTC");
    terminal.print(format_args!(
        "{} {}",
        server.bold(),
        format!("({})", one_line(&header.transport)).dimmed()
    ))?;
    if target != server {
        terminal.print(target.dimmed())?;
    }
    let by = format!("recorded {} by {}", one_line(&when), one_line(&header.program));
    terminal.print(format_args!("{}\n", by.dimmed()))?;
    if recorded.conversation.items.is_empty() {
        return terminal.print("Nothing was said.");
    }
    for line in lines::of(&recorded, options.long) {
        terminal.print(line)?;
    }
    Ok(())
}
