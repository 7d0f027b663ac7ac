//! The `toolwire` program.

mod args;
mod arguments;
mod ask;
mod commands;
mod config;
mod demo_server;
mod depth;
mod failure;
mod pages;
mod private_file;
mod redact;
mod render;
mod schema;
mod session;
mod target;
mod terminal;
mod trace;
mod trust;
mod watchdog;

use std::process::ExitCode;

use clap::Parser;
use failure::{Code, Failure};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == watchdog::NAME) {
        return watchdog::run();
    }
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
    Failure::new(Code::Usage, summary(error)).hint("toolwire --help").exit(true)
}

/// What is wrong with a command line, in one line: the first paragraph of what people are told.
fn summary(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    paragraph.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}
