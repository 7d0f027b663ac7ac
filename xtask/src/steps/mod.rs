//! The steps of `cargo xtask test`: what fails fast comes first in its lane.

mod lanes;
mod outcome;
mod retry;
mod selection;
mod stamps;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub(crate) use outcome::{Outcome, Stop};
pub(crate) use retry::{Failure, Parts};
pub(crate) use selection::Selection;
use stamps::{Stamps, Unchanged};

use crate::changed::Change;
use crate::output::say;
use crate::process::Program;
use crate::programs::{self, SHARED};
use crate::workspace::{Workspace, root};
use crate::{
    api, authorization, bench, browser, conformance, deny, documents, edges, eras, features, fuzz, install,
    interop, invariants, json_schema, licences, machine, platforms, registry, rustdoc, schemas, screens,
    stores, suites,
};

/// Generous even for a first build on a slow machine; only a program that hangs ever meets it.
const LIMIT: Duration = Duration::from_mins(45);

/// The variable in which tests that generate their inputs find a seed.
const SEED: &str = "PROPTEST_RNG_SEED";

/// One step: a name for `--only`, a line for people, and the work.
pub(crate) struct Step {
    name: &'static str,
    about: &'static str,
    run: Run,
    lane: Lane,
    /// Returns whether `cargo xtask check` runs this step for a change; it never does where there is none.
    concerned: Option<fn(&Change) -> bool>,
    /// Downloads what the work needs, long before it does.
    prepare: Option<fn() -> Result<(), String>>,
    /// The files that it reads beside those that all read. `None` if it is repeated whatever the files are, because
    /// something else decides as well.
    reads: Option<&'static [&'static str]>,
    work: Work,
}

/// The tests that a run makes, and how.
#[derive(Debug, Clone, Copy, Default)]
struct Scope<'a> {
    /// The crates whose tests run; `None` is all of them.
    crates: Option<&'a BTreeSet<String>>,
    /// The seed of tests that generate their inputs.
    seed: u64,
}

/// The work of a step.
#[derive(Clone, Copy)]
enum Work {
    /// Work that succeeds or fails as a whole.
    Whole(fn() -> Outcome),
    /// Work with parts that can be tried again.
    Parts(fn() -> Parts),
    /// Work with parts that can be tried again, done for the tests that the run makes.
    Tests(fn(Scope<'_>) -> Parts),
}

/// The smallest run that a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    Step::main("format", "the code is formatted", format).concerning(Change::always),
    Step::main("documents", "documents show only what is compiled or run", documents)
        .concerning(Change::always),
    // Before any step that would write the lock file anew.
    Step::main("licences", "crates in the lock file have licences we accept", licences::check)
        .concerning(Change::always),
    Step::main("dependencies", "crates depend only on what they may", dependencies)
        .concerning(Change::always),
    Step::main("invariants", "the code keeps what ARCHITECTURE.md promises", invariants::run)
        .concerning(Change::always),
    Step::main("eras", "only the owners of the eras look at the era", eras::run).concerning(Change::always),
    Step::main("lint", "clippy, warnings are errors", lint).concerning(Change::always),
    Step::main("schemas", "the official schemas are there for the tests", schemas::run)
        .concerning(Change::code),
    Step::new("test", "unit, integration and macro tests", Work::Tests(test)).concerning(Change::code),
    Step::main("doctest", "examples in documentation and README", doctest)
        .concerning(Change::code_or_documents),
    Step::main("rustdoc", "documentation builds, warnings are errors", rustdoc::pages)
        .concerning(Change::code),
    Step::main("api", "crates offer what their public-api.txt says", api::check).concerning(Change::code),
    Step::beside("facade", "features that users choose together build", features::usual)
        .concerning(Change::code),
    Step::beside("fuzz-build", "the fuzz targets compile", fuzz::compiles).concerning(Change::fuzz_targets),
    Step::main("features", "every feature builds alone", features::each)
        .only_with_all()
        .reading(&["benchmarks", "conformance"]),
    Step::beside("deny", "crates in use have texts of licences and sources we accept", deny::check)
        .prepared(deny::prepare)
        .only_with_all()
        .reading(&["deny.toml"]),
    Step::beside("advisories", "no crate in use has a known fault", deny::advisories).only_with_all(),
    Step::beside("install", "the program installs, and is small", install::run)
        .only_with_all()
        .reading(&["benchmarks/size.txt"]),
    Step::beside("budgets", "the hot path takes no more instructions than it may", bench::check)
        .prepared(bench::prepare)
        .only_with_all()
        .reading(&["benchmarks"]),
    Step::beside("fuzz", "every fuzz target holds for some seconds", fuzz::check)
        .prepared(fuzz::prepare)
        .only_with_all()
        .reading(&["fuzz"]),
    Step::beside("platforms", "everything compiles for Windows and macOS", platforms::run)
        .prepared(platforms::prepare)
        .only_with_all()
        .reading(&["benchmarks", "conformance"]),
    Step::alone("demo", "the tour ends well", demo).concerning(Change::program),
    Step::alone("screens", "documents show what the program says", screens::check)
        .concerning(Change::program_or_documents),
    Step::in_parts(
        "interop",
        "other makers' SDKs, both directions, both eras, every transport",
        interop::run,
    )
    .prepared(interop::prepare),
    Step::in_parts("conformance", "the official suite, server and client, both eras", conformance::run)
        .prepared(conformance::prepare),
    Step::in_parts("registry", "the program on servers from npm and PyPI", registry::run)
        .prepared(registry::prepare)
        .only_with_all(),
    Step::alone(
        "json-schema",
        "the validator agrees with the official suite of JSON Schema",
        json_schema::run,
    )
    .prepared(json_schema::prepare)
    .only_with_all()
    .reading(&["conformance"]),
    Step::alone("stores", "the stores keep their contract on SQLite, Redis and Postgres", stores::run)
        .only_with_all()
        .reading(&[]),
    Step::alone("browser", "pages of other origins in Chromium", browser::run)
        .prepared(browser::prepare)
        .only_with_all()
        .reading(&["browser"]),
    Step::alone("authorization", "logins at a real provider by a person in Chromium", authorization::run)
        .prepared(authorization::prepare)
        .only_with_all()
        .reading(&["authorization"]),
];

impl Step {
    const fn new(name: &'static str, about: &'static str, work: Work) -> Self {
        Self {
            name,
            about,
            run: Run::Change,
            lane: Lane::Main,
            concerned: None,
            prepare: None,
            reads: None,
            work,
        }
    }

