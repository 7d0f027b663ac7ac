//! The `toolwire` program.

mod args;
mod arguments;
mod ask;
mod commands;
mod config;
mod demo_server;
mod failure;
mod pages;
mod render;
mod schema;
mod session;
mod target;
mod terminal;
mod trace;

use std::process::ExitCode;

use clap::Parser;
use failure::{Code, Failure};

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let json = cli.json;
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(json),
    }
}

/// Help and versions are data; a command line that makes no sense is a failure, for scripts in their way.
fn refuse(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if !error.use_stderr() || !json {
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(Code::Usage.exit()) } else { ExitCode::SUCCESS };
    }
    let text = error.render().to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    Failure::new(Code::Usage, message).hint("toolwire --help").exit(true)
}
