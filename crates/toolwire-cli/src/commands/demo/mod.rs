//! `toolwire demo`: a tour through the demonstration server, or the server itself.

mod closing;
mod page;
mod tap;
mod tour;

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, Result};
use owo_colors::OwoColorize;
use tokio::runtime::Runtime;

use crate::{args::Demo, demo_server, failure::Hint};
use page::Page;

/// Runs the command.
pub(crate) fn run(options: &Demo) -> Result<()> {
    let runtime = Runtime::new().context("the runtime could not be started")?;
    if options.stdio {
        return runtime.block_on(serve());
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
        Err(error) if error.is::<io::Error>() => Err(error.context("the tour cannot be printed")),
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
async fn serve() -> Result<()> {
    if io::stdin().is_terminal() {
        let text = "this serves MCP hosts; type one JSON-RPC message per line, Ctrl-D leaves";
        writeln!(anstream::stderr(), "{} {text}", "hint:".cyan().bold())?;
    }
    let transport = toolwire::stdio()
        .context("standard input and output cannot be used")
        .hint("start it from an MCP host, or give it pipes: toolwire demo --stdio < requests > answers")?;
    demo_server::server()?.serve(transport).await?;
    Ok(())
}
