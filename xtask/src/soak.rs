//! A server under mixed load and faults, watched from outside: its memory, files, threads and tasks must not grow.
//!
//! The server and whoever drives it are `benchmarks/examples/soak/`. Nothing is judged while the server warms up:
//! allocators keep what they once needed, and threads are started on demand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::output::say;
use crate::process::Program;
use crate::programs;
use crate::workspace::{Workspace, root};

/// How often the server is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the server may take to be ready.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long it may take to let go of everything once nobody calls any more: longer than its own timeouts.
const SETTLE: Duration = Duration::from_secs(45);
/// The first part of the time, which is not judged.
const WARM_UP: f64 = 0.3;

/// How far the second half may be above the first: noise of the allocator, not a leak that matters.
const MORE_MEMORY: f64 = 1.10;
const MORE_KILOBYTES: u64 = 4096;
/// What may be left over at the end: a timer that has not come round yet, a connection in TIME_WAIT.
const LEFT: u64 = 3;

/// What is seen of the server at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    kilobytes: u64,
    files: u64,
    threads: u64,
    /// Tasks of its runtime, as it tells.
    tasks: u64,
    /// Requests and bytes on its ledger, as it tells.
    requests: u64,
    held: u64,
}

/// Drives a server for this long and says whether it stayed flat.
pub(crate) fn run(minutes: u64) -> Result<bool, String> {
    if !cfg!(target_os = "linux") {
        return Err("a process can be watched on Linux only".to_owned());
    }
    let program = programs::build()?.join("examples/soak");
    let place = Workspace::read(&root())?.target.join("soak");
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let gauges = place.join("gauges");
    let server = Program::new(&program, START_LIMIT).args(["serve".as_ref(), gauges.as_os_str()]).serve()?;
    let watch = Watch { process: PathBuf::from(format!("/proc/{}", server.id())), gauges };
    thread::sleep(PERIOD * 2);
    let before = watch.sample()?;
    let seconds = (minutes * 60).to_string();
    let limit = Duration::from_mins(minutes + 5);
    let drive = Program::new(&program, limit).args(["drive", server.announced(), &seconds]);
    let (samples, driven) = watch.during(|| drive.successful_output());
    let driven = driven?;
    let after = watch.settled(before)?;
    let report = Report { minutes, before, after, samples: samples?, driven: driven.trim().to_owned() };
    drop(server);
    let text = report.text();
    fs::write(place.join("summary.md"), &text).map_err(|error| format!("{}: {error}", place.display()))?;
    say!("\n{text}");
    let faults = report.faults();
    for fault in &faults {
        say!("{fault}");
    }
    Ok(faults.is_empty())
}

/// Looks at one process.
struct Watch {
    process: PathBuf,
    gauges: PathBuf,
}

impl Watch {
    fn sample(&self) -> Result<Sample, String> {
        let text =
            |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
        let status = text(&self.process.join("status"))?;
        let field = |name: &str| number(&status, name).ok_or_else(|| format!("the status has no {name}"));
        let files =
            fs::read_dir(self.process.join("fd")).map_err(|error| format!("the server is gone: {error}"))?;
        // It is written by the server once a second, and may be half there.
        let gauges = text(&self.gauges)?;
        let told = |name: &str| number(&gauges, name).unwrap_or_default();
        Ok(Sample {
            kilobytes: field("VmRSS:")?,
            files: files.count() as u64,
            threads: field("Threads:")?,
            tasks: told("tasks"),
            requests: told("requests"),
            held: told("held"),
        })
    }

    /// Takes samples while `work` is done.
    fn during<T: Send>(&self, work: impl FnOnce() -> T + Send) -> (Result<Vec<Sample>, String>, T) {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let sampling = scope.spawn(|| {
                let mut samples = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    thread::sleep(PERIOD);
                    samples.push(self.sample()?);
                }
                Ok(samples)
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            (sampling.join().unwrap_or_else(|_| Err("sampling has panicked".to_owned())), result)
        })
    }

    /// What is left once nobody calls any more: as soon as it is no more than before, or when that took too long.
    fn settled(&self, before: Sample) -> Result<Sample, String> {
        let deadline = Instant::now() + SETTLE;
        loop {
            let now = self.sample()?;
            let is_small = now.files <= before.files + LEFT
                && now.tasks <= before.tasks + LEFT
                && (now.requests, now.held) == (0, 0);
            if is_small || Instant::now() >= deadline {
                if !is_small {
                    // Which of its accounts it is.
                    say!("{}", fs::read_to_string(&self.gauges).unwrap_or_default());
                }
                return Ok(now);
            }
            thread::sleep(PERIOD);
        }
    }
}

/// The number that follows a word.
fn number(text: &str, word: &str) -> Option<u64> {
    text.split_once(word)?.1.split_whitespace().next()?.parse().ok()
}

