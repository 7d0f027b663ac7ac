//! The project's own commands: `cargo xtask test` runs the checks, for instance.
//!
//! It adapts to no machine: what differs between machines comes in through the environment and is handed on to the checks
//! untouched. `machine` refuses those that cannot make the checks.

mod api;
mod authorization;
mod bench;
mod bless;
mod browser;
mod changed;
mod command;
mod conformance;
mod debian;
mod deny;
mod documents;
mod edges;
mod eras;
mod features;
mod fuzz;
mod install;
mod interop;
mod invariants;
mod json_schema;
mod licences;
mod machine;
mod mutants;
mod output;
mod platforms;
mod process;
mod programs;
mod registry;
mod rustdoc;
mod schemas;
mod screens;
mod services;
mod setup;
mod simulate;
mod soak;
mod sources;
mod steps;
mod stores;
mod suites;
mod tools;
mod workspace;

use std::process::ExitCode;

use changed::Change;
use command::{Request, USAGE, parse};
use output::say;
use steps::Selection;

fn main() -> ExitCode {
    if let Some(ended) = rustdoc::stand_in() {
        return ended;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let answer = parse(&arguments).and_then(|request| match request {
        Request::Help => {
            say!("{USAGE}");
            Ok(true)
        }
        Request::List => {
            steps::list();
            Ok(true)
        }
        Request::Api => api::write(),
        Request::Bench => bench::run(),
        Request::Bless => bless::run(),
        Request::Check => Change::read().and_then(|change| steps::run(&Selection::Affected(change))),
        Request::Fuzz(request) => fuzz::run(&request),
        Request::Mutants { areas, fresh } => mutants::run(&areas, fresh),
        Request::Screens => screens::write(),
        Request::Setup => setup::run(),
        Request::Simulate(seeds) => simulate::run(&seeds),
        Request::Soak { minutes } => soak::run(minutes),
        Request::Test(selection) => steps::run(&selection),
    });
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "a command line program talks to its user")]
fn complain(error: &str) {
    eprintln!("{error}\n\ncargo xtask --help says what there is");
}
