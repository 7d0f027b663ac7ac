//! The `toolwire` program.

mod args;
mod commands;
mod demo_server;
mod failure;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    failure::exit_code(commands::run(args::Cli::parse().command))
}
