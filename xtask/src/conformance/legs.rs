//! The legs of a run: which scenarios are run how, and that none is left out.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use super::report::Results;
use super::scenarios::{Scenario, Scenarios};
use super::suite::{CURRENT, Ran, STABLE, Suite};
use super::verdict::{self, Verdict};

/// The revisions that have a set of requirements.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// What the suite has a name for but never checks.
const NEVER_CHECKED: &[&str] = &["tasks-status-notifications"];

/// What the suite puts in front of the names of server scenarios.
const SERVER_PREFIX: &str = "server-";

/// Runs all legs. Most of their time is spent waiting, so three of them are under way at any time: those of servers
/// after each other, because they share one, and those of clients by revision.
pub(super) fn run(suite: &Suite) -> Result<Results, String> {
    let scenarios = Scenarios::parse(&suite.list(CURRENT)?)?;
    let Scenarios { server, client } = &scenarios;
    let [old, new] = REVISIONS;
    thread::scope(|scope| {
        let runs = [
            scope.spawn(|| servers(suite, server)),
            scope.spawn(|| {
                let mut results = Results::default();
                required_of_clients(suite, old, &mut results)?;
                strictly(suite, client, old, &mut results)?;
                others_of_clients(suite, client, &mut results)?;
                Ok(results)
            }),
            scope.spawn(|| {
                // The other way round: each set of requirements starts dozens of clients at once.
                let mut results = Results::default();
                strictly(suite, client, new, &mut results)?;
                required_of_clients(suite, new, &mut results)?;
                stable_clients(suite, &mut results)?;
                Ok(results)
            }),
        ];
        let mut results = Results::default();
        for run in runs {
            results.extend(run.join().unwrap_or_else(|_| Err("a leg has panicked".to_owned()))?);
        }
        Ok(results)
    })
}

fn servers(suite: &Suite, all: &[Scenario]) -> Result<Results, String> {
    let mut results = Results::default();
    required_of_servers(suite, &mut results)?;
    others_of_servers(suite, all, &mut results)?;
    stable_servers(suite, &mut results)?;
    Ok(results)
}

fn required_of_clients(suite: &Suite, revision: &str, results: &mut Results) -> Result<(), String> {
    let leg = format!("client {revision}");
    let ran = timed(|| suite.client(CURRENT, &leg, &["--requirements", revision]))?;
    add(results, &leg, ran, "")
}

/// Both revisions at the same time, against the same process.
fn required_of_servers(suite: &Suite, results: &mut Results) -> Result<(), String> {
    let runs = thread::scope(|scope| {
        let start = |revision: &'static str| {
            let leg = format!("server {revision}");
            scope.spawn(move || timed(|| suite.server(CURRENT, &leg, &["--requirements", revision])))
        };
        REVISIONS.map(start).map(|run| run.join().unwrap_or_else(|_| Err("a leg has panicked".to_owned())))
    });
    for (revision, ran) in REVISIONS.into_iter().zip(runs) {
        add(results, &format!("server {revision}"), ran?, SERVER_PREFIX)?;
    }
    Ok(())
}

/// What the suite has for servers, but in no set of requirements.
fn others_of_servers(suite: &Suite, all: &[Scenario], results: &mut Results) -> Result<(), String> {
    for revision in REVISIONS {
        let required = format!("server {revision}");
        let is_left = |scenario: &&Scenario| {
            // Extensions are of the newest revision, as far as servers go.
            let here =
                if scenario.is_extension() { revision == REVISIONS[1] } else { scenario.is_for(revision) };
            here && !results.has(&required, &scenario.name) && !NEVER_CHECKED.contains(&&*scenario.name)
        };
        let left: Vec<&Scenario> = all.iter().filter(is_left).collect();
        let leg = format!("server {revision}, one by one");
        let start = Instant::now();
        let mut verdicts = Vec::new();
        for scenario in left {
            let choice = ["--scenario", &scenario.name, "--spec-version", revision, "--force"];
            let ran = suite.server(CURRENT, &format!("{leg}/{}", scenario.name), &choice)?;
            verdicts.extend(verdict::read(&ran.folder, SERVER_PREFIX)?);
        }
        if !verdicts.is_empty() {
            results.add(&leg, verdicts, start.elapsed());
        }
    }
    Ok(())
}

/// Every client scenario for itself, which is when the suite looks at the exit status of the client, too.
fn strictly(suite: &Suite, all: &[Scenario], revision: &str, results: &mut Results) -> Result<(), String> {
    one_by_one(suite, all.iter().filter(|it| it.is_for(revision)), revision, results)
}

/// What the suite has for clients of older revisions alone.
fn others_of_clients(suite: &Suite, all: &[Scenario], results: &mut Results) -> Result<(), String> {
    let old: Vec<&Scenario> = all.iter().filter(|it| !REVISIONS.iter().any(|now| it.is_for(now))).collect();
    let revisions: BTreeSet<&str> =
        old.iter().flat_map(|it| it.revisions.iter().map(String::as_str)).collect();
    for revision in revisions {
        one_by_one(suite, old.iter().copied().filter(|it| it.is_for(revision)), revision, results)?;
    }
    Ok(())
}

fn one_by_one<'a>(
    suite: &Suite,
    chosen: impl Iterator<Item = &'a Scenario>,
    revision: &str,
    results: &mut Results,
) -> Result<(), String> {
    let leg = format!("client {revision}, one by one");
    let start = Instant::now();
    let mut verdicts = Vec::new();
    for scenario in chosen {
        let choice = ["--scenario", &scenario.name, "--spec-version", revision, "--force"];
        let ran = suite.client(CURRENT, &format!("{leg}/{}", scenario.name), &choice)?;
        let mut found = verdict::read(&ran.folder, "")?;
        if let ([(_, verdict @ Verdict::Passed(_))], false) = (found.as_mut_slice(), ran.status.success()) {
            *verdict = Verdict::Failed("the client failed".to_owned());
        }
        verdicts.extend(found);
    }
    results.add(&leg, verdicts, start.elapsed());
    Ok(())
}

/// The suite as it was before there were two eras.
fn stable_servers(suite: &Suite, results: &mut Results) -> Result<(), String> {
    for name in ["active", "pending"] {
        let leg = format!("0.1.16 server {name}");
        let ran = timed(|| suite.server(STABLE, &leg, &["--suite", name]))?;
        add(results, &leg, ran, SERVER_PREFIX)?;
    }
    Ok(())
}

/// Without `backcompat`: that names no revision, and one of its two issuers is not the one its metadata are of, which
/// newer releases have mended.
fn stable_clients(suite: &Suite, results: &mut Results) -> Result<(), String> {
    for name in ["core", "draft", "extensions"] {
        let leg = format!("0.1.16 client {name}");
        let ran = timed(|| suite.client(STABLE, &leg, &["--suite", name]))?;
        add(results, &leg, ran, "")?;
    }
    Ok(())
}

fn timed(run: impl FnOnce() -> Result<Ran, String>) -> Result<(Ran, Duration), String> {
    let start = Instant::now();
    Ok((run()?, start.elapsed()))
}

fn add(results: &mut Results, leg: &str, (ran, time): (Ran, Duration), prefix: &str) -> Result<(), String> {
    let mut verdicts = verdict::read(&ran.folder, prefix)?;
    verdicts.retain(|(scenario, _)| !NEVER_CHECKED.contains(&scenario.as_str()));
    if verdicts.is_empty() {
        return Err(format!("{leg}: nothing was run ({}); see {}", ran.status, ran.folder.display()));
    }
    results.add(leg, verdicts, time);
    Ok(())
}
