//! The choice of the steps that a run consists of.

use super::{Run, STEPS, Step};

/// The steps that a command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Selection {
    /// The steps that every change passes.
    Change,
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

    /// Returns the names of the steps that this run does not make and `--all` does. A run of named steps has none: its
    /// caller knows that it is not the whole.
    pub(super) fn left_out(&self) -> Vec<&'static str> {
        match self {
            Self::Only(_) => vec![],
            Self::Change | Self::All => {
                STEPS.iter().filter(|step| !self.includes(step)).map(|step| step.name).collect()
            }
        }
    }

    fn includes(&self, step: &Step) -> bool {
        match self {
            Self::Change => step.run == Run::Change,
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name == step.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{STEPS, Selection};

    fn only(names: &[&str]) -> Selection {
        Selection::Only(names.iter().map(|&name| name.to_owned()).collect())
    }

    fn names(selection: &Selection) -> Vec<&'static str> {
        selection.steps().unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn named_steps_run_in_the_order_of_the_table() {
        assert_eq!(names(&only(&["demo", "format"])), ["format", "demo"]);
        assert!(only(&["demo"]).left_out().is_empty());
    }

    #[test]
    fn unknown_step_is_an_error() {
        let error = only(&["format", "fromat"]).steps().err().unwrap();
        assert_eq!(error, "there is no step `fromat`; `cargo xtask test --list` names them");
    }

    #[test]
    fn short_run_names_the_steps_it_leaves_out() {
        let (run, left_out) = (names(&Selection::Change), Selection::Change.left_out());
        assert_eq!(run.len() + left_out.len(), STEPS.len());
        assert!(run.iter().all(|name| !left_out.contains(name)), "{run:?} {left_out:?}");
        assert!(
            ["lint", "test", "api", "interop", "conformance"].iter().all(|name| run.contains(name)),
            "{run:?}"
        );
        assert!(
            ["fuzz", "install", "budgets", "browser"].iter().all(|name| left_out.contains(name)),
            "{left_out:?}"
        );
    }

    #[test]
    fn all_runs_every_step() {
        assert_eq!(names(&Selection::All).len(), STEPS.len());
        assert!(Selection::All.left_out().is_empty());
    }
}
