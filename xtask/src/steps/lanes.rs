//! Running steps in two lanes at once, so that neither core waits while a step downloads or links, and then those that
//! nothing may disturb.
//!
//! Steps of one lane run in the order of the table. The output of the lane beside the main one goes to a log, and is
//! shown in one piece when its step ends. Parts of steps that have failed are tried again when both lanes have ended.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::outcome::{Ended, limit_flaky};
use super::retry::{self, Parts};
use super::{Lane, Scope, Step, Work};
use crate::output::{self, say};

/// A step that has done its work.
struct Done {
    name: &'static str,
    parts: Parts,
    time: Duration,
}

/// Runs the steps and returns how each ended, in the order given. A failed step does not keep the next from running.
pub(super) fn run(steps: &[&Step], scope: Scope<'_>, logs: &Path) -> Result<Vec<Ended>, String> {
    let in_lane =
        |lane: Lane| steps.iter().copied().filter(move |step| step.lane == lane).collect::<Vec<_>>();
    let (main, beside) = (in_lane(Lane::Main), in_lane(Lane::Beside));
    let done = if main.is_empty() || beside.is_empty() {
        main.into_iter().chain(beside).map(|step| live(step, scope)).collect()
    } else {
        fs::create_dir_all(logs).map_err(|error| format!("{}: {error}", logs.display()))?;
        thread::scope(|threads| {
            threads.spawn(|| prepare(steps, logs));
            let beside =
                threads.spawn(|| beside.into_iter().map(|step| aside(step, scope, logs)).collect::<Vec<_>>());
            let mut done: Vec<Done> = main.into_iter().map(|step| live(step, scope)).collect();
            done.extend(beside.join().map_err(|_| "the steps beside the others have panicked".to_owned())?);
            Ok::<_, String>(done)
        })?
    };
    // The scope has waited for the downloads as well: nothing runs beside these.
    let mut ended: Vec<Ended> = done.into_iter().map(settled).collect();
    ended.extend(in_lane(Lane::Alone).into_iter().map(|step| settled(live(step, scope))));
    let place = |name: &str| steps.iter().position(|step| step.name == name);
    ended.sort_by_key(|step| place(step.name));
    limit_flaky(&mut ended);
    Ok(ended)
}

/// Runs a step that has the terminal.
fn live(step: &Step, scope: Scope<'_>) -> Done {
    say!("\n=== {}: {}", step.name, step.about);
    let done = timed(step, scope);
    tell(&done.parts);
    done
}

/// Runs a step whose words are kept until it has ended.
fn aside(step: &Step, scope: Scope<'_>, logs: &Path) -> Done {
    let path = logs.join(format!("{}.log", step.name));
    let done = match File::create(&path) {
        Ok(log) => output::logged(log, || timed(step, scope)),
        Err(error) => {
            let reason = format!("{}: {error}", path.display());
            Done { name: step.name, parts: Err(reason.into()), time: Duration::ZERO }
        }
    };
    show(step, &path, &done);
    done
}

/// One step at a time is shown, in one write.
fn show(step: &Step, log: &PathBuf, done: &Done) {
    static SHOWING: Mutex<()> = Mutex::new(());
    let _turn = SHOWING.lock();
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let reason = done.parts.as_ref().err().map(|stop| format!("\n{}", stop.reason())).unwrap_or_default();
    say!("\n=== {}: {} (ran beside the others)\n{}{reason}", step.name, step.about, said.trim_end());
}

fn timed(step: &Step, scope: Scope<'_>) -> Done {
    let start = Instant::now();
    let parts = match step.work {
        Work::Whole(work) => work().map(|()| vec![]),
        Work::Parts(work) => work(),
        Work::Tests(work) => work(scope),
    };
    Done { name: step.name, parts, time: start.elapsed() }
}

/// Tries the parts of a step again that have failed.
fn settled(Done { name, parts, time }: Done) -> Ended {
    match parts {
        Err(stop) => Ended { name, outcome: Err(stop), flaky: vec![], time },
        Ok(failures) if failures.is_empty() => Ended { name, outcome: Ok(()), flaky: vec![], time },
        Ok(failures) => {
            let start = Instant::now();
            say!("\n=== {name}: its failures again, with nothing beside them");
            let (outcome, flaky) = retry::settle(failures);
            Ended { name, outcome, flaky, time: time + start.elapsed() }
        }
    }
}

