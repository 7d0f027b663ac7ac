//! The stores that need a server, against real ones.
//!
//! The tests are targets of their own that the ordinary run leaves out, because without a server they could only fail
//! or say nothing; here each gets a server of its own. `services` says where those come from.

use std::time::Duration;

use crate::output::say;
use crate::process::Program;
use crate::programs::SHARED;
use crate::services::{Postgres, Redis};
use crate::steps::{Outcome, Stop};
use crate::workspace::root;

/// Enough for a first build; the tests take some minutes.
const LIMIT: Duration = Duration::from_mins(45);

/// A target, and the variable in which it finds its server.
type Target = (&'static str, &'static str);

const REDIS: Target = ("redis", "TOOLWIRE_TEST_REDIS");
/// Needs no server.
const SQLITE: &str = "contract";
const POSTGRES: Target = ("postgres", "TOOLWIRE_TEST_POSTGRES");

/// The options of cargo that select the tests of stores, which `--all-targets` leaves out.
pub(crate) const TARGETS: [&str; 6] = ["--test", REDIS.0, "--test", POSTGRES.0, "--test", SQLITE];

/// Runs the contract on all of them.
pub(crate) fn run() -> Outcome {
    cargo("test").args(["--test", SQLITE, "--no-fail-fast"]).run()?;
    let mut skipped = Vec::new();
    for store in [redis, postgres, valkey] {
        match store() {
            Err(Stop::Skipped(why)) => skipped.push(why),
            outcome => outcome?,
        }
    }
    if skipped.is_empty() { Ok(()) } else { Err(Stop::skipped(skipped.join("\n"))) }
}

fn redis() -> Outcome {
    let server = Redis::start()?;
    test(REDIS, server.url(), &server.version()?)
}

fn postgres() -> Outcome {
    let server = Postgres::start()?;
    test(POSTGRES, server.url(), &server.version()?)
}

/// No check of ours is lost where it is missing: it is tried only where somebody has it.
fn valkey() -> Outcome {
    let Some(server) = Redis::start_valkey() else { return Ok(()) };
    let server = server?;
    test(REDIS, server.url(), &server.version()?)
}

fn test((target, variable): Target, url: &str, version: &str) -> Outcome {
    cargo("test").args(["--test", target, "--no-fail-fast"]).env(variable, url).run()?;
    say!("ok    {version}");
    Ok(())
}

fn cargo(command: &str) -> Program {
    Program::cargo(&root(), LIMIT).args([command]).args(SHARED)
}
