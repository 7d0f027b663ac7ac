//! Building the test programs, and what cargo says about them.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::Suite;
use crate::process::Program;
use crate::programs::SHARED;

/// A first build may be slow.
const LIMIT: Duration = Duration::from_mins(45);

/// Builds all test programs of a workspace.
pub(super) fn all(root: &Path) -> Result<Vec<Suite>, String> {
    let build = ["--lib", "--bins", "--tests", "--no-run", "--message-format", "json-render-diagnostics"];
    let said = Program::cargo(root, LIMIT).args(["test"]).args(SHARED).args(build);
    said.successful_output()?.lines().filter_map(|line| parse(line).transpose()).collect()
}

/// Reads one line that cargo wrote; most are about something else.
///
/// # Errors
///
/// Returns an error for a test program that is not understood: leaving it out would count its tests as passed.
fn parse(line: &str) -> Result<Option<Suite>, String> {
    // Macros and build scripts may write lines of their own.
    if !line.starts_with('{') {
        return Ok(None);
    }
    let unknown = |reason: &str| format!("a message of cargo is not understood: {reason}: {line}");
    let message: Value = serde_json::from_str(line).map_err(|error| unknown(&error.to_string()))?;
    if message["executable"].is_null() || message["profile"]["test"] != true {
        return Ok(None);
    }
    suite(&message).map(Some).ok_or_else(|| unknown("a member is missing"))
}

/// Reads the message about a test program.
fn suite(message: &Value) -> Option<Suite> {
    let program = message["executable"].as_str()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    // An id ends in `/FOLDER#VERSION`, or in `#NAME@VERSION` where the folder has another name.
    let (path, end) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = end.split_once('@').map_or_else(|| path.rsplit('/').next(), |(name, _)| Some(name))?;
    let target = message["target"]["name"].as_str()?;
    let kind = message["target"]["kind"][0].as_str()?;
    Some(Suite {
        package: package.to_owned(),
        kind: kind.to_owned(),
        target: target.to_owned(),
        program: program.into(),
        folder,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::{all, parse};
    use crate::output::logged;
    use crate::suites::Suite;

    #[test]
    fn messages_of_cargo_are_understood() {
        let line = |id: &str, test: bool| {
            format!(
                r#"{{"package_id":"{id}","manifest_path":"/w/crates/a/Cargo.toml","target":{{"name":"it","kind":["test"]}},"profile":{{"test":{test}}},"executable":"/t/it-1"}}"#
            )
        };
        let found = |package: &str| {
            Some(Suite {
                package: package.to_owned(),
                kind: "test".to_owned(),
                target: "it".to_owned(),
                program: "/t/it-1".into(),
                folder: "/w/crates/a".into(),
            })
        };
        assert_eq!(parse(&line("path+file:///w/crates/a#0.1.0", true)), Ok(found("a")));
        assert_eq!(parse(&line("path+file:///w/other#b@0.1.0", true)), Ok(found("b")));
        assert_eq!(parse(&line("path+file:///w/crates/a#0.1.0", false)), Ok(None));
        assert_eq!(parse("written by a macro"), Ok(None));
        for strange in [line("a 0.1.0", true), "{".to_owned()] {
            let error = parse(&strange).unwrap_err();
            assert!(error.starts_with("a message of cargo is not understood: "), "{error}");
        }
    }

    #[test]
    fn program_that_does_not_build_is_an_error() {
        let root = std::env::temp_dir().join(format!("xtask-build-{}", std::process::id()));
        fs::create_dir_all(root.join("src")).unwrap();
        let manifest = "[workspace]\n[package]\nname = \"broken\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
        fs::write(root.join("Cargo.toml"), manifest).unwrap();
        let lock = "version = 4\n\n[[package]]\nname = \"broken\"\nversion = \"0.0.0\"\n";
        fs::write(root.join("Cargo.lock"), lock).unwrap();
        fs::write(root.join("src/lib.rs"), "#[test]\nfn one() { none() }\n").unwrap();
        let built = logged(File::create(root.join("log")).unwrap(), || all(&root));
        let said = fs::read_to_string(root.join("log")).unwrap();
        fs::remove_dir_all(&root).unwrap();
        assert!(built.unwrap_err().contains("failed: exit status: 101"));
        assert!(said.contains("cannot find function `none`"), "{said}");
    }
}
