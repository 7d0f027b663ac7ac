//! What can be typed: the definitions of all commands and their options.
//!
//! Only definitions: what the commands do is in [`commands`](crate::commands).

use clap::{Parser, Subcommand};

/// Toolwire: the Model Context Protocol, in every revision.
#[derive(Debug, Parser)]
#[command(name = "toolwire", version, about, arg_required_else_help = true, max_term_width = 90)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
}

/// Take a tour: a server and a client, in both eras of the protocol
///
/// Runs the built-in demonstration server in this process and walks through it with Toolwire's own client, once
/// as hosts have done until now (2025-11-25) and once as the newest do (2026-07-28). Needs nothing else: no
/// network, no files, no configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Leave after the tour, without offering another round
    ///
    /// This is what happens anyway when standard input or output is not a terminal.
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) once: bool,

    /// Serve the demonstration server on standard input and output, for any MCP client
    ///
    /// Ends when standard input does.
    #[arg(long)]
    pub(crate) stdio: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
