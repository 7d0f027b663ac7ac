//! The results of all legs, and how they compare with what is known to be missing.

use std::collections::BTreeSet;
use std::time::Duration;

use super::legs::{Ended, Leg};
use super::verdict::Verdict;
use crate::output::say;

/// The results of all legs.
#[derive(Debug, Default)]
pub(super) struct Results {
    legs: Vec<Ended>,
}

/// A scenario that has failed, with its leg and the reason.
#[derive(Debug)]
pub(super) struct Failed<'a> {
    pub(super) leg: &'a Leg,
    pub(super) scenario: &'a str,
    pub(super) reason: &'a str,
}

impl Results {
    pub(super) fn extend(&mut self, legs: Vec<Ended>) {
        self.legs.extend(legs);
    }

    pub(super) fn print(&self, time: Duration) {
        say!("\n{:<34}{:>10}{:>9}{:>9}{:>9}", "leg", "scenarios", "passed", "checks", "seconds");
        for Ended { leg, found, time } in &self.legs {
            let passed: Vec<usize> =
                found.verdicts.iter().filter_map(|(_, verdict)| checks(verdict)).collect();
            let (total, checks) = (found.verdicts.len(), passed.iter().sum::<usize>());
            let seconds = time.as_secs_f32();
            say!("{:<34}{total:>10}{:>9}{checks:>9}{seconds:>9.1}", leg.name, passed.len());
        }
        say!("all of it in {:.1} s", time.as_secs_f32());
    }

    /// Compares the results with the list of what is missing, and returns the scenarios that have failed without being
    /// on it.
    ///
    /// # Errors
    ///
    /// Returns an error that names everything that is wrong if any of it has nothing to do with a single scenario, or
    /// if a scenario on the list passes or is not run: trying again changes nothing about that.
    pub(super) fn compare(&self, missing: &BTreeSet<(String, String)>) -> Result<Vec<Failed<'_>>, String> {
        let mut wrong: Vec<String> = self.legs.iter().flat_map(|it| &it.found.faults).cloned().collect();
        let (mut failed, mut known) = (Vec::new(), 0);
        for Ended { leg, found, .. } in &self.legs {
            for (scenario, verdict) in &found.verdicts {
                let listed = missing.contains(&(leg.name.clone(), scenario.clone()));
                match verdict {
                    Verdict::Failed(_) if listed => known += 1,
                    Verdict::Failed(reason) => failed.push(Failed { leg, scenario, reason }),
                    Verdict::Passed { .. } if listed => {
                        wrong.push(format!("PASS  {}: {scenario}: take it off the list", leg.name));
                    }
                    Verdict::Passed { .. } => {}
                }
            }
        }
        for (leg, scenario) in missing.iter().filter(|(leg, scenario)| !self.has(leg, scenario)) {
            wrong.push(format!("GONE  {leg}: {scenario}: it is listed as missing, but is not run"));
        }
        if !wrong.is_empty() {
            wrong.extend(
                failed.iter().map(|Failed { leg, scenario, reason }| {
                    format!("FAIL  {}: {scenario}: {reason}", leg.name)
                }),
            );
            let (count, wrong) = (wrong.len(), wrong.join("\n"));
            return Err(format!(
                "{count} results are not as the suite and conformance/missing.txt say\n{wrong}"
            ));
        }
        if failed.is_empty() {
            say!("{known} scenarios are known to be missing, everything else passes");
        }
        Ok(failed)
    }

    /// Returns whether a leg has run this scenario.
    fn has(&self, leg: &str, scenario: &str) -> bool {
        let mut legs = self.legs.iter().filter(|known| known.leg.name == leg);
        legs.any(|leg| leg.found.verdicts.iter().any(|(name, _)| name == scenario))
    }
}

/// Returns how many checks succeeded, if the scenario passed.
fn checks(verdict: &Verdict) -> Option<usize> {
    match verdict {
        Verdict::Passed { checks, .. } => Some(*checks),
        Verdict::Failed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ended, Results, Verdict};
    use crate::conformance::legs::{Found, tests::leg};

    /// Compares results of `a`, which passes, and `b`, which fails, and returns the names of what has failed.
    fn compared(missing: &[&str], faults: &[&str]) -> Result<Vec<String>, String> {
        let scenarios =
            [("a", Verdict::Passed { checks: 2, warned: false }), ("b", Verdict::Failed("no".to_owned()))];
        let verdicts = scenarios.map(|(name, verdict)| (name.to_owned(), verdict)).to_vec();
        let found = Found { verdicts, faults: faults.iter().map(|&fault| fault.to_owned()).collect() };
        let mut results = Results::default();
        results.extend(vec![Ended { leg: leg(&["a", "b"]), found, time: Duration::ZERO }]);
        let missing = missing.iter().map(|name| ("leg".to_owned(), (*name).to_owned()));
        let failed = results.compare(&missing.collect())?;
        Ok(failed.iter().map(|it| format!("{}: {}: {}", it.leg.name, it.scenario, it.reason)).collect())
    }

    #[test]
    fn failed_scenarios_are_returned_unless_they_are_listed() {
        assert_eq!(compared(&["b"], &[]), Ok(vec![]));
        assert_eq!(compared(&[], &[]), Ok(vec!["leg: b: no".to_owned()]));
    }

    #[test]
    fn list_must_be_exact() {
        assert!(compared(&["a", "b"], &[]).unwrap_err().ends_with("PASS  leg: a: take it off the list"));
        assert!(compared(&["b", "c"], &[]).unwrap_err().contains("\nGONE  leg: c"));
    }

    #[test]
    fn fault_of_a_leg_is_an_error_that_names_failed_scenarios_too() {
        let error = compared(&[], &["LOST  leg: c: why"]).unwrap_err();
        assert!(error.starts_with("2 results"), "{error}");
        assert!(error.ends_with("\nLOST  leg: c: why\nFAIL  leg: b: no"), "{error}");
        assert!(compared(&["b"], &["LOST  leg: c: why"]).is_err());
    }
}
