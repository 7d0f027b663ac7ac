//! The test programs of the workspace, started one by one: those of some crates, with an environment of one's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::output::say;
use crate::process::Program;
use crate::programs::SHARED;
use crate::steps::Stop;
use crate::workspace::root;

/// A first build may be slow.
const BUILD_LIMIT: Duration = Duration::from_mins(45);
/// A program takes seconds; those that compile something take a minute or two.
const RUN_LIMIT: Duration = Duration::from_mins(10);

/// A test program that is built.
#[derive(Debug, PartialEq)]
struct Suite {
    /// The crate, and the target of the crate.
    name: String,
    program: PathBuf,
    package: String,
    folder: PathBuf,
}

/// Builds all test programs, runs those of the chosen crates, and fails if one of them does.
pub(crate) fn run(chosen: impl Fn(&str) -> bool, environment: &[(&str, &str)]) -> Result<(), Stop> {
    let suites = built()?;
    let mut failed = Vec::new();
    for suite in suites.iter().filter(|suite| chosen(&suite.package)) {
        say!("\n{}", suite.name);
        if let Err(error) = suite.run(environment) {
            say!("{error}");
            failed.push(suite.name.as_str());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

fn built() -> Result<Vec<Suite>, String> {
    let build = ["--lib", "--bins", "--tests", "--no-run", "--message-format", "json-render-diagnostics"];
    let said = Program::cargo(&root(), BUILD_LIMIT).args(["test"]).args(SHARED).args(build);
    said.successful_output()?.lines().filter_map(|line| Suite::parse(line).transpose()).collect()
}

impl Suite {
    /// Reads one line that cargo wrote; most are about something else.
    ///
    /// # Errors
    ///
    /// Returns an error for a test program that is not understood: leaving it out would count its tests as passed.
    fn parse(line: &str) -> Result<Option<Self>, String> {
        // Macros and build scripts may write lines of their own.
        if !line.starts_with('{') {
            return Ok(None);
        }
        let unknown = |reason: &str| format!("a message of cargo is not understood: {reason}: {line}");
        let message: Value = serde_json::from_str(line).map_err(|error| unknown(&error.to_string()))?;
        if message["executable"].is_null() || message["profile"]["test"] != true {
            return Ok(None);
        }
        Self::of(&message).map(Some).ok_or_else(|| unknown("a member is missing"))
    }

    /// Reads the message about a test program.
    fn of(message: &Value) -> Option<Self> {
        let program = message["executable"].as_str()?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        // An id ends in `/FOLDER#VERSION`, or in `#NAME@VERSION` where the folder has another name.
        let (path, end) = message["package_id"].as_str()?.rsplit_once('#')?;
        let package = end.split_once('@').map_or_else(|| path.rsplit('/').next(), |(name, _)| Some(name))?;
        let target = message["target"]["name"].as_str()?;
        let kind = message["target"]["kind"][0].as_str()?;
        Some(Self {
            name: format!("{package} {kind} {target}"),
            program: program.into(),
            package: package.to_owned(),
            folder,
        })
    }

    fn run(&self, environment: &[(&str, &str)]) -> Result<(), String> {
        // As cargo does it.
        let mut program = Program::new(&self.program, RUN_LIMIT)
            .args(["--quiet"])
            .directory(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder.to_string_lossy())
            .env("CARGO_PKG_NAME", &self.package);
        for (name, value) in environment {
            program = program.env(name, value);
        }
        program.run()
    }
}

#[cfg(test)]
mod tests {
    use super::Suite;

    #[test]
    fn messages_of_cargo_are_understood() {
        let line = |id: &str, test: bool| {
            format!(
                r#"{{"package_id":"{id}","manifest_path":"/w/crates/a/Cargo.toml","target":{{"name":"it","kind":["test"]}},"profile":{{"test":{test}}},"executable":"/t/it-1"}}"#
            )
        };
        let found = |package: &str| {
            Some(Suite {
                name: format!("{package} test it"),
                program: "/t/it-1".into(),
                package: package.to_owned(),
                folder: "/w/crates/a".into(),
            })
        };
        assert_eq!(Suite::parse(&line("path+file:///w/crates/a#0.1.0", true)), Ok(found("a")));
        assert_eq!(Suite::parse(&line("path+file:///w/other#b@0.1.0", true)), Ok(found("b")));
        assert_eq!(Suite::parse(&line("path+file:///w/crates/a#0.1.0", false)), Ok(None));
        assert_eq!(Suite::parse("written by a macro"), Ok(None));
        for strange in [line("a 0.1.0", true), "{".to_owned()] {
            let error = Suite::parse(&strange).unwrap_err();
            assert!(error.starts_with("a message of cargo is not understood: "), "{error}");
        }
    }
}
