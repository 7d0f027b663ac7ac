//! `toolwire demo`: a tour through the demonstration server, or the server itself.

mod closing;
mod page;
mod tap;
mod tour;

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use owo_colors::OwoColorize;
use tokio::runtime::Runtime;

use crate::{
    commands::serve,
    demo_server,
    failure::{Code, Explain, Failure, Result},
    terminal::Terminal,
};
use page::Page;

/// Lines are broken by hand, because clap does it only with a feature that asks the terminal for its width.
const AFTER_HELP: &str = "\
Runs the built-in demonstration server in this process and calls it with Toolwire's
own client, as hosts have done until now (2025-11-25) and as the newest do (2026-07-28).
It needs nothing else: no network, no files, no configuration.

Examples:
  toolwire demo --once
  toolwire tools -- toolwire demo --stdio";

/// Take a tour: one server, and a client of each era of the protocol
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Leave after the tour, without offering another round
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) once: bool,

    /// Serve the demonstration server on standard input and output, for any MCP client
    #[arg(long)]
    pub(crate) stdio: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let runtime = Runtime::new().context("the runtime could not be started")?;
    if options.stdio {
        return runtime.block_on(serve_on_stdio());
    }
    if terminal.json {
        return Err(Failure::new(Code::Usage, "the tour is for people and has no JSON")
            .hint("toolwire tools --json -- toolwire demo --stdio is for scripts"));
    }
    let mut page = Page::new(anstream::stdout());
    show(&runtime, &mut page)?;
    closing::show(&mut page)?;
    // Somebody must be there to ask for more; a script gets one round.
    if !options.once && io::stdin().is_terminal() && io::stdout().is_terminal() {
        while another_round()? {
            page.gap()?;
            show(&runtime, &mut page)?;
        }
    }
    Ok(())
}

fn show<W: Write>(runtime: &Runtime, page: &mut Page<W>) -> Result<()> {
    match runtime.block_on(tour::walk(page)) {
        Err(failure) if failure.code() == Code::Io => Err(failure.context("the tour cannot be printed")),
        outcome => {
            outcome.hint("the tour needs nothing but this program; please report this with its output")
        }
    }
}

/// Asks whether to go round again: with everything warm, the times are other ones.
fn another_round() -> Result<bool> {
    let mut out = anstream::stdout().lock();
    write!(out, "\n{}", "Enter walks once more, q or Ctrl-C leaves: ".dimmed())?;
    out.flush()?;
    drop(out);
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer).context("the answer could not be read")?;
    if read == 0 {
        // Ctrl-D leaves the cursor behind the question.
        writeln!(anstream::stdout())?;
    }
    Ok(read > 0 && answer.trim().is_empty())
}

/// Serves until standard input ends.
async fn serve_on_stdio() -> Result<()> {
    let transport = serve::transport()?;
    let server = demo_server::server().map_err(|error| Failure::new(Code::Other, error.to_string()))?;
    server.serve(transport).await.map_err(|error| Failure::new(Code::Other, error.to_string()))?;
    Ok(())
}
