//! The terminal tests: tmux, installed when it is missing, and the tests that need it.

use std::time::Duration;

use crate::debian;
use crate::process::Program;
use crate::programs::SHARED;
use crate::steps::Outcome;
use crate::workspace::root;

/// Enough for a first build; the tests themselves take seconds.
const TEST_LIMIT: Duration = Duration::from_mins(30);

/// Makes sure of tmux, then runs the tests.
pub(crate) fn run() -> Outcome {
    debian::program("tmux")?;
    Ok(Program::cargo(&root(), TEST_LIMIT).args(["test"]).args(SHARED).args(["--test", "terminal"]).run()?)
}
