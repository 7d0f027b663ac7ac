//! The steps of `cargo xtask test`: what fails fast comes first in its lane.

mod lanes;
mod outcome;
mod selection;

use std::time::{Duration, Instant};

pub(crate) use outcome::{Outcome, Stop};
pub(crate) use selection::Selection;

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
    run: Run,
    lane: Lane,
    /// Downloads what the work needs, long before it does.
    prepare: Option<fn() -> Result<(), String>>,
    work: fn() -> Outcome,
}

/// The smallest run that a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    /// `cargo xtask test`, which every change passes: decides whether the change is right.
    Change,
    /// `cargo xtask test --all`, which a release passes: takes a build of its own, or depends on other things than the
    /// change, such as packages of the system, other registries or a database of advisories.
    Release,
}

/// Steps that run at the same time are in different lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// For steps that build in `target/debug`: cargo lets only one build at a time in there.
    Main,
    /// For steps that build elsewhere.
    Beside,
    /// For steps that start servers and wait for them: they run when both lanes are done, one at a time.
    Alone,
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
    Step::beside("api", "crates offer what their public-api.txt says", api::check).prepared(api::prepare),
    Step::main("features", "every feature builds alone", features).only_with_all(),
    Step::beside("licences", "crates in use have licences and sources we accept", deny::check)
        .prepared(deny::prepare)
        .only_with_all(),
    Step::beside("advisories", "no crate in use has a known fault", deny::advisories).only_with_all(),
    Step::beside("install", "the program installs, and is small", install).only_with_all(),
    Step::beside("demo", "the tour ends well", demo).only_with_all(),
    Step::beside("budgets", "the hot path takes no more instructions than it may", bench::check)
        .prepared(bench::prepare)
        .only_with_all(),
    Step::beside("fuzz", "every fuzz target holds for some seconds", fuzz::check)
        .prepared(fuzz::prepare)
        .only_with_all(),
    Step::beside("platforms", "everything compiles for Windows and macOS", platforms::run)
        .prepared(platforms::prepare)
        .only_with_all(),
    Step::alone("screens", "documents show what the program says", screens::check),
    Step::alone("terminal", "questions are answered by keyboard in a terminal", terminal::run),
    Step::alone("interop", "other makers' SDKs, both directions, both eras, every transport", interop::run)
        .prepared(interop::prepare),
    Step::alone("conformance", "the official suite, server and client, both eras", conformance::run)
        .prepared(conformance::prepare),
    Step::alone("registry", "the program on servers from npm and PyPI", registry::run)
        .prepared(registry::prepare)
        .only_with_all(),
    Step::alone("browser", "pages of other origins in Chromium", browser::run)
        .prepared(browser::prepare)
        .only_with_all(),
    Step::alone("authorization", "logins at a real provider by a person in Chromium", authorization::run)
        .prepared(authorization::prepare)
        .only_with_all(),
];

impl Step {
    const fn main(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self { name, about, run: Run::Change, lane: Lane::Main, prepare: None, work }
    }

    const fn beside(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self { lane: Lane::Beside, ..Self::main(name, about, work) }
    }

    const fn alone(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self { lane: Lane::Alone, ..Self::main(name, about, work) }
    }

    const fn prepared(self, prepare: fn() -> Result<(), String>) -> Self {
        Self { prepare: Some(prepare), ..self }
    }

    const fn only_with_all(self) -> Self {
        Self { run: Run::Release, ..self }
    }
}

/// Prints the names of all steps, those of the run for every change first.
pub(crate) fn list() {
    for (run, title) in [(Run::Change, "for every change:"), (Run::Release, "only with --all:")] {
        say!("{title}");
        for step in STEPS.iter().filter(|step| step.run == run) {
            say!("  {:<14}{}", step.name, step.about);
        }
    }
}

/// Runs the steps and returns whether none of them failed. A failed step does not keep the next from running.
pub(crate) fn run(selection: &Selection) -> Result<bool, String> {
    let steps = selection.steps()?;
    let logs = Workspace::read(&root())?.target.join("steps");
    let start = Instant::now();
    let ended = lanes::run(&steps, &logs)?;
    say!("\n=== summary\n{}", outcome::summary(&ended, start.elapsed(), &selection.left_out()));
    Ok(!ended.iter().any(|step| matches!(step.outcome, Err(Stop::Failed(_)))))
}

/// Runs the steps that `cargo xtask check` begins with.
pub(crate) fn run_quick() -> Result<bool, String> {
    let names = ["format", "documents", "dependencies", "invariants", "eras", "lint"];
    run(&Selection::Only(names.map(str::to_owned).to_vec()))
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
    use super::STEPS;

    #[test]
    fn names_are_unique() {
        for step in STEPS {
            assert_eq!(STEPS.iter().filter(|other| other.name == step.name).count(), 1, "{}", step.name);
        }
    }
}