/// Everything that was seen.
#[derive(Debug)]
struct Report {
    minutes: u64,
    before: Sample,
    after: Sample,
    samples: Vec<Sample>,
    /// What the driver says it has done.
    driven: String,
}

impl Report {
    /// The two halves of the time after the warm-up.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a small number"
    )]
    fn halves(&self) -> (&[Sample], &[Sample]) {
        let warm = (self.samples.len() as f64 * WARM_UP) as usize;
        let judged = self.samples.get(warm..).unwrap_or_default();
        judged.split_at(judged.len() / 2)
    }

    #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
    fn faults(&self) -> Vec<String> {
        let (first, second) = self.halves();
        if first.is_empty() {
            return vec!["there are too few samples: give it more minutes".to_owned()];
        }
        let mut faults = Vec::new();
        let (was, is) = (median(first, |it| it.kilobytes), median(second, |it| it.kilobytes));
        if is as f64 > was as f64 * MORE_MEMORY + MORE_KILOBYTES as f64 {
            faults.push(format!("memory grew from {was} to {is} kB"));
        }
        let (was, is) = (largest(first, |it| it.threads), largest(second, |it| it.threads));
        if is > was + LEFT {
            faults.push(format!("threads grew from {was} to {is}"));
        }
        for (what, before, after) in
            [("files", self.before.files, self.after.files), ("tasks", self.before.tasks, self.after.tasks)]
        {
            if after > before + LEFT {
                faults.push(format!("{after} {what} are left, {before} there were before"));
            }
        }
        // A ledger is exact: what is on it when nobody calls was forgotten there.
        for (what, left) in [("requests", self.after.requests), ("bytes", self.after.held)] {
            if left > 0 {
                faults.push(format!("{left} {what} are left on the ledger"));
            }
        }
        faults
    }

    fn text(&self) -> String {
        let (first, second) = self.halves();
        let row = |name: &str, of: fn(&Sample) -> u64| {
            let cells = [of(&self.before), median(first, of), median(second, of), largest(&self.samples, of)];
            let cells = cells.map(|cell| cell.to_string()).join(" | ");
            format!("| {name} | {cells} | {} |", of(&self.after))
        };
        [
            format!("{} minutes: {}", self.minutes, self.driven),
            String::new(),
            "| | before | first half | second half | most | after |".to_owned(),
            "| --- | --- | --- | --- | --- | --- |".to_owned(),
            row("memory in kB", |it| it.kilobytes),
            row("open files", |it| it.files),
            row("threads", |it| it.threads),
            row("tasks", |it| it.tasks),
            row("requests on the ledger", |it| it.requests),
            row("bytes on the ledger", |it| it.held),
        ]
        .join("\n")
    }
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> u64 {
    let mut values: Vec<u64> = samples.iter().map(of).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn largest(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> u64 {
    samples.iter().map(of).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Sample = Sample { kilobytes: 20_000, files: 10, threads: 4, tasks: 2, requests: 0, held: 0 };

    fn report(samples: Vec<Sample>, after: Sample) -> Report {
        Report { minutes: 1, before: SMALL, after, samples, driven: String::new() }
    }

    fn faults(grow: impl Fn(u64) -> Sample) -> Vec<String> {
        report((0..100).map(grow).collect(), SMALL).faults()
    }

    #[test]
    fn what_stays_as_it_was_is_flat_and_so_is_what_grew_while_it_got_warm() {
        assert_eq!(faults(|_| SMALL), Vec::<String>::new());
        let warming = |second: u64| Sample { kilobytes: 20_000 + second.min(25) * 1000, ..SMALL };
        assert_eq!(faults(warming), Vec::<String>::new());
    }

    #[test]
    fn what_grows_is_not() {
        let memory = faults(|second| Sample { kilobytes: 20_000 + second * 400, ..SMALL });
        assert_eq!(memory, ["memory grew from 38800 to 52800 kB"]);
        let threads = faults(|second| Sample { threads: second, ..SMALL });
        assert_eq!(threads, ["threads grew from 64 to 99"]);
        let left = report(vec![SMALL; 100], Sample { tasks: 50, files: 14, ..SMALL }).faults();
        assert_eq!(
            left,
            ["14 files are left, 10 there were before", "50 tasks are left, 2 there were before"]
        );
        let held = report(vec![SMALL; 100], Sample { held: 7, ..SMALL }).faults();
        assert_eq!(held, ["7 bytes are left on the ledger"]);
        assert_eq!(report(vec![], SMALL).faults().len(), 1);
    }

    #[test]
    fn numbers_are_found_behind_their_words() {
        let status = "Name:\tx\nVmRSS:\t   12345 kB\nThreads:\t7\n";
        assert_eq!((number(status, "VmRSS:"), number(status, "Threads:")), (Some(12345), Some(7)));
        assert_eq!(number(status, "VmHWM:"), None);
    }
}
