//! Measuring the hot path: instructions, which are held to budgets, and time, which is only shown.
//!
//! Instructions are counted by callgrind, so a busy machine does not change them. Time is for people: it says what
//! an instruction costs here and now, and nothing is judged by it.

mod budgets;
mod gungraun;
mod program;

pub(crate) use gungraun::VALGRIND;

use std::time::Duration;

use crate::output::say;
use crate::process::Program;
use crate::steps::{Outcome, Stop, none};
use crate::workspace::root;
use budgets::Budgets;

/// Generous even for a first build of the benches on a slow machine.
const LIMIT: Duration = Duration::from_mins(45);

/// The program is named along with the benches because its features then count here as well, and everything that a
/// release has built is found built. The programs that are measured from outside are left out.
const BENCH: &[&str] =
    &["bench", "--quiet", "-p", "toolwire-benchmarks", "-p", "toolwire-cli", "--no-default-features"];

/// Counts instructions and fails if a budget is exceeded; the step `budgets` of `cargo xtask test --all`.
pub(crate) fn check() -> Outcome {
    if !cfg!(target_os = "linux") {
        return Err(Stop::skipped("instructions are counted on Linux only: run this there"));
    }
    let budgets = Budgets::read(&root())?;
    let counts = gungraun::count(&root())?;
    say!("{}", budgets.table(&counts, &[]));
    for warning in budgets.warnings(&counts) {
        say!("{warning}");
    }
    none(&budgets.violations(&counts))
}

/// Installs the runner of gungraun.
pub(crate) fn prepare() -> Result<(), String> {
    VALGRIND.require().map_err(Stop::into_reason)?;
    gungraun::runner(&root()).map(drop)
}

/// Counts instructions, takes the time, and prints both in one table.
pub(crate) fn run() -> Result<bool, String> {
    let budgets = Budgets::read(&root())?;
    let counts = if cfg!(target_os = "linux") {
        gungraun::count(&root()).map_err(Stop::into_reason)?
    } else {
        Vec::new()
    };
    let times = times()?;
    say!("\n{}", budgets.table(&counts, &times));
    say!("\n{}", program::table(&root())?);
    let violations = if counts.is_empty() { Vec::new() } else { budgets.violations(&counts) };
    for violation in &violations {
        say!("{violation}");
    }
    Ok(violations.is_empty())
}

/// A name and what was measured for it.
type Measured = (String, u64);

/// Nanoseconds per call, by criterion.
fn times() -> Result<Vec<Measured>, String> {
    // Its own way to be quick leaves the names out.
    let output = Program::cargo(&root(), LIMIT)
        .args(BENCH)
        .args([
            "--bench",
            "time",
            "--",
            "--warm-up-time",
            "0.5",
            "--measurement-time",
            "1",
            "--noplot",
            "--output-format",
            "bencher",
        ])
        .successful_output()?;
    let times: Vec<Measured> = output.lines().filter_map(time).collect();
    if times.is_empty() {
        return Err(format!("no times can be read in what criterion printed:\n{output}"));
    }
    Ok(times)
}

/// Reads `test NAME ... bench:  1,234 ns/iter (+/- 5)`.
fn time(line: &str) -> Option<Measured> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... bench:")?;
    let whole = rest.split_whitespace().next()?.split('.').next()?.replace(',', "");
    Some((name.trim().replace('/', " "), whole.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn the_lines_of_criterion_are_understood() {
        let line = "test pipe/echo_modern ... bench:       4,321 ns/iter (+/- 12)";
        assert_eq!(time(line), Some(("pipe echo_modern".to_owned(), 4321)));
        assert_eq!(time("running 3 tests"), None);
    }
}
