//! The choice of the steps that a run consists of.

use std::hash::{BuildHasher as _, RandomState};

use super::{Run, STEPS, Scope, Step};
use crate::changed::Change;
use crate::machine;

/// The steps that a command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Selection {
    /// The steps that every change passes.
    Change,
    /// Those of them that this change concerns and that take no programs of other makers.
    Affected(Change),
    /// All steps.
    All,
    /// The steps with these names.
    Only(Vec<String>),
}

impl Selection {
    /// Returns the selected steps in the order of the table.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no step with a selected name.
    pub(crate) fn steps(&self) -> Result<Vec<&'static Step>, String> {
        if let Self::Only(names) = self
            && let Some(name) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name))
        {
            return Err(format!("there is no step `{name}`; `cargo xtask test --list` names them"));
        }
        Ok(STEPS.iter().filter(|step| self.includes(step)).collect())
    }

    /// Returns the names of the steps that this run does not make and the next larger one does, which is named first. A
    /// run of named steps has none: its caller knows that it is not the whole.
    pub(super) fn left_out(&self) -> (&'static str, Vec<&'static str>) {
        let left_out = |run: Run| {
            let missing = STEPS.iter().filter(|step| step.run <= run && !self.includes(step));
            missing.map(|step| step.name).collect()
        };
        match self {
            Self::Only(_) => ("", vec![]),
            Self::Affected(_) => ("cargo xtask test", left_out(Run::Change)),
            Self::Change | Self::All => ("--all", left_out(Run::Release)),
        }
    }

    /// Returns the disk that this run takes in an empty target folder, in kilobytes; none if that is not known.
    pub(super) fn space(&self) -> u64 {
        match self {
            Self::Change => machine::SHORT_RUN,
            Self::All => machine::WHOLE_RUN,
            Self::Affected(_) | Self::Only(_) => 0,
        }
    }

    /// Returns the tests that this run makes.
    ///
    /// Only the run before a release looks for new inputs: the others are decided by the change alone.
    pub(super) fn scope(&self) -> Scope<'_> {
        match self {
            Self::Affected(change) => Scope { crates: Some(&change.crates), ..Scope::default() },
            Self::Change | Self::Only(_) => Scope::default(),
            Self::All => Scope { seed: RandomState::new().hash_one("seed"), ..Scope::default() },
        }
    }

    fn includes(&self, step: &Step) -> bool {
        match self {
            Self::Change => step.run == Run::Change,
            Self::Affected(change) => step.concerned.is_some_and(|concerned| concerned(change)),
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name == step.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, STEPS, Selection};

    fn only(names: &[&str]) -> Selection {
        Selection::Only(names.iter().map(|&name| name.to_owned()).collect())
    }

    fn names(selection: &Selection) -> Vec<&'static str> {
        selection.steps().unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn named_steps_run_in_the_order_of_the_table() {
        assert_eq!(names(&only(&["demo", "format"])), ["format", "demo"]);
        assert!(only(&["demo"]).left_out().1.is_empty());
    }

    #[test]
    fn unknown_step_is_an_error() {
        let error = only(&["format", "fromat"]).steps().err().unwrap();
        assert_eq!(error, "there is no step `fromat`; `cargo xtask test --list` names them");
    }

    #[test]
    fn short_run_names_the_steps_it_leaves_out() {
        let (run, (larger, left_out)) = (names(&Selection::Change), Selection::Change.left_out());
        assert_eq!(larger, "--all");
        assert_eq!(run.len() + left_out.len(), STEPS.len());
        assert!(run.iter().all(|name| !left_out.contains(name)), "{run:?} {left_out:?}");
        assert!(
            ["lint", "test", "api", "licences", "facade", "fuzz-build", "interop", "conformance"]
                .iter()
                .all(|name| run.contains(name)),
            "{run:?}"
        );
        assert!(
            ["features", "deny", "fuzz", "install", "budgets", "browser"]
                .iter()
                .all(|name| left_out.contains(name)),
            "{left_out:?}"
        );
    }

    #[test]
    fn check_runs_steps_that_the_change_concerns_and_names_the_others() {
        let nothing = Selection::Affected(Change::default());
        let quick = ["format", "documents", "licences", "dependencies", "invariants", "eras", "lint"];
        assert_eq!(names(&nothing), quick);
        let change = Change { crates: ["toolwire-cli".to_owned()].into(), ..Change::default() };
        let check = Selection::Affected(change);
        assert_eq!(check.scope().crates.unwrap().len(), 1);
        assert_eq!(check.left_out(), ("cargo xtask test", vec!["interop", "conformance"]));
        let whole = names(&Selection::Change);
        assert!(names(&check).iter().all(|name| whole.contains(name)));
    }

    #[test]
    fn only_the_run_before_a_release_has_another_seed_each_time() {
        for selection in [Selection::Change, Selection::Affected(Change::default()), only(&["test"])] {
            assert_eq!(selection.scope().seed, 0);
        }
        assert_ne!(Selection::All.scope().seed, Selection::All.scope().seed);
    }

    #[test]
    fn all_runs_every_step() {
        assert_eq!(names(&Selection::All).len(), STEPS.len());
        assert!(Selection::All.left_out().1.is_empty());
    }
}
