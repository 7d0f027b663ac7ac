//! Counting instructions with gungraun and valgrind: the runner of gungraun is installed where it is missing.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{BENCH, LIMIT, Measured};
use crate::debian::{self, Package};
use crate::process::Program;
use crate::steps::Stop;
use crate::tools::Tool;

pub(crate) const VALGRIND: Package = Package { name: "valgrind", find: || debian::in_path("valgrind") };

/// Instructions by bench.
pub(super) fn count(root: &Path) -> Result<Vec<Measured>, Stop> {
    VALGRIND.require()?;
    let runner = runner(root).map_err(Stop::skipped)?;
    let output = Program::cargo(root, LIMIT)
        .args(BENCH)
        .args(["--bench", "instructions", "--", "--output-format=json"])
        .env("GUNGRAUN_RUNNER", &runner.display().to_string())
        .successful_output()?;
    let counts: Vec<Measured> = output.lines().filter_map(measured).collect();
    // A bench whose symbols were stripped cannot be told apart in the profile and counts as nothing, which would keep
    // every budget.
    if counts.is_empty() || counts.iter().any(|(_, count)| *count == 0) {
        return Err("gungraun has counted nothing; are the symbols of the benches stripped?".into());
    }
    Ok(counts)
}

/// Reads one line of output: which bench, and how many instructions.
fn measured(line: &str) -> Option<Measured> {
    let summary: Value = serde_json::from_str(line).ok()?;
    let name = format!("{} {}", summary["function_name"].as_str()?, summary["id"].as_str()?);
    // "Ir" is the event "instruction read"; beside the new count there may be one from a run before.
    let total = &summary["profiles"][0]["data"]["total"];
    Some((name, total["metrics"]["Ir"]["values"]["new"].as_u64()?))
}

/// The runner of the version that the benches are built with, below `target/`.
pub(super) fn runner(root: &Path) -> Result<PathBuf, String> {
    let version = version(root)?;
    Tool { package: "gungraun-runner", program: "gungraun-runner", version: &version, options: &[] }.install()
}

/// Which version the workspace asks for. The runner must be the very same one.
fn version(root: &Path) -> Result<String, String> {
    let manifest =
        fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let pinned = manifest.lines().find_map(|line| line.strip_prefix("gungraun = \"=")?.strip_suffix('"'));
    pinned.map(str::to_owned).ok_or_else(|| "Cargo.toml does not pin gungraun".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn the_version_is_pinned() {
        assert!(version(&root()).unwrap().split('.').all(|part| part.parse::<u32>().is_ok()));
    }

    #[test]
    fn a_summary_is_read_with_and_without_a_run_before() {
        for values in [r#"{"new":1234}"#, r#"{"new":1234,"old":99}"#] {
            let line = format!(
                r#"{{"function_name":"pipe","id":"echo","profiles":[{{"data":{{"parts":[],"total":{{"metrics":{{"Ir":{{"values":{values}}}}}}}}}}}]}}"#
            );
            assert_eq!(measured(&line), Some(("pipe echo".to_owned(), 1234)), "{line}");
        }
        assert_eq!(measured("Compiling"), None);
    }
}
