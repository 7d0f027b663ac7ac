//! Verdicts on the results of a run, by a stricter measure than the suite's own.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The end of the name of a folder with results: a hyphen and a time such as `2026-08-07T14-58-45-123Z`.
const TIME: &str = "-0000-00-00T00-00-00-000Z";

/// The check that may warn: release 0.1.16 measures the delay of a reconnect on the real clock, while other clients run
/// at the same time, and warns if it is 200 ms too long. Newer releases only fail a client that reconnects too early.
const MAY_WARN: &str = "client-sse-retry-timing";

/// The verdict on a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// The scenario has passed: the number of checks that succeeded, and whether the one that may warn did.
    Passed { checks: usize, warned: bool },
    /// The scenario has failed, with the reason.
    Failed(String),
}

impl Verdict {
    pub(super) fn passed(&self) -> bool {
        matches!(self, Self::Passed { .. })
    }

    /// Returns the verdict on a scenario that was run by itself, given whether the suite succeeded and what it printed.
    ///
    /// It fails such a run of a client for its exit status and for warnings as well.
    pub(super) fn with_status(self, success: bool, log: &str) -> Self {
        let Self::Passed { warned, .. } = self else { return self };
        if success {
            return self;
        }
        let of_client = ["CLIENT TIMED OUT", "CLIENT EXITED WITH ERROR"];
        let line = log.lines().find(|line| of_client.iter().any(|words| line.contains(words)));
        match line {
            Some(line) => Self::Failed(line.trim_matches(|found: char| !found.is_ascii_graphic()).to_owned()),
            // The suite prints this at its end, so the warning is the only reason.
            None if warned && log.contains("OVERALL: FAILED") => self,
            None => Self::Failed("the suite has failed, although no check has".to_owned()),
        }
    }
}

/// Returns the verdict on every scenario that left something in `folder`. The suite puts `prefix` in front of the names
/// of some.
pub(super) fn read(folder: &Path, prefix: &str) -> Result<Vec<(String, Verdict)>, String> {
    let mut found = Vec::new();
    collect(folder, prefix, "", &mut found)?;
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

fn collect(
    folder: &Path,
    prefix: &str,
    parent: &str,
    found: &mut Vec<(String, Verdict)>,
) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(explain)? {
        let path = entry.map_err(explain)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match scenario(&name) {
            Some(scenario) => {
                let scenario = scenario.strip_prefix(prefix).unwrap_or(scenario);
                found.push((format!("{parent}{scenario}"), judge(&path.join("checks.json"))));
            }
            // Scenarios such as `auth/dpop` have a slash in their name.
            None if path.is_dir() => collect(&path, prefix, &format!("{parent}{name}/"), found)?,
            None => {}
        }
    }
    Ok(())
}

/// Returns the scenario whose results are in a folder of this name.
fn scenario(folder: &str) -> Option<&str> {
    let (name, time) = folder.split_at_checked(folder.len().checked_sub(TIME.len())?)?;
    let digit = |found: char| if found.is_ascii_digit() { '0' } else { found };
    time.chars().map(digit).eq(TIME.chars()).then_some(name)
}

fn judge(checks: &Path) -> Verdict {
    // The folder is made before the scenario runs, so one without checks was given up.
    let Ok(text) = fs::read_to_string(checks) else {
        return Verdict::Failed("it did not come to its end".to_owned());
    };
    let checks: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let having =
        |status: &str| -> Vec<&Value> { checks.iter().filter(|check| check["status"] == status).collect() };
    let (may, must_not): (Vec<&Value>, Vec<&Value>) =
        having("WARNING").into_iter().partition(|check| check["id"] == MAY_WARN);
    let wrong: Vec<String> = having("FAILURE").into_iter().chain(must_not).map(explain).collect();
    let succeeded = having("SUCCESS").len();
    match wrong.as_slice() {
        [] if succeeded > 0 => Verdict::Passed { checks: succeeded, warned: !may.is_empty() },
        [] => Verdict::Failed("nothing was checked".to_owned()),
        [only] => Verdict::Failed(only.clone()),
        [first, others @ ..] => Verdict::Failed(format!("{first} (and {} more)", others.len())),
    }
}

