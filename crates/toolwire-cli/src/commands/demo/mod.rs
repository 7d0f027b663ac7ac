//! `toolwire demo`: a tour through the demonstration server, or the server itself.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use owo_colors::OwoColorize;

use crate::{args::Demo, demo_server, failure::Hint};

/// Runs the command.
pub(crate) fn run(options: &Demo) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime could not be started")?;
    runtime.block_on(serve_stdio())
}

/// Serves until standard input ends.
async fn serve_stdio() -> Result<()> {
    if io::stdin().is_terminal() {
        let mut advice = anstream::stderr();
        writeln!(
            advice,
            "{} this is a server for MCP hosts; type JSON-RPC messages, one per line, or Ctrl-D to leave",
            "hint:".cyan().bold()
        )?;
    }
    let transport = toolwire::stdio()
        .context("standard input and output cannot be used")
        .hint("start it from an MCP host, or give it pipes: toolwire demo --stdio < requests > answers")?;
    demo_server::server()?.serve(transport).await?;
    Ok(())
}
