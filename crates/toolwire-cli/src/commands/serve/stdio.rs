//! Serving the client that has started this program.

use std::io::{self, IsTerminal, Write};

use owo_colors::OwoColorize;
use toolwire::{Server, transport::Stdio};

use crate::failure::{Code, Explain, Failure, Result};

/// Standard input and output as a transport, with a word for a person who finds nobody there.
pub(crate) fn transport() -> Result<Stdio> {
    if io::stdin().is_terminal() {
        let text = "this serves MCP hosts; type one JSON-RPC message per line, Ctrl-D leaves";
        writeln!(anstream::stderr(), "{} {text}", "hint:".cyan().bold())?;
    }
    toolwire::stdio()
        .context("standard input and output cannot be used")
        .hint("start it from an MCP host, or give it pipes: toolwire serve --stdio < requests > answers")
}

/// Serves until standard input ends.
pub(super) async fn serve(server: &Server) -> Result<()> {
    let ended = server.serve(transport()?).await;
    ended.map_err(|error| Failure::new(Code::Other, error.to_string()))
}
