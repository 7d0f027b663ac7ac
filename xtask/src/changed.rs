//! `cargo xtask check`: what a change most likely breaks, in the time of a cup of tea.
//!
//! Crates are built with the features that the full checks use, so that either finds built what the other has built.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::output::say;
use crate::process::Program;
use crate::programs::SHARED;
use crate::steps;
use crate::workspace::{Package, Workspace, root};

/// A first build may be slow.
const LIMIT: Duration = Duration::from_mins(45);
/// Unit tests take seconds.
const TEST_LIMIT: Duration = Duration::from_mins(5);

/// Files outside all crates that every crate depends on.
const FOR_ALL: &[&str] =
    &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml", ".cargo/config.toml"];

/// Checks formatting, rules and lints, and runs the unit tests of what has changed.
pub(crate) fn run() -> Result<bool, String> {
    let start = Instant::now();
    if !steps::run_quick()? {
        return Ok(false);
    }
    let workspace = Workspace::read(&root())?;
    let affected = affected(&workspace.packages, &changed(&root())?);
    if affected.is_empty() {
        say!("\nno crate has changed since main");
        return Ok(true);
    }
    say!("\n=== unit tests of {}", affected.iter().copied().collect::<Vec<_>>().join(", "));
    let mut failed = 0;
    for test in built(&affected)? {
        let run =
            Program::new(&test.program, TEST_LIMIT).args(["--quiet"]).directory(Path::new(&test.folder));
        if let Err(error) = run.env("CARGO_MANIFEST_DIR", &test.folder).run() {
            say!("{error}");
            failed += 1;
        }
    }
    let verdict =
        if failed == 0 { "everything passed".to_owned() } else { format!("{failed} crates failed") };
    say!(
        "\n{verdict} in {:.1} s; `cargo xtask test` checks what a change has to pass",
        start.elapsed().as_secs_f32()
    );
    Ok(failed == 0)
}

/// What git says has changed since the branch left main, and what is not committed.
fn changed(root: &Path) -> Result<Vec<String>, String> {
    let git = |arguments: &[&str]| Program::new("git", LIMIT).args(arguments).directory(root).output();
    // A clone may have no main; then only what is not committed counts.
    let (status, base) = git(&["merge-base", "HEAD", "main"])?;
    let base = if status.success() { base.trim().to_owned() } else { "HEAD".to_owned() };
    let mut files = Vec::new();
    for list in [&["diff", "--name-only", &*base][..], &["ls-files", "--others", "--exclude-standard"]] {
        let (status, output) = git(list)?;
        if !status.success() {
            return Err(format!("git {} failed: {status}", list.join(" ")));
        }
        files.extend(output.lines().map(str::to_owned));
    }
    Ok(files)
}

/// The crates that these files belong to, and all that depend on them.
fn affected<'a>(packages: &'a [Package], files: &[String]) -> BTreeSet<&'a str> {
    let owner = |file: &String| {
        let owners = packages.iter().filter(|package| Path::new(file).starts_with(&package.folder));
        owners.max_by_key(|package| package.folder.as_os_str().len())
    };
    let mut affected: BTreeSet<&str> = if files.iter().any(|file| FOR_ALL.contains(&file.as_str())) {
        packages.iter().map(|package| package.name.as_str()).collect()
    } else {
        files.iter().filter_map(owner).map(|package| package.name.as_str()).collect()
    };
    loop {
        let depends =
            |package: &&Package| package.dependencies.iter().any(|it| affected.contains(it.name.as_str()));
        let more: Vec<&str> = packages.iter().filter(depends).map(|package| package.name.as_str()).collect();
        let before = affected.len();
        affected.extend(more);
        if affected.len() == before {
            return affected;
        }
    }
}

/// The unit tests of a crate, built.
#[derive(Debug, PartialEq)]
struct UnitTest {
    program: String,
    folder: String,
}

fn built(affected: &BTreeSet<&str>) -> Result<Vec<UnitTest>, String> {
    let build = ["--lib", "--bins", "--no-run", "--message-format", "json-render-diagnostics"];
    let output =
        Program::cargo(&root(), LIMIT).args(["test"]).args(SHARED).args(build).successful_output()?;
    Ok(output.lines().filter_map(|line| unit_test(line, affected)).collect())
}

/// Reads one message of cargo: a test of one of these crates, or something else.
fn unit_test(line: &str, affected: &BTreeSet<&str>) -> Option<UnitTest> {
    let message: Value = serde_json::from_str(line).ok()?;
    let program = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.display().to_string();
    // An id ends in `/FOLDER#VERSION`, or in `#NAME@VERSION` where the folder has another name.
    let id = message["package_id"].as_str()?;
    let (path, end) = id.rsplit_once('#')?;
    let name =
        end.split_once('@').map_or_else(|| path.rsplit('/').next().unwrap_or_default(), |(name, _)| name);
    affected.contains(name).then(|| UnitTest { program: program.to_owned(), folder })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{UnitTest, affected, unit_test};
    use crate::workspace::{Dependency, Kind, Package};

    fn package(name: &str, folder: &str, needs: &[&str]) -> Package {
        let dependencies =
            needs.iter().map(|name| Dependency { name: (*name).to_owned(), kind: Kind::Dev }).collect();
        Package {
            name: name.to_owned(),
            folder: folder.into(),
            published: true,
            programs: vec![],
            dependencies,
            features: vec![],
        }
    }

    #[test]
    fn a_change_affects_its_crate_and_whatever_depends_on_it() {
        let packages = [
            package("a", "crates/a", &[]),
            package("b", "crates/b", &["a"]),
            package("c", "crates/c", &["b"]),
        ];
        let of = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            affected(&packages, &files).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&["crates/b/src/lib.rs"]), ["b", "c"]);
        assert_eq!(of(&["crates/a/Cargo.toml"]), ["a", "b", "c"]);
        assert_eq!(of(&["README.md", "crates/ab/x.rs"]), Vec::<&str>::new());
        assert_eq!(of(&["Cargo.lock"]), ["a", "b", "c"]);
    }

    #[test]
    fn the_messages_of_cargo_are_understood() {
        let line = |id: &str, test: bool| {
            format!(
                r#"{{"package_id":"{id}","manifest_path":"/w/crates/a/Cargo.toml","profile":{{"test":{test}}},"executable":"/t/a-1"}}"#
            )
        };
        let wanted = BTreeSet::from(["a"]);
        let found = Some(UnitTest { program: "/t/a-1".to_owned(), folder: "/w/crates/a".to_owned() });
        assert_eq!(unit_test(&line("path+file:///w/crates/a#0.1.0", true), &wanted), found);
        assert_eq!(unit_test(&line("path+file:///w/other#a@0.1.0", true), &wanted), found);
        assert_eq!(unit_test(&line("path+file:///w/crates/b#0.1.0", true), &wanted), None);
        assert_eq!(unit_test(&line("path+file:///w/crates/a#0.1.0", false), &wanted), None);
        assert_eq!(unit_test("Compiling a", &wanted), None);
    }
}
