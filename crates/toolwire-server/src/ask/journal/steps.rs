//! The steps of a run: what must not be done twice.

use std::fmt;

use toolwire_protocol::RawJson;

use super::Journal;
use crate::{ask::AskError, tasks::Recorded};

/// The state of a step of this run.
#[derive(Debug)]
pub(super) enum Step {
    Running,
    /// The handler has its result.
    Given,
    /// It came to nothing, and may be tried again.
    Failed,
    /// It was done, and the future that waited for its result to be written has been dropped.
    Left(Unwritten),
}

/// A result that is being written to the journal of a task.
pub(crate) struct Unwritten {
    pub(crate) result: RawJson,
    pub(crate) written: Recorded,
}

impl fmt::Debug for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unwritten").finish_non_exhaustive()
    }
}

/// A step that the handler comes by, as the journal knows it.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its result is recorded.
    Known(RawJson),
    /// It was done in this run, and its result is still being written. It counts as running from now on.
    Unwritten(Unwritten),
    /// It has to run, and counts as running from now on.
    Nothing,
}

impl Journal {
    /// Comes by a step. A name stands for one step of a run, so one that is running or has given its result is
    /// refused.
    pub(crate) fn step(&mut self, name: &str) -> Result<Found, AskError> {
        if matches!(self.steps.get(name), Some(Step::Running | Step::Given)) {
            return Err(AskError::StepNamedTwice(name.to_owned()));
        }
        self.steps_taken.insert(name.to_owned());
        if let Some(known) = self.now.steps.get(name).cloned() {
            self.steps.insert(name.to_owned(), Step::Given);
            return Ok(Found::Known(known));
        }
        self.running += 1;
        Ok(match self.steps.insert(name.to_owned(), Step::Running) {
            Some(Step::Left(unwritten)) => Found::Unwritten(unwritten),
            Some(Step::Running | Step::Given | Step::Failed) | None => Found::Nothing,
        })
    }

    /// Comes by a step that may run at most once. One that has begun, in this run or an earlier one, and of which
    /// nothing is known since, is refused.
    pub(crate) fn step_at_most_once(&mut self, name: &str) -> Result<Found, AskError> {
        let has_begun = self.begun_before.contains(name) || self.begun.contains(name);
        let is_known = self.now.steps.contains_key(name)
            || matches!(self.steps.get(name), Some(Step::Running | Step::Given | Step::Left(_)));
        if has_begun && !is_known {
            return Err(AskError::Interrupted(name.to_owned()));
        }
        self.step(name)
    }

    /// Remembers the result of a step. Where a journal is kept elsewhere, it is written there before.
    pub(crate) fn record(&mut self, name: &str, result: RawJson) {
        self.now.steps.insert(name.to_owned(), result);
        self.steps.insert(name.to_owned(), Step::Given);
    }

    /// Notes that a step that may run at most once begins.
    pub(crate) fn begin(&mut self, name: &str) {
        self.begun.insert(name.to_owned());
    }

    /// Notes that a step runs no more, whether its result was recorded or not. One whose result is still being written
    /// leaves that behind.
    pub(crate) fn step_ended(&mut self, name: &str, left: Option<Unwritten>) {
        self.running -= 1;
        if let Some(step @ Step::Running) = self.steps.get_mut(name) {
            *step = left.map_or(Step::Failed, Step::Left);
        }
        // It may have been the last thing that the handler waited for beside its questions.
        if self.running == 0
            && self.waits_for_something()
            && let Some(driver) = &self.driver
        {
            driver.wake_by_ref();
        }
    }

    /// Notes that a layer calls the handler, maybe not for the first time: what it has done before is remembered, and
    /// its names are free again.
    pub(crate) fn called_again(&mut self) {
        self.steps.retain(|_, step| matches!(step, Step::Running | Step::Left(_)));
    }

    /// Takes over the results that nothing waits for. A round ends only where there is no task to write them to: they
    /// are remembered with the call.
    pub(super) fn take_over_left(&mut self) {
        for (name, step) in &self.steps {
            if let Step::Left(unwritten) = step {
                self.now.steps.insert(name.clone(), unwritten.result.clone());
            }
        }
    }
}
