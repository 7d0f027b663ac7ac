//! The `toolwire` program.

mod args;
mod arguments;
mod ask;
mod auth;
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
mod tickets;
mod tools;
mod trace;
mod trust;
mod watchdog;

use std::process::ExitCode;

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use failure::{Code, Failure};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == watchdog::NAME) {
        return watchdog::run();
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            advise(&mut error);
            return refuse(&error);
        }
    };
    let json = cli.json;
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(json),
    }
}

/// Replaces the tip on an unknown option, which would make the option the program to be started: behind `--` there is a
/// command here.
fn advise(error: &mut clap::Error) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    error.remove(ContextKind::Suggested);
    let takes_arguments = std::env::args_os().skip(1).any(|word| word == "call" || word == "prompt");
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && takes_arguments
    {
        let name = option.trim_start_matches('-').to_owned();
        let tip = format!("an argument of what is called has no dashes: {name}=VALUE");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Help and versions are data; a command line that is not valid is a failure, for scripts in their way.
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
