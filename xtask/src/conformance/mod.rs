//! The official conformance suite against our fixtures: one server process for every leg, and a client for
//! every scenario.
//!
//! The suite is pinned in `conformance/` and installed under the target folder, where its results go as well. Every
//! scenario that it lists must leave a verdict. A scenario passes when at least one of its checks succeeded and none
//! failed or warned, but for one warning, whatever the suite itself makes of it. What does not pass must be in
//! `conformance/missing.txt`, and nothing else may be.

mod legs;
mod missing;
mod report;
mod scenarios;
mod suite;
mod verdict;

use std::path::PathBuf;
use std::time::Instant;

use crate::interop::install_node;
use crate::programs;
use crate::steps::{Failure, Parts};
use crate::workspace::{Workspace, root};
use report::Failed;
use suite::Suite;

/// Installs the suite.
pub(crate) fn prepare() -> Result<(), String> {
    install_node(&root().join("conformance"), &place()?)
}

fn place() -> Result<PathBuf, String> {
    Ok(Workspace::read(&root())?.target.join("conformance"))
}

/// Runs all legs, and returns the scenarios that fail and are not listed as missing.
pub(crate) fn run() -> Parts {
    prepare()?;
    let place = place()?;
    let suite = Suite { results: place.join("results"), place, programs: programs::build()? };
    suite::empty(&suite.results)?;

    let start = Instant::now();
    let plan = legs::plan(|release, options| suite.list(release, options))?;
    let server = suite.serve()?;
    let results = legs::run(&suite, server.announced(), &plan)?;
    drop(server);
    results.print(start.elapsed());
    let failed = results.compare(&missing::read(&root().join("conformance/missing.txt"))?)?;
    let failures: Vec<Failure> = failed.iter().map(|failed| failure(&suite, failed)).collect();
    failures.iter().for_each(Failure::tell);
    Ok(failures)
}

fn failure(suite: &Suite, &Failed { leg, scenario, reason }: &Failed<'_>) -> Failure {
    let (suite, leg, scenario) = (suite.clone(), leg.clone(), scenario.to_owned());
    Failure {
        name: format!("{}: {scenario}", leg.name),
        output: format!("{reason}\nits results are in {}", suite.results.join(&leg.name).display()),
        command: "cargo xtask conformance".to_owned(),
        edited: false,
        again: Box::new(move || leg.run_again(&suite, &scenario)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::legs::tests::{leg, with_script};
    use super::{Failed, failure};

    #[test]
    fn failure_runs_its_scenario_again() {
        let leg = leg(&["call", "auth/dpop"]);
        let failed = Failed { leg: &leg, scenario: "call", reason: "a FAILURE: no" };
        let script = r#"case "$*" in *"--scenario call --spec-version 2025-11-25 --force "*) ;; *) exit 3;; esac
            leave call '[{"status":"SUCCESS"}]'"#;
        with_script("failure", script, |suite| {
            let failure = failure(suite, &failed);
            assert_eq!((failure.name.as_str(), failure.edited), ("leg: call", false));
            assert!(failure.output.starts_with("a FAILURE: no\n"), "{}", failure.output);
            assert_eq!((failure.again)(), Ok(()));
        });
    }
}
