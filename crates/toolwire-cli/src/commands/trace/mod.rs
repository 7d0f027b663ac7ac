//! `toolwire trace`: show, replay or serve a recorded conversation.

mod replay;
mod serve;
mod show;
mod summary;

use std::path::Path;

use clap::{Args, Subcommand};

use crate::{
    failure::Result,
    terminal::Terminal,
    trace::{Conversation, Header, Problem, Trace},
};

/// Show, replay or serve a recorded conversation
#[derive(Args, Debug)]
#[command(after_help = "Record one with --trace FILE: toolwire tools --trace talk.jsonl -- COMMAND")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Options),
    Replay(Box<replay::Options>),
    Serve(serve::Options),
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    match &options.action {
        Action::Show(options) => show::run(options, terminal),
        Action::Replay(options) => replay::run(options, terminal).await,
        Action::Serve(options) => serve::run(options, terminal).await,
    }
}

/// A trace as the commands need it.
struct Recorded {
    header: Header,
    problems: Vec<Problem>,
    conversation: Conversation,
}

/// Reads a trace, and says which lines of it cannot be used.
fn read(file: &Path, terminal: Terminal) -> Result<Recorded> {
    let Trace { header, events, problems } = Trace::read(file)?;
    if !terminal.json {
        for problem in &problems {
            terminal.warn(format_args!("{}:{}: {}", file.display(), problem.line, problem.why));
        }
    }
    Ok(Recorded { header, problems, conversation: Conversation::of(events) })
}