fn tell(parts: &Parts) {
    if let Err(stop) = parts {
        say!("{}", stop.reason());
    }
}

/// Downloads what steps will need while the first of them compile. Whatever goes wrong here is met again, and told,
/// by the step that needs it.
fn prepare(steps: &[&Step], logs: &Path) {
    let Ok(log) = File::create(logs.join("prepare.log")) else { return };
    output::logged(log, || {
        for prepare in steps.iter().filter_map(|step| step.prepare) {
            if let Err(error) = prepare() {
                say!("{error}");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::steps::{Failure, Outcome, Stop};

    fn step(name: &'static str, lane: Lane, work: fn() -> Outcome) -> Step {
        Step { lane, ..Step::main(name, "", work) }
    }

    fn names(steps: &[&Step]) -> Vec<(&'static str, bool)> {
        let first = steps.first().map_or("none", |step| step.name);
        let logs = std::env::temp_dir().join(format!("xtask-lanes-{}-{first}", std::process::id()));
        let ended = run(steps, Scope::default(), &logs).unwrap();
        // A run without two lanes needs no logs.
        let _ = fs::remove_dir_all(&logs);
        ended.iter().map(|ended| (ended.name, ended.outcome.is_ok())).collect()
    }

    #[test]
    fn both_lanes_run_to_their_end_and_are_told_in_the_order_of_the_table() {
        let one = step("one", Lane::Beside, || Err("no".into()));
        let two = step("two", Lane::Main, || Ok(()));
        let three = step("three", Lane::Beside, || Ok(()));
        let four = step("four", Lane::Main, || Err(Stop::skipped("not here")));
        let expected = [("one", false), ("two", true), ("three", true), ("four", false)];
        assert_eq!(names(&[&one, &two, &three, &four]), expected);
        assert_eq!(names(&[&four, &two]), [("four", false), ("two", true)]);
    }

    #[test]
    fn step_alone_starts_after_both_lanes_and_the_downloads() {
        static DOWNLOADED: AtomicBool = AtomicBool::new(false);
        static BUILT: AtomicBool = AtomicBool::new(false);
        static BUILT_BESIDE: AtomicBool = AtomicBool::new(false);
        let alone = step("alone", Lane::Alone, || {
            let done = [&DOWNLOADED, &BUILT, &BUILT_BESIDE].iter().all(|flag| flag.load(Ordering::SeqCst));
            if done { Ok(()) } else { Err("something still runs".into()) }
        });
        let alone = alone.prepared(|| {
            DOWNLOADED.store(true, Ordering::SeqCst);
            Ok(())
        });
        let built = step("built", Lane::Main, || {
            BUILT.store(true, Ordering::SeqCst);
            Ok(())
        });
        let beside = step("beside", Lane::Beside, || {
            BUILT_BESIDE.store(true, Ordering::SeqCst);
            Ok(())
        });
        let expected = [("alone", true), ("built", true), ("beside", true)];
        assert_eq!(names(&[&alone, &built, &beside]), expected);
        assert_eq!(names(&[&alone]), [("alone", true)]);
    }

    #[test]
    fn failures_are_tried_again_when_nothing_runs_beside_them() {
        static BUILT: AtomicBool = AtomicBool::new(false);
        let tests = Step::in_parts("tests", "", || {
            let again =
                || if BUILT.load(Ordering::SeqCst) { Ok(()) } else { Err("a build still runs".to_owned()) };
            let (name, output, command) = ("a test".to_owned(), "wrong".to_owned(), String::new());
            Ok(vec![Failure { name, output, command, edited: false, again: Box::new(again) }])
        });
        let tests = Step { lane: Lane::Main, ..tests };
        let build = step("build", Lane::Beside, || {
            thread::sleep(Duration::from_millis(100));
            BUILT.store(true, Ordering::SeqCst);
            Ok(())
        });
        assert_eq!(names(&[&tests, &build]), [("tests", true), ("build", true)]);
    }
}
