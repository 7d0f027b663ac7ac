//! The steps of `cargo xtask test`, in the order they run: what fails fast comes first.

use std::time::{Duration, Instant};

use crate::process::Program;
use crate::workspace::{Workspace, root};
use crate::{
    bench, browser, conformance, documents, edges, fuzz, interop, licences, registry, screens, terminal,
};

/// Generous even for a first build on a slow machine; only a program that hangs ever meets it.
const LIMIT: Duration = Duration::from_mins(45);

/// The tour takes seconds; the rest is for building it.
const DEMO_LIMIT: Duration = Duration::from_mins(20);

/// How large the released program may be.
const MAX_PROGRAM_BYTES: u64 = 20_000_000;

/// One step: a name for `--only`, a line for people, and the work.
pub(crate) struct Step {
    name: &'static str,
    about: &'static str,
    work: fn() -> Result<(), String>,
}

const STEPS: &[Step] = &[
    Step { name: "format", about: "the code is formatted", work: format },
    Step { name: "documents", about: "documents show only what is compiled or run", work: documents },
    Step {
        name: "dependencies",
        about: "crates depend only on what they may, under licences we accept",
        work: dependencies,
    },
    Step { name: "lint", about: "clippy, warnings are errors", work: lint },
    Step { name: "features", about: "every feature builds alone", work: features },
    Step { name: "test", about: "unit, integration and macro tests", work: test },
    Step { name: "doctest", about: "examples in documentation and README", work: doctest },
    Step { name: "rustdoc", about: "documentation builds, warnings are errors", work: rustdoc },
    Step { name: "demo", about: "the tour ends well", work: demo },
    Step {
        name: "budgets",
        about: "the hot path takes no more instructions than it may",
        work: bench::check,
    },
    Step { name: "fuzz", about: "every fuzz target holds for some seconds", work: fuzz::check },
    Step { name: "install", about: "the program installs, and is small", work: install },
    Step { name: "screens", about: "documents show what the program says", work: screens::check },
    Step { name: "terminal", about: "questions are answered by keyboard in a terminal", work: terminal::run },
    Step {
        name: "interop",
        about: "other makers' SDKs, both directions, both eras, every transport",
        work: interop::run,
    },
    Step { name: "registry", about: "the program on servers from npm and PyPI", work: registry::run },
    Step { name: "browser", about: "pages of other origins in Chromium", work: browser::run },
    Step {
        name: "conformance",
        about: "the official suite, server and client, both eras",
        work: conformance::run,
    },
];

/// Prints the names of all steps.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:<14}{}", step.name, step.about);
    }
}

/// The steps with these names, in their own order; all of them when no name is given.
pub(crate) fn select(only: &[String]) -> Result<Vec<&'static Step>, String> {
    if only.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let unknown = only.iter().find(|name| STEPS.iter().all(|step| step.name != *name));
    if let Some(name) = unknown {
        return Err(format!("there is no step `{name}`; `cargo xtask test --list` names them"));
    }
    Ok(STEPS.iter().filter(|step| only.iter().any(|name| name == step.name)).collect())
}

/// Runs the steps and says whether all of them passed. A failed step does not keep the next from running.
pub(crate) fn run(only: &[String]) -> Result<bool, String> {
    let steps = select(only)?;
    let start = Instant::now();
    let mut lines = Vec::new();
    let mut failed = 0;
    for step in &steps {
        println!("\n=== {}: {}", step.name, step.about);
        let started = Instant::now();
        let outcome = (step.work)();
        let seconds = started.elapsed().as_secs_f32();
        let (word, reason) = match outcome {
            Ok(()) => ("ok", String::new()),
            Err(reason) => {
                println!("{reason}");
                failed += 1;
                ("FAIL", format!("  {}", reason.lines().next().unwrap_or_default()))
            }
        };
        lines.push(format!("{word:<6}{:<14}{seconds:>7.1} s{reason}", step.name));
    }
    println!("\n=== summary");
    for line in lines {
        println!("{line}");
    }
    let passed = steps.len() - failed;
    println!("{passed} passed, {failed} failed in {:.1} s", start.elapsed().as_secs_f32());
    Ok(failed == 0)
}

fn cargo(arguments: &[&str]) -> Program {
    Program::cargo(&root(), LIMIT).args(arguments)
}

fn format() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"]).run()
}

fn lint() -> Result<(), String> {
    cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]).run()
}

fn test() -> Result<(), String> {
    // Some tests start examples as programs of their own, and cargo builds those only when it is asked to.
    cargo(&["build", "--workspace", "--examples", "--all-features"]).run()?;
    cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--all-features", "--no-fail-fast"]).run()
}

fn doctest() -> Result<(), String> {
    cargo(&["test", "--workspace", "--doc", "--all-features", "--no-fail-fast"]).run()
}

fn rustdoc() -> Result<(), String> {
    let build = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    build.env("RUSTDOCFLAGS", "-D warnings").run()
}

/// Every crate that has features, with none of them and with each alone.
fn features() -> Result<(), String> {
    for package in Workspace::read(&root())?.packages {
        if package.features.is_empty() {
            continue;
        }
        let alone = package.features.iter().map(String::as_str);
        for features in std::iter::once("").chain(alone) {
            // Clippy instead of check: a warning in one combination is as wrong as in the usual one.
            let build =
                ["clippy", "--quiet", "-p", &package.name, "--no-default-features", "--features", features];
            cargo(&build).args(["--", "-D", "warnings"]).run()?;
        }
    }
    Ok(())
}

fn dependencies() -> Result<(), String> {
    let mut violations = edges::check(&root())?;
    violations.extend(licences::check(&root())?);
    none(&violations)
}

fn documents() -> Result<(), String> {
    none(&documents::check(&root())?)
}

fn demo() -> Result<(), String> {
    Program::cargo(&root(), DEMO_LIMIT).args(["run", "--quiet", "--", "demo", "--once"]).run()
}

/// Installs the program as its users do, below the target folder.
fn install() -> Result<(), String> {
    let place = Workspace::read(&root())?.target.join("installed");
    let shown = place.display().to_string();
    cargo(&["install", "--path", "crates/toolwire-cli", "--locked", "--force", "--root", &shown]).run()?;
    let program = place.join("bin").join(format!("toolwire{}", std::env::consts::EXE_SUFFIX));
    let version = Program::new(&program, DEMO_LIMIT).args(["--version"]).successful_output()?;
    let bytes = std::fs::metadata(&program).map_err(|error| format!("{shown}: {error}"))?.len();
    println!("{}: {bytes} bytes", version.trim());
    if bytes <= MAX_PROGRAM_BYTES {
        Ok(())
    } else {
        Err(format!("the program has {bytes} bytes, more than {MAX_PROGRAM_BYTES}"))
    }
}

fn none(faults: &[String]) -> Result<(), String> {
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::{STEPS, select};

    #[test]
    fn steps_are_selected_by_name_in_their_own_order() {
        assert_eq!(select(&[]).unwrap().len(), STEPS.len());
        let only = ["demo".to_owned(), "format".to_owned()];
        let names: Vec<&str> = select(&only).unwrap().iter().map(|step| step.name).collect();
        assert_eq!(names, ["format", "demo"]);
    }

    #[test]
    fn a_step_that_does_not_exist_is_an_error() {
        let error = select(&["fromat".to_owned()]).err().unwrap();
        assert!(error.starts_with("there is no step `fromat`"), "{error}");
    }

    #[test]
    fn names_are_unique() {
        for step in STEPS {
            assert_eq!(STEPS.iter().filter(|other| other.name == step.name).count(), 1, "{}", step.name);
        }
    }
}
