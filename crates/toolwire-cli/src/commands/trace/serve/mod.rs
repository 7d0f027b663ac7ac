//! `toolwire trace serve`: answer a client from a trace, without the server.

mod recording;
mod session;

use std::path::PathBuf;

use clap::Args;

use crate::{
    commands::serve,
    failure::{Code, Failure, Result},
    terminal::Terminal,
};
use recording::Recording;

const AFTER_HELP: &str = "\
Requests are matched by their method and parameters, and those that were sent several
times are answered in the order of the trace. What the server asked back or told
meanwhile is sent as well.

Examples:
  toolwire tools -- toolwire trace serve talk.jsonl";

/// Answer a client from a trace, over standard input and output
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Options {
    /// The trace
    file: PathBuf,

    /// Serve on standard input and output, which is the default
    #[arg(long)]
    stdio: bool,
}

/// Runs the command.
pub(super) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let recorded = super::read(&options.file, terminal)?;
    let recording = Recording::of(recorded);
    if recording.is_empty() {
        let text = format!("{} has no requests that could be answered", options.file.display());
        return Err(Failure::new(Code::Usage, text));
    }
    session::serve(serve::transport()?, recording).await;
    Ok(())
}
