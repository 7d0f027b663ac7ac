//! A deterministic simulation: seeded clients, a seeded network, and what must hold whatever they do.
//!
//! A run has one thread and a clock that stands still while anybody has something to do, and every choice in it comes
//! from its seed. When it is over, nothing may be left: no request, listener, session or byte on the ledger, no
//! handler, no subscriber, no task. On the way each request gets one answer, or is cancelled, or its connection ends,
//! and nothing is said about it after its answer.
//!
//! `TOOLWIRE_SEED=n` repeats one seed and shows what was said; `TOOLWIRE_SEEDS=n` runs so many, from
//! `TOOLWIRE_SEED_FROM` on, as `cargo xtask simulate` does.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod handlers;
mod http;
mod judge;
mod legacy;
mod modern;
mod pipe;
mod socket;
mod speaker;
mod talk;
mod world;

use std::{
    panic,
    sync::{
        Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use world::{Report, run};

/// How many seeds the checks run.
const SEEDS: u64 = 2000;

/// How many failed runs are shown.
const SHOWN: usize = 3;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text:?}")))
}

/// Panics that are part of the simulation say nothing.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let said = info.payload().downcast_ref::<&str>();
            if !said.is_some_and(|said| [handlers::PANIC, world::H2_ASSERTION].contains(said)) {
                usual(info);
            }
        }));
    });
}

/// Runs seeds on all cores, each run on one.
fn run_all(from: u64, count: u64) -> Vec<Report> {
    let (next, failed) = (AtomicU64::new(from), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
                    let report = run(seed);
                    if !report.faults.is_empty() {
                        failed.lock().unwrap().push(report);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_by_key(|report| report.seed);
    failed
}

#[test]
fn whatever_happens_nothing_is_left_behind() {
    hush();
    let (failed, count) = if let Some(seed) = number("TOOLWIRE_SEED") {
        let report = run(seed);
        if report.faults.is_empty() {
            // One that fails is shown below.
            eprintln!("{}", report.text());
        }
        (Some(report).into_iter().filter(|report| !report.faults.is_empty()).collect(), 1)
    } else {
        let count = number("TOOLWIRE_SEEDS").unwrap_or(SEEDS);
        (run_all(number("TOOLWIRE_SEED_FROM").unwrap_or(0), count), count)
    };
    let seeds: Vec<String> =
        failed.iter().map(|report| format!("{}: {}", report.seed, report.faults.join("; "))).collect();
    let texts: Vec<String> = failed.iter().take(SHOWN).map(Report::text).collect();
    let (seeds, texts) = (seeds.join("\n"), texts.join("\n"));
    assert!(failed.is_empty(), "{} of {count} runs failed:\n{texts}\n{seeds}", failed.len());
}

#[test]
fn a_seed_repeats_itself() {
    hush();
    for seed in 0..100 {
        let (one, other) = (run(seed), run(seed));
        let same = one.fingerprint() == other.fingerprint();
        assert!(same, "seed {seed} is different when it is run again:\n{}\n{}", one.text(), other.text());
    }
}
