//! Licences, bans and sources of the crates in use, by cargo-deny and `deny.toml`; advisories where their database
//! can be had.

use std::path::Path;
use std::time::Duration;

use crate::process::Program;
use crate::steps::{Outcome, Stop};
use crate::tools;
use crate::workspace::root;

/// Reading the index and the advisories may be slow.
const LIMIT: Duration = Duration::from_mins(10);

/// Where the advisories are, as in `deny.toml`.
const DATABASE: &str = "https://github.com/rustsec/advisory-db";

/// Installs cargo-deny.
pub(crate) fn prepare() -> Result<(), String> {
    tools::DENY.install().map(drop)
}

/// Checks what needs no network beside the crates themselves: licences by their texts, bans and sources.
pub(crate) fn check() -> Outcome {
    deny(&["check", "licenses", "bans", "sources"])?.run().map_err(Stop::from)
}

/// Checks for known vulnerabilities and yanked crates.
pub(crate) fn advisories() -> Outcome {
    let reachable = Program::new("git", Duration::from_mins(1))
        .args(["ls-remote", "--exit-code", DATABASE, "HEAD"])
        .env("GIT_TERMINAL_PROMPT", "0")
        .output();
    if !reachable.is_ok_and(|(status, _)| status.success()) {
        return Err(Stop::skipped(format!(
            "{DATABASE} cannot be reached: run `cargo xtask test --only advisories` where it can"
        )));
    }
    deny(&["check", "advisories"])?.run().map_err(Stop::from)
}

fn deny(arguments: &[&str]) -> Result<Program, Stop> {
    let program = tools::DENY.install().map_err(Stop::skipped)?;
    let program = Program::new(program, LIMIT).directory(Path::new(&root()));
    // Duplicates and unused entries are warnings, and many; only what fails is told.
    Ok(program.args(["--log-level", "error"]).args(arguments))
}