    const fn main(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self::new(name, about, Work::Whole(work))
    }

    const fn beside(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self { lane: Lane::Beside, ..Self::main(name, about, work) }
    }

    const fn alone(name: &'static str, about: &'static str, work: fn() -> Outcome) -> Self {
        Self { lane: Lane::Alone, ..Self::main(name, about, work) }
    }

    /// A step that runs alone and has parts that can be tried again.
    const fn in_parts(name: &'static str, about: &'static str, work: fn() -> Parts) -> Self {
        Self { lane: Lane::Alone, ..Self::new(name, about, Work::Parts(work)) }
    }

    const fn prepared(self, prepare: fn() -> Result<(), String>) -> Self {
        Self { prepare: Some(prepare), ..self }
    }

    const fn concerning(self, concerned: fn(&Change) -> bool) -> Self {
        Self { concerned: Some(concerned), ..self }
    }

    const fn reading(self, files: &'static [&'static str]) -> Self {
        Self { reads: Some(files), ..self }
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
    let mut steps = selection.steps()?;
    let target = Workspace::read(&root())?.target;
    machine::check(&root(), &target, selection.space())?;
    let logs = target.join("steps");
    let start = Instant::now();
    let stamps = Stamps::of(&steps, &root());
    let unchanged: Vec<Unchanged> = match &stamps {
        Some(stamps) if *selection == Selection::All => {
            steps.iter().filter_map(|step| stamps.unchanged(step)).collect()
        }
        _ => vec![],
    };
    steps.retain(|step| unchanged.iter().all(|it| it.name != step.name));
    let ended = lanes::run(&steps, selection.scope(), &logs)?;
    if let Some(stamps) = stamps {
        stamps.update(&steps, &ended);
    }
    let (larger, left_out) = selection.left_out();
    let table = outcome::summary(&ended, &unchanged, start.elapsed(), (larger, &left_out));
    say!("\n=== summary\n{table}");
    Ok(!ended.iter().any(|step| matches!(step.outcome, Err(Stop::Failed(_)))))
}

fn cargo(arguments: &[&str]) -> Program {
    Program::cargo(&root(), LIMIT).args(arguments)
}

fn format() -> Outcome {
    Ok(cargo(&["fmt", "--all", "--check"]).run()?)
}

fn lint() -> Outcome {
    for targets in [&["--all-targets"][..], &stores::TARGETS, &json_schema::TARGET] {
        cargo(&["clippy"]).args(SHARED).args(targets).args(["--", "-D", "warnings"]).run()?;
    }
    Ok(())
}

fn test(Scope { crates, seed }: Scope<'_>) -> Parts {
    // Some tests start examples as programs of their own, and cargo builds those only when it is asked to.
    programs::build()?;
    suites::run(|package| crates.is_none_or(|crates| crates.contains(package)), &[(SEED, &seed.to_string())])
}

fn doctest() -> Outcome {
    Ok(cargo(&["test"]).args(SHARED).args(["--doc", "--no-fail-fast"]).run()?)
}

fn dependencies() -> Outcome {
    none(&edges::check(&root())?)
}

fn documents() -> Outcome {
    none(&documents::check(&root())?)
}

/// Runs the tour.
fn demo() -> Outcome {
    let program = programs::build()?.join(format!("toolwire{}", std::env::consts::EXE_SUFFIX));
    Ok(Program::new(program, LIMIT).args(["demo", "--once"]).run()?)
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
