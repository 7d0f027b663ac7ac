//! The steps of `cargo xtask test`: what fails fast comes first in its lane.

mod lanes;
mod outcome;

use std::time::{Duration, Instant};

pub(crate) use outcome::{Outcome, Stop};

use crate::output::say;
use crate::process::Program;
use crate::programs::SHARED;
use crate::workspace::{Workspace, root};
use crate::{
    api, authorization, bench, browser, conformance, deny, documents, edges, eras, fuzz, interop, invariants,
    platforms, registry, schemas, screens, terminal,
};

/// Generous even for a first build on a slow machine; only a program that hangs ever meets it.
const LIMIT: Duration = Duration::from_mins(45);

/// How large the released program may be.
const MAX_PROGRAM_BYTES: u64 = 20 * 1024 * 1024;

/// One step: a name for `--only`, a line for people, and the work.
pub(crate) struct Step {
    name: &'static str,
    about: &'static str,
    lane: Lane,
    /// Downloads what the work needs, long before it does.
    prepare: Option<fn() -> Result<(), String>>,
    work: fn() -> Outcome,
}

/// Two steps run at the same time if they are in different lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// For what builds in `target/debug`: cargo lets only one build at a time in there.
    Main,
    /// For what builds elsewhere, or runs what has been built.
    Beside,
}

const STEPS: &[Step] = &[
    Step::main("format", "the code is formatted", format),
    Step::main("documents", "documents show only what is compiled or run", documents),
    Step::main("dependencies", "crates depend only on what they may", dependencies),
    Step::main("invariants", "the code keeps what ARCHITECTURE.md promises", invariants::run),
    Step::main("eras", "only the owners of the eras look at the era", eras::run),
    Step::main("lint", "clippy, warnings are errors", lint),
    Step::main("schemas", "the official schemas are there for the tests", schemas::run),
    Step::main("test", "unit, integration and macro tests", test),
    Step::main("doctest", "examples in documentation and README", doctest),
    Step::main("rustdoc", "documentation builds, warnings are errors", rustdoc),
    Step::main("features", "every feature builds alone", features),
    Step::beside("licences", "crates in use have licences and sources we accept", deny::check)
        .prepared(deny::prepare),
    Step::beside("advisories", "no crate in use has a known fault", deny::advisories),
    Step::beside("api", "crates offer what their public-api.txt says", api::check).prepared(api::prepare),
    Step::beside("install", "the program installs, and is small", install),
    Step::beside("demo", "the tour ends well", demo),
    Step::beside("budgets", "the hot path takes no more instructions than it may", bench::check)
        .prepared(bench::prepare),
    Step::beside("fuzz", "every fuzz target holds for some seconds", fuzz::check).prepared(fuzz::prepare),
    Step::beside("platforms", "everything compiles for Windows and macOS", platforms::run)
        .prepared(platforms::prepare),
    Step::beside("screens", "documents show what the program says", screens::check),
    Step::beside("terminal", "questions are answered by keyboard in a terminal", terminal::run),
    Step::beside("interop", "other makers' SDKs, both directions, both eras, every transport", interop::run)
        .prepared(interop::prepare),
    Step::beside("registry", "the program on servers from npm and PyPI", registry::run)
        .prepared(registry::prepare),
    Step::beside("browser", "pages of other origins in Chromium", browser::run).prepared(browser::prepare),
    Step::beside("authorization", "logins at a real provider by a person in Chromium", authorization::run)
        .prepared(authorization::prepare),
    Step::beside("conformance", "the official suite, server and client, both eras", conformance::run)
        .prepared(conformance::prepare),
];

impl Step {
    const fn main(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self { name, about, lane: Lane::Main, prepare: None, work }
    }

    const fn beside(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self { name, about, lane: Lane::Beside, prepare: None, work }
    }

    const fn prepared(self, prepare: fn() -> Result<(), String>) -> Self {
        Self { prepare: Some(prepare), ..self }
    }
}

