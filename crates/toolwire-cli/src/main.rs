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
mod waits;
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
    // An option that is hardly alike is no help.
    if let (Some(ContextValue::String(given)), Some(ContextValue::String(alike))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::SuggestedArg))
        && terminal::closest(given.trim_start_matches('-'), [alike.trim_start_matches('-')]).is_empty()
    {
        error.remove(ContextKind::SuggestedArg);
    }
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
    Failure::new(Code::Usage, summary(error)).hint(tip(error)).exit(true)
}

/// What may have been meant, or where the help is.
fn tip(error: &clap::Error) -> String {
    let alike = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let meant = alike.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        ContextValue::Strings(words) if !words.is_empty() => Some(words.join(" or ")),
        _ => None,
    });
    meant.map_or_else(|| "toolwire --help".to_owned(), |meant| format!("did you mean {meant}?"))
}

/// What is wrong with a command line, in one line: the first paragraph of what people are told.
fn summary(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    paragraph.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}