fn explain(check: &Value) -> String {
    let word = |key: &str| check[key].as_str().unwrap_or_default();
    let why = if word("errorMessage").is_empty() { word("description") } else { word("errorMessage") };
    format!("{} {}: {}", word("id"), word("status"), why.lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Verdict, read, scenario};
    use std::fs;

    #[test]
    fn folder_is_named_after_its_scenario() {
        assert_eq!(scenario("tools_call-2026-08-07T14-58-45-123Z"), Some("tools_call"));
        assert_eq!(
            scenario("server-server-stateless-2026-08-07T14-58-45-123Z"),
            Some("server-server-stateless")
        );
        assert_eq!(scenario("log.txt"), None);
        assert_eq!(scenario("auth"), None);
        assert_eq!(scenario("a-name-that-is-long-but-has-no-time-at-its-end"), None);
    }

    #[test]
    fn success_without_other_warnings_passes() {
        let folder = std::env::temp_dir().join(format!("xtask-verdict-{}", std::process::id()));
        let cases = [
            ("server-good", Some(r#"[{"status":"SUCCESS"},{"status":"SKIPPED"}]"#)),
            (
                "auth/warned",
                Some(r#"[{"status":"SUCCESS"},{"id":"a","status":"WARNING","errorMessage":"late"}]"#),
            ),
            ("late", Some(r#"[{"status":"SUCCESS"},{"id":"client-sse-retry-timing","status":"WARNING"}]"#)),
            ("late-only", Some(r#"[{"id":"client-sse-retry-timing","status":"WARNING"}]"#)),
            (
                "very-late",
                Some(r#"[{"status":"SUCCESS"},{"id":"client-sse-retry-timing","status":"FAILURE"}]"#),
            ),
            ("bad", Some(r#"[{"id":"b","status":"FAILURE","description":"Says so"},{"status":"WARNING"}]"#)),
            ("idle", Some(r#"[{"status":"SKIPPED"}]"#)),
            ("dead", None),
        ];
        for (name, checks) in cases {
            let folder = folder.join(format!("{name}-2026-08-07T14-58-45-123Z"));
            fs::create_dir_all(&folder).unwrap();
            if let Some(checks) = checks {
                fs::write(folder.join("checks.json"), checks).unwrap();
            }
        }
        let found = read(&folder, "server-").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let failed = |why: &str| Verdict::Failed(why.to_owned());
        let expected = [
            ("auth/warned", failed("a WARNING: late")),
            ("bad", failed("b FAILURE: Says so (and 1 more)")),
            ("dead", failed("it did not come to its end")),
            ("good", Verdict::Passed { checks: 1, warned: false }),
            ("idle", failed("nothing was checked")),
            ("late", Verdict::Passed { checks: 1, warned: true }),
            ("late-only", failed("nothing was checked")),
            ("very-late", failed("client-sse-retry-timing FAILURE: ")),
        ];
        assert_eq!(found, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    }

    #[test]
    fn failure_of_the_suite_counts_unless_the_warning_explains_it() {
        let given =
            |warned, success, log: &str| Verdict::Passed { checks: 2, warned }.with_status(success, log);
        let warned = "Passed: 2/2, 0 failed, 1 warnings\n\n❌ OVERALL: FAILED\n";
        let exited = format!("\n⚠️  CLIENT EXITED WITH ERROR (code 1) - Test may be incomplete\n{warned}");
        assert!(given(false, true, "").passed());
        assert_eq!(given(true, false, warned), Verdict::Passed { checks: 2, warned: true });
        assert!(!given(false, false, warned).passed());
        assert!(!given(true, false, "Client test error: Error: it cannot be stopped\n").passed());
        let reason = "CLIENT EXITED WITH ERROR (code 1) - Test may be incomplete";
        assert_eq!(given(true, false, &exited), Verdict::Failed(reason.to_owned()));
        assert_eq!(given(false, false, &exited), Verdict::Failed(reason.to_owned()));
        let failed = Verdict::Failed("a FAILURE: no".to_owned());
        assert_eq!(failed.clone().with_status(false, &exited), failed);
    }
}