/// Prints the names of all steps.
pub(crate) fn list() {
    for step in STEPS {
        say!("{:<14}{}", step.name, step.about);
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

/// Runs the steps and says whether none of them failed. A failed step does not keep the next from running.
pub(crate) fn run(only: &[String]) -> Result<bool, String> {
    run_steps(&select(only)?)
}

/// What `cargo xtask check` runs of these before it looks at what changed.
pub(crate) fn run_quick() -> Result<bool, String> {
    run(&["format", "documents", "dependencies", "invariants", "eras", "lint"].map(str::to_owned))
}

fn run_steps(steps: &[&Step]) -> Result<bool, String> {
    let logs = Workspace::read(&root())?.target.join("steps");
    let start = Instant::now();
    let ended = lanes::run(steps, &logs)?;
    say!("\n=== summary\n{}", outcome::summary(&ended, start.elapsed()));
    Ok(!ended.iter().any(|step| matches!(step.outcome, Err(Stop::Failed(_)))))
}

fn cargo(arguments: &[&str]) -> Program {
    Program::cargo(&root(), LIMIT).args(arguments)
}

fn format() -> Outcome {
    Ok(cargo(&["fmt", "--all", "--check"]).run()?)
}

fn lint() -> Outcome {
    Ok(cargo(&["clippy"]).args(SHARED).args(["--all-targets", "--", "-D", "warnings"]).run()?)
}

fn test() -> Outcome {
    // Some tests start examples as programs of their own, and cargo builds those only when it is asked to.
    crate::programs::build()?;
    Ok(cargo(&["test"]).args(SHARED).args(["--lib", "--bins", "--tests", "--no-fail-fast"]).run()?)
}

fn doctest() -> Outcome {
    Ok(cargo(&["test"]).args(SHARED).args(["--doc", "--no-fail-fast"]).run()?)
}

fn rustdoc() -> Outcome {
    // The example is there for the features it brings (see `programs`): without it, half of the dependencies would
    // be checked again. With it programs have to be named, because `--bins` would not leave out any.
    let mut build = cargo(&["doc"]).args(SHARED).args(["--no-deps", "--lib", "--example", "booking"]);
    for program in Workspace::read(&root())?.packages.iter().flat_map(|package| &package.programs) {
        build = build.args(["--bin", program]);
    }
    Ok(build.env("RUSTDOCFLAGS", "-D warnings").run()?)
}

/// Every crate that has features others can choose, with none of them and with each alone.
fn features() -> Outcome {
    let packages = Workspace::read(&root())?.packages;
    for package in packages.iter().filter(|package| package.published && !package.features.is_empty()) {
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

fn dependencies() -> Outcome {
    none(&edges::check(&root())?)
}

fn documents() -> Outcome {
    none(&documents::check(&root())?)
}

/// Runs the tour, from the sources as the README tells people to, but with what `install` has built.
fn demo() -> Outcome {
    Ok(cargo(&["run", "--quiet", "--release", "--", "demo", "--once"]).run()?)
}

/// Installs the program as its users do, below the target folder.
fn install() -> Outcome {
    let place = Workspace::read(&root())?.target.join("installed");
    let shown = place.display().to_string();
    cargo(&["install", "--path", "crates/toolwire-cli", "--locked", "--force", "--root", &shown]).run()?;
    let program = place.join("bin").join(format!("toolwire{}", std::env::consts::EXE_SUFFIX));
    let version = Program::new(&program, LIMIT).args(["--version"]).successful_output()?;
    let bytes = std::fs::metadata(&program).map_err(|error| format!("{shown}: {error}"))?.len();
    say!("{}: {bytes} bytes", version.trim());
    if bytes <= MAX_PROGRAM_BYTES {
        Ok(())
    } else {
        Err(format!("the program has {bytes} bytes, more than {MAX_PROGRAM_BYTES}").into())
    }
}

/// Fails if there are faults, one sentence each.
pub(crate) fn none(faults: &[String]) -> Outcome {
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
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
