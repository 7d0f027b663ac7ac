//! The results of all legs, and how they compare with what is known to be missing.

use std::collections::BTreeSet;
use std::time::Duration;

use super::verdict::Verdict;
use crate::output::say;

/// What became of every scenario of every leg.
#[derive(Debug, Default)]
pub(super) struct Results {
    legs: Vec<Leg>,
}

#[derive(Debug)]
struct Leg {
    name: String,
    scenarios: Vec<(String, Verdict)>,
    time: Duration,
}

impl Results {
    pub(super) fn add(&mut self, name: &str, scenarios: Vec<(String, Verdict)>, time: Duration) {
        self.legs.push(Leg { name: name.to_owned(), scenarios, time });
    }

    /// Adds the legs of another run.
    pub(super) fn extend(&mut self, other: Self) {
        self.legs.extend(other.legs);
    }

    /// Whether a leg has run this scenario.
    pub(super) fn has(&self, leg: &str, scenario: &str) -> bool {
        let mut legs = self.legs.iter().filter(|known| known.name == leg);
        legs.any(|leg| leg.scenarios.iter().any(|(name, _)| name == scenario))
    }

    pub(super) fn print(&self, time: Duration) {
        say!("\n{:<34}{:>10}{:>9}{:>9}{:>9}", "leg", "scenarios", "passed", "checks", "seconds");
        for leg in &self.legs {
            let passed: Vec<usize> =
                leg.scenarios.iter().filter_map(|(_, verdict)| verdict.checks()).collect();
            let (total, checks) = (leg.scenarios.len(), passed.iter().sum::<usize>());
            let seconds = leg.time.as_secs_f32();
            say!("{:<34}{total:>10}{:>9}{checks:>9}{seconds:>9.1}", leg.name, passed.len());
        }
        say!("all of it in {:.1} s", time.as_secs_f32());
    }

    /// What fails must be listed as missing, and what is listed must fail.
    pub(super) fn compare(&self, missing: &BTreeSet<(String, String)>) -> Result<(), String> {
        let mut wrong = Vec::new();
        let mut failed = 0;
        for leg in &self.legs {
            for (scenario, verdict) in &leg.scenarios {
                let listed = missing.contains(&(leg.name.clone(), scenario.clone()));
                match verdict {
                    Verdict::Failed(_) if listed => failed += 1,
                    Verdict::Failed(why) => wrong.push(format!("FAIL  {}: {scenario}: {why}", leg.name)),
                    Verdict::Passed(_) if listed => {
                        wrong.push(format!("PASS  {}: {scenario}: take it off the list", leg.name));
                    }
                    Verdict::Passed(_) => {}
                }
            }
        }
        for (leg, scenario) in missing.iter().filter(|(leg, scenario)| !self.has(leg, scenario)) {
            wrong.push(format!("GONE  {leg}: {scenario}: it is listed as missing, but is not run"));
        }
        if wrong.is_empty() {
            say!("{failed} scenarios are known to be missing, everything else passes");
            return Ok(());
        }
        Err(format!(
            "{} scenarios are not as conformance/missing.txt says\n{}",
            wrong.len(),
            wrong.join("\n")
        ))
    }
}

impl Verdict {
    /// How many checks succeeded, if the scenario passed.
    fn checks(&self) -> Option<usize> {
        match self {
            Self::Passed(checks) => Some(*checks),
            Self::Failed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Results, Verdict};

    fn compared(missing: &[&str]) -> Result<(), String> {
        let mut results = Results::default();
        let scenarios = [("a", Verdict::Passed(2)), ("b", Verdict::Failed("no".to_owned()))];
        let scenarios = scenarios.map(|(name, verdict)| (name.to_owned(), verdict));
        results.add("leg", scenarios.to_vec(), Duration::ZERO);
        let missing = missing.iter().map(|name| ("leg".to_owned(), (*name).to_owned()));
        results.compare(&missing.collect())
    }

    #[test]
    fn the_list_must_be_exact() {
        assert_eq!(compared(&["b"]), Ok(()));
        assert!(compared(&[]).unwrap_err().ends_with("FAIL  leg: b: no"));
        assert!(compared(&["a", "b"]).unwrap_err().contains("PASS  leg: a: take it off"));
        assert!(compared(&["b", "c"]).unwrap_err().contains("GONE  leg: c"));
    }
}
