//! `cargo xtask bless`: writes the golden files, and shows the difference.
//!
//! Budgets are not among them: the cost of the hot path is decided, not measured.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::documents::collect;
use crate::output::say;
use crate::process::Program;
use crate::workspace::{Workspace, root};
use crate::{api, screens, suites};

/// Git only compares files here.
const LIMIT: Duration = Duration::from_mins(5);

/// Variables that make the libraries that compare write instead.
static WRITE: [(&str, &str); 2] = [("INSTA_UPDATE", "always"), ("TRYBUILD", "overwrite")];

/// The files that are written.
const WRITTEN: [&str; 4] = ["*.snap", "*.stderr", "*public-api.txt", "*.md"];

/// Writes everything, and returns whether nothing else was wrong.
pub(crate) fn run() -> Result<bool, String> {
    let packages = with_golden_files()?;
    let tests = suites::run(|package| packages.contains(package), &WRITE);
    api::write()?;
    screens::write()?;
    say!("\n=== difference");
    let git = |arguments: &[&str]| {
        Program::new("git", LIMIT).directory(&root()).args(arguments).args(["--"]).args(WRITTEN).run()
    };
    git(&["--no-pager", "diff", "--stat"])?;
    git(&["ls-files", "--others", "--exclude-standard"])?;
    let failed = match tests {
        Ok(failures) if failures.is_empty() => return Ok(true),
        Ok(failures) => failures.into_iter().map(|failure| failure.name).collect::<Vec<_>>().join("\n"),
        Err(stop) => stop.reason().to_owned(),
    };
    say!("\n{failed}\nThese tests fail for other reasons than a golden file; their output is above.");
    Ok(false)
}

/// Returns the crates whose tests compare with files.
fn with_golden_files() -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for package in Workspace::read(&root())?.packages {
        let mut files = Vec::new();
        for extension in ["snap", "stderr"] {
            collect(&root().join(&package.folder), extension, &mut files)?;
        }
        if !files.is_empty() {
            found.insert(package.name);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::with_golden_files;

    #[test]
    fn crates_with_snapshots_and_compiler_messages_are_found() {
        let found = with_golden_files().unwrap();
        assert!(found.contains("toolwire-cli") && found.contains("toolwire-macros-tests"), "{found:?}");
        assert!(!found.contains("toolwire-protocol"), "{found:?}");
    }
}
