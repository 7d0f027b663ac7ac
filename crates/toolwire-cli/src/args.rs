//! What can be typed: the definitions of all commands and their options.
//!
//! Only definitions: what the commands do is in [`commands`](crate::commands).

use clap::{Parser, Subcommand};

/// Toolwire: the Model Context Protocol, in every revision
#[derive(Debug, Parser)]
#[command(name = "toolwire", version, arg_required_else_help = true)]
#[command(after_help = "New here? Take the tour: toolwire demo")]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Lines are broken by hand, because clap does it only with a feature that asks the terminal for its width.
const DEMO: &str = "\
Take a tour: one server, and a client of each era of the protocol

Runs the built-in demonstration server in this process and calls it with Toolwire's
own client, as hosts have done until now (2025-11-25) and as the newest do (2026-07-28).
It needs nothing else: no network, no files, no configuration.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
}

/// Take a tour: one server, and a client of each era of the protocol
#[derive(Debug, clap::Args)]
#[command(long_about = DEMO)]
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
