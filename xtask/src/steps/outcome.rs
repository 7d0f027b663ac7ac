//! How a step ends, and what is said about it at the end of a run.

use std::time::Duration;

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
    pub(super) time: Duration,
}

/// Everything about a run, the counts in the last line.
pub(super) fn summary(ended: &[Ended], time: Duration) -> String {
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
    let [passed, failed, skipped] = counts;
    let seconds = time.as_secs_f32();
    lines.push(format!("{passed} passed, {failed} failed, {skipped} skipped in {seconds:.1} s"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ended, Stop, summary};

    #[test]
    fn what_was_not_checked_is_not_passed() {
        let ended = |name, outcome| Ended { name, outcome, time: Duration::from_millis(1500) };
        let steps = [
            ended("one", Ok(())),
            ended("two", Err("it is wrong\nin many ways".into())),
            ended("three", Err(Stop::skipped("no valgrind: install it"))),
        ];
        let expected = "ok    one               1.5 s\nFAIL  two               1.5 s  it is wrong\n\
                        skip  three             1.5 s  no valgrind: install it\n\
                        1 passed, 1 failed, 1 skipped in 60.0 s";
        assert_eq!(summary(&steps, Duration::from_mins(1)), expected);
    }
}
