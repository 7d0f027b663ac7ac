//! What the results of a run mean, by a stricter measure than the suite's own.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// How the name of a folder with results ends: a hyphen and a time such as `2026-08-07T14-58-45-123Z`.
const TIME: &str = "-0000-00-00T00-00-00-000Z";

/// What became of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// This many checks succeeded, and nothing is wrong.
    Passed(usize),
    /// What is wrong.
    Failed(String),
}

/// Every scenario that left something in `folder`, with what became of it. The suite puts `prefix` in front of
/// the names of some.
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

/// The scenario whose results are in a folder of this name.
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
    let wrong: Vec<String> =
        ["FAILURE", "WARNING"].iter().flat_map(|status| having(status)).map(explain).collect();
    let succeeded = having("SUCCESS").len();
    match wrong.as_slice() {
        [] if succeeded > 0 => Verdict::Passed(succeeded),
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
    fn folders_are_named_after_scenarios() {
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
    fn only_success_without_warnings_passes() {
        let folder = std::env::temp_dir().join(format!("xtask-verdict-{}", std::process::id()));
        let cases = [
            ("server-good", Some(r#"[{"status":"SUCCESS"},{"status":"SKIPPED"}]"#)),
            (
                "auth/warned",
                Some(r#"[{"status":"SUCCESS"},{"id":"a","status":"WARNING","errorMessage":"late"}]"#),
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
            ("good", Verdict::Passed(1)),
            ("idle", failed("nothing was checked")),
        ];
        assert_eq!(found, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    }
}
