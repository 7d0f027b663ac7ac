//! Trying parts of a step again that have failed, such as single tests, to tell a defect of the change from a test that is
//! not deterministic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::outcome::{Outcome, Stop};
use crate::output::say;

/// The most failed parts of a step that are tried again. More of them usually have a common cause.
const MOST_FAILURES: usize = 8;

/// The number of tries with busy processors that a part has to pass.
const TRIES_UNDER_LOAD: usize = 5;

/// A part of a step that has failed and can be tried again by itself, such as a test.
pub(crate) struct Failure {
    /// The name that the summary shows.
    pub(crate) name: String,
    /// The text that it has written, or the reason of the failure.
    pub(crate) output: String,
    /// The command that repeats it.
    pub(crate) command: String,
    /// `true` if the change adds or edits it: such a part has failed, whatever comes of another try.
    pub(crate) edited: bool,
    pub(crate) again: Again,
}

/// Tries again, and returns the reason if that fails.
pub(crate) type Again = Box<dyn Fn() -> Result<(), String> + Send>;

/// The parts of a step that have failed, or the reason why the step could not be made or has failed as a whole.
pub(crate) type Parts = Result<Vec<Failure>, Stop>;

/// A part that has failed once and has passed every other try.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flaky {
    pub(crate) name: String,
    /// The text that it had written when it failed.
    pub(crate) output: String,
}

impl Failure {
    /// Prints the failure with everything that is needed to look into it.
    pub(crate) fn tell(&self) {
        let Self { name, output, command, .. } = self;
        say!("FAIL  {name}\n{}\n      repeat it: {command}", indented(output));
    }
}

/// Tries failed parts again when nothing else runs, and returns the flaky ones.
///
/// The outcome names the parts that have failed: those that fail again, those that the change adds or edits, and all if
/// there are many.
pub(super) fn settle(failures: Vec<Failure>) -> (Outcome, Vec<Flaky>) {
    if failures.len() > MOST_FAILURES {
        let names = names(&failures);
        let reason = format!("{} failures, too many to be tried again: {names}", failures.len());
        return (Err(reason.into()), vec![]);
    }
    let (mut flaky, mut failed) = (Vec::new(), Vec::new());
    for failure in failures {
        match again(&failure) {
            Ok(()) => flaky.push(Flaky { name: failure.name, output: failure.output }),
            Err(reason) => {
                say!("FAIL  {}: {reason}", failure.name);
                failed.push(failure);
            }
        }
    }
    let outcome = if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", names(&failed)).into()) };
    (outcome, flaky)
}

fn names(failures: &[Failure]) -> String {
    failures.iter().map(|failure| failure.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Tries a failed part again, alone and with busy processors.
///
/// # Errors
///
/// Returns the reason why the part has failed, and not only once.
fn again(failure: &Failure) -> Result<(), String> {
    if failure.edited {
        return Err("the change adds or edits it, so it is not tried again".to_owned());
    }
    (failure.again)().map_err(|output| format!("it fails alone, too\n{}", indented(&output)))?;
    under_load(|| -> Result<(), String> {
        for number in 1..=TRIES_UNDER_LOAD {
            let explain = |output: String| {
                format!("it fails in try {number} with all processors busy\n{}", indented(&output))
            };
            (failure.again)().map_err(explain)?;
        }
        Ok(())
    })?;
    say!("FLAKY {}: it passed alone and {TRIES_UNDER_LOAD} times with all processors busy", failure.name);
    Ok(())
}

/// Does `work` while every processor is kept busy.
fn under_load<T>(work: impl FnOnce() -> T) -> T {
    /// Ends the load even if the work panics, because the scope waits for its threads.
    struct Ending<'a>(&'a AtomicBool);
    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ending = Ending(&ended);
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        work()
    })
}

pub(super) fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("      {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Failure, Flaky, MOST_FAILURES, TRIES_UNDER_LOAD, settle};
    use crate::steps::Stop;

    /// A part that fails in the given tries, with the number of tries so far.
    fn failing_in(name: &str, tries: &'static [usize]) -> (Failure, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let again = move || {
            let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
            if tries.contains(&number) { Err(format!("wrong in try {number}")) } else { Ok(()) }
        };
        let failure = Failure {
            name: name.to_owned(),
            output: "wrong".to_owned(),
            command: "cargo test".to_owned(),
            edited: false,
            again: Box::new(again),
        };
        (failure, count)
    }

    fn flaky(name: &str) -> Flaky {
        Flaky { name: name.to_owned(), output: "wrong".to_owned() }
    }

    #[test]
    fn failure_that_does_not_come_again_is_flaky() {
        let (failure, tries) = failing_in("a", &[]);
        assert_eq!(settle(vec![failure]), (Ok(()), vec![flaky("a")]));
        assert_eq!(tries.load(Ordering::SeqCst), 1 + TRIES_UNDER_LOAD);
        assert_eq!(settle(vec![]), (Ok(()), vec![]));
    }

    #[test]
    fn failure_that_comes_again_has_failed() {
        for (tries, expected) in [(&[1][..], 1), (&[2], 2), (&[1 + TRIES_UNDER_LOAD], 1 + TRIES_UNDER_LOAD)] {
            let (failure, made) = failing_in("a", tries);
            let (other, _) = failing_in("b", &[]);
            assert_eq!(settle(vec![failure, other]), (Err("failed: a".into()), vec![flaky("b")]));
            assert_eq!(made.load(Ordering::SeqCst), expected);
        }
    }

    #[test]
    fn part_that_the_change_adds_or_edits_is_never_flaky() {
        let (failure, tries) = failing_in("a", &[]);
        let failure = Failure { edited: true, ..failure };
        assert_eq!(settle(vec![failure]), (Err("failed: a".into()), vec![]));
        assert_eq!(tries.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn many_failures_are_not_tried_again() {
        let (failures, tries): (Vec<_>, Vec<_>) = (0..=MOST_FAILURES).map(|_| failing_in("a", &[])).unzip();
        let (Err(Stop::Failed(reason)), _) = settle(failures) else { panic!("they have not failed") };
        assert!(reason.starts_with("9 failures, too many to be tried again: a, a"), "{reason}");
        assert!(tries.iter().all(|it| it.load(Ordering::SeqCst) == 0));
    }
}
