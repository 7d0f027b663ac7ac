//! How a step ends, and what is said about it at the end of a run.

use std::time::Duration;

use super::retry::{Flaky, indented};
use super::stamps::Unchanged;

/// The most flaky parts of steps that a run may have and still pass.
const MOST_FLAKY: usize = 3;

/// Why a step did not pass.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stop {
    /// Something is wrong, in words.
    Failed(String),
    /// The check could not be made here: why, and what to do about it. Never counted as passed.
    Skipped(String),
}

/// What a step makes of itself.
pub(crate) type Outcome = Result<(), Stop>;

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl From<&str> for Stop {
    fn from(reason: &str) -> Self {
        Self::Failed(reason.to_owned())
    }
}

impl Stop {
    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped(why.into())
    }

    pub(crate) fn into_reason(self) -> String {
        match self {
            Self::Failed(reason) | Self::Skipped(reason) => reason,
        }
    }

    /// The whole of the reason.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Failed(reason) | Self::Skipped(reason) => reason,
        }
    }
}

/// A step that has come to its end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) flaky: Vec<Flaky>,
    pub(super) time: Duration,
}

/// Fails the step that brings the number of flaky parts above the limit.
pub(super) fn limit_flaky(ended: &mut [Ended]) {
    let mut flaky = 0;
    for step in ended {
        let before = flaky;
        flaky += step.flaky.len();
        if before <= MOST_FLAKY && flaky > MOST_FLAKY && step.outcome.is_ok() {
            step.outcome = Err(format!("more than {MOST_FLAKY} flaky failures in this run").into());
        }
    }
}

/// Returns the table of a run: a line per step, the total time, what is flaky, the steps left out if any with the run
/// that makes them, and the counts. A step that is unchanged is not counted.
///
/// The counts are a line of their own in the form that readers of test output know.
pub(super) fn summary(
    ended: &[Ended],
    unchanged: &[Unchanged],
    time: Duration,
    (larger, left_out): (&str, &[&str]),
) -> String {
    let mut counts = [0; 3];
    let mut lines = Vec::new();
    for step in ended {
        let (kind, word) = match &step.outcome {
            Ok(()) => (0, "ok"),
            Err(Stop::Failed(_)) => (1, "FAIL"),
            Err(Stop::Skipped(_)) => (2, "skip"),
        };
        counts[kind] += 1;
        let reason = step.outcome.as_ref().err().map(Stop::reason).unwrap_or_default();
        let reason = reason.lines().next().unwrap_or_default();
        let line = format!("{word:<6}{:<14}{:>7.1} s  {reason}", step.name, step.time.as_secs_f32());
        lines.push(line.trim_end().to_owned());
    }
    for Unchanged { name, passed } in unchanged {
        lines.push(format!("same  {name:<14}{:>9}  unchanged: passed with these files at {passed}", ""));
    }
    lines.push(format!("{:<6}{:<14}{:>7.1} s", "", "total", time.as_secs_f32()));
    let flaky: Vec<&Flaky> = ended.iter().flat_map(|step| &step.flaky).collect();
    if !flaky.is_empty() {
        lines.extend(flaky.iter().map(|it| format!("FLAKY {}\n{}", it.name, indented(&it.output))));
        lines.push(format!("{} flaky: failed once, then passed: a defect to mend next", flaky.len()));
    }
    match left_out {
        [] => {}
        [name] => lines.push(format!("1 more step with {larger}: {name}")),
        names => lines.push(format!("{} more steps with {larger}: {}", names.len(), names.join(", "))),
    }
    let [passed, failed, skipped] = counts;
    lines.push(format!("{passed} passed, {failed} failed, {skipped} skipped"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ended, Flaky, MOST_FLAKY, Outcome, Stop, Unchanged, limit_flaky, summary};

    #[test]
    fn what_was_not_checked_is_not_passed() {
        let ended = |name, outcome| {
            let time = Duration::from_millis(1500);
            Ended { name, outcome, flaky: vec![], time }
        };
        let steps = [
            ended("one", Ok(())),
            ended("two", Err("it is wrong\nin many ways".into())),
            ended("three", Err(Stop::skipped("no valgrind: install it"))),
        ];
        let expected = "ok    one               1.5 s\nFAIL  two               1.5 s  it is wrong\n\
                        skip  three             1.5 s  no valgrind: install it\n      \
                        total            60.0 s\n\
                        1 passed, 1 failed, 1 skipped";
        assert_eq!(summary(&steps, &[], Duration::from_mins(1), ("", &[])), expected);
    }

    #[test]
    fn unchanged_steps_are_named_and_not_counted() {
        let unchanged = [Unchanged { name: "fuzz", passed: "2026-11-19 14:02".to_owned() }];
        let text = summary(&[], &unchanged, Duration::ZERO, ("--all", &[]));
        let expected = "same  fuzz                     unchanged: passed with these files at 2026-11-19 14:02\n      \
                        total             0.0 s\n\
                        0 passed, 0 failed, 0 skipped";
        assert_eq!(text, expected);
    }

    #[test]
    fn steps_left_out_are_named_before_the_counts() {
        let ends = |left_out: &[&str], end: &str| {
            let text = summary(&[], &[], Duration::ZERO, ("--all", left_out));
            assert!(text.ends_with(end), "{text}");
        };
        ends(&["fuzz", "install"], "\n2 more steps with --all: fuzz, install\n0 passed, 0 failed, 0 skipped");
        ends(&["fuzz"], "\n1 more step with --all: fuzz\n0 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn flaky_parts_are_named_with_their_output_and_counted() {
        let flaky = Flaky { name: "a test".to_owned(), output: "it was late\nby much".to_owned() };
        let step = Ended { name: "one", outcome: Ok(()), flaky: vec![flaky], time: Duration::ZERO };
        let text = summary(&[step], &[], Duration::ZERO, ("", &[]));
        let expected = "FLAKY a test\n      it was late\n      by much\n\
                        1 flaky: failed once, then passed: a defect to mend next\n\
                        1 passed, 0 failed, 0 skipped";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn many_flaky_parts_are_a_failure() {
        let flaky = Flaky { name: "a test".to_owned(), output: String::new() };
        let step = |outcome, count| Ended {
            name: "one",
            outcome,
            flaky: vec![flaky.clone(); count],
            time: Duration::ZERO,
        };
        let mut ended = [step(Ok(()), MOST_FLAKY - 1), step(Ok(()), 1), step(Ok(()), 0)];
        limit_flaky(&mut ended);
        assert!(ended.iter().all(|step| step.outcome.is_ok()));
        let mut ended = [step(Ok(()), MOST_FLAKY - 1), step(Ok(()), 2), step(Ok(()), 1)];
        limit_flaky(&mut ended);
        let failed = Err("more than 3 flaky failures in this run".into());
        assert_eq!(ended.map(|step| step.outcome), [Ok(()), failed, Ok(())]);
        let wrong: Outcome = Err("it is wrong".into());
        let mut ended = [step(wrong.clone(), MOST_FLAKY + 1)];
        limit_flaky(&mut ended);
        assert_eq!(ended.map(|step| step.outcome), [wrong]);
    }
}
