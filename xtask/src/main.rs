//! The project's own commands: `cargo xtask test` installs what the tests need and runs every check.
//!
//! It knows nothing about the machine that runs it: whatever differs between machines comes in through the
//! environment and is handed on to the checks untouched.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program talks to its user")]

mod bench;
mod browser;
mod conformance;
mod debian;
mod documents;
mod edges;
mod interop;
mod licences;
mod process;
mod registry;
mod screens;
mod simulate;
mod steps;
mod terminal;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask test [--list] [--only STEP]...
       cargo xtask bench
       cargo xtask conformance
       cargo xtask screens
       cargo xtask simulate [--seeds N] [--from SEED]

test runs every check:
  --list        name the steps and exit
  --only STEP   run just this step; may be repeated
bench counts the instructions of the hot path and takes the time.
conformance runs the official suite against our server and our client.
screens writes what the program says into the documents that show it.
simulate runs more seeds of the simulation than the checks do.";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
enum Request {
    Help,
    List,
    Bench,
    Test { only: Vec<String> },
    Screens,
    Simulate(simulate::Seeds),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let answer = parse(&arguments).and_then(|request| match request {
        Request::Help => {
            println!("{USAGE}");
            Ok(true)
        }
        Request::List => {
            steps::list();
            Ok(true)
        }
        Request::Bench => bench::run(),
        Request::Test { only } => steps::run(&only),
        Request::Screens => screens::write(),
        Request::Simulate(seeds) => simulate::run(&seeds),
    });
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    if let [first, seeds @ ..] = arguments
        && first == "simulate"
    {
        return simulate::parse(seeds).map(Request::Simulate);
    }
    let mut arguments = arguments.iter().map(String::as_str);
    match arguments.next() {
        Some("test") => {}
        Some(alone @ ("bench" | "conformance")) => {
            return match arguments.next() {
                None if alone == "bench" => Ok(Request::Bench),
                None => Ok(Request::Test { only: vec![alone.to_owned()] }),
                Some("--help" | "-h") => Ok(Request::Help),
                Some(other) => Err(format!("unknown option `{other}`")),
            };
        }
        Some("screens") => {
            return match arguments.next() {
                None => Ok(Request::Screens),
                Some("--help" | "-h") => Ok(Request::Help),
                Some(other) => Err(format!("unknown option `{other}`")),
            };
        }
        None | Some("help" | "--help" | "-h") => return Ok(Request::Help),
        Some(other) => return Err(format!("unknown command `{other}`")),
    }
    let mut only = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument {
            "--help" | "-h" => return Ok(Request::Help),
            "--list" => return Ok(Request::List),
            "--only" => only.push(arguments.next().ok_or("--only needs the name of a step")?.to_owned()),
            other => return Err(format!("unknown option `{other}`")),
        }
    }
    Ok(Request::Test { only })
}

#[cfg(test)]
mod tests {
    use super::{Request, parse};

    fn parsed(line: &str) -> Result<Request, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn the_command_line_is_understood() {
        assert_eq!(parsed(""), Ok(Request::Help));
        assert_eq!(parsed("test"), Ok(Request::Test { only: vec![] }));
        assert_eq!(parsed("test --list"), Ok(Request::List));
        assert_eq!(parsed("bench"), Ok(Request::Bench));
        let only = vec!["conformance".to_owned()];
        assert_eq!(parsed("conformance"), Ok(Request::Test { only }));
        let only = vec!["lint".to_owned(), "demo".to_owned()];
        assert_eq!(parsed("test --only lint --only demo"), Ok(Request::Test { only }));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parsed("tset"), Err("unknown command `tset`".to_owned()));
        assert_eq!(parsed("test --fast"), Err("unknown option `--fast`".to_owned()));
        assert_eq!(parsed("bench --fast"), Err("unknown option `--fast`".to_owned()));
        assert_eq!(parsed("conformance --fast"), Err("unknown option `--fast`".to_owned()));
        assert_eq!(parsed("test --only"), Err("--only needs the name of a step".to_owned()));
    }
}
