//! The change since the branch left main, and the steps that it concerns.

mod edited;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

pub(crate) use edited::Edited;

use crate::process::Program;
use crate::workspace::{Package, Workspace, root};

/// Git only compares files here.
const LIMIT: Duration = Duration::from_mins(5);

/// Files outside all crates that every crate depends on.
const FOR_ALL: &[&str] =
    &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml", ".cargo/config.toml"];

/// The crate of the program.
const PROGRAM: &str = "toolwire-cli";

/// The change since the branch left main, committed or not; on main itself, that of the last commit and since.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Change {
    /// Crates with a file that has changed, and all that depend on them.
    pub(crate) crates: BTreeSet<String>,
    pub(crate) documents: bool,
    pub(crate) fuzz_targets: bool,
}

impl Change {
    /// Reads the change from git.
    pub(crate) fn read() -> Result<Self, String> {
        Ok(Self::of(&Workspace::read(&root())?.packages, &files(&root())?))
    }

    fn of(packages: &[Package], files: &[String]) -> Self {
        let below = |folder: &'static str| files.iter().any(|file| Path::new(file).starts_with(folder));
        let is_document = |file: &String| Path::new(file).extension().is_some_and(|it| it == "md");
        Self {
            crates: affected(packages, files),
            // The folder has the home that screens are taken in, too.
            documents: files.iter().any(is_document) || below("docs"),
            fuzz_targets: below("fuzz"),
        }
    }

    /// Returns `true`: for steps that take seconds, and run whatever has changed.
    pub(crate) fn always(_: &Self) -> bool {
        true
    }

    /// Returns whether code has changed.
    pub(crate) fn code(&self) -> bool {
        !self.crates.is_empty()
    }

    /// Returns whether code has changed, or a document that may contain some.
    pub(crate) fn code_or_documents(&self) -> bool {
        self.code() || self.documents
    }

    /// Returns whether the program has changed, or a crate that it depends on.
    pub(crate) fn program(&self) -> bool {
        self.crates.contains(PROGRAM)
    }

    /// Returns whether the program has changed, or a document that may show its output.
    pub(crate) fn program_or_documents(&self) -> bool {
        self.program() || self.documents
    }

    /// Returns whether the fuzz targets have changed, or a crate that they may depend on.
    pub(crate) fn fuzz_targets(&self) -> bool {
        self.code() || self.fuzz_targets
    }
}

/// Returns the files that the change adds, edits or removes.
fn files(root: &Path) -> Result<Vec<String>, String> {
    // Without one, only what is not committed counts.
    let base = base(root).unwrap_or_else(|_| "HEAD".to_owned());
    let mut files = Vec::new();
    let lists: [&[&str]; 2] = [
        &["diff", "--name-only", "--no-renames", "-z", &base],
        &["ls-files", "--others", "--exclude-standard", "-z"],
    ];
    for list in lists {
        files.extend(git(root, list)?.split_terminator('\0').map(str::to_owned));
    }
    Ok(files)
}

/// Returns the commit before the change: the one where the branch left main, or on main itself the last but one.
///
/// # Errors
///
/// Returns an error if git does not know that commit, as in a shallow clone.
fn base(root: &Path) -> Result<String, String> {
    let commit = |arguments: &[&str]| git(root, arguments).map(|commit| commit.trim().to_owned());
    let head = commit(&["rev-parse", "HEAD"])?;
    let left = |main: &str| commit(&["merge-base", "HEAD", main]);
    match left("main").or_else(|_| left("origin/main")) {
        Ok(base) if base != head => Ok(base),
        _ => commit(&["rev-parse", "--verify", "--quiet", "HEAD~1"]),
    }
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let plain = ["-c", "core.quotePath=false"];
    Program::new("git", LIMIT).args(plain).args(arguments).directory(root).successful_output()
}

/// Returns the crates that these files belong to, and all that depend on them.
fn affected(packages: &[Package], files: &[String]) -> BTreeSet<String> {
    let owner = |file: &String| {
        let owners = packages.iter().filter(|package| Path::new(file).starts_with(&package.folder));
        owners.max_by_key(|package| package.folder.as_os_str().len())
    };
    let mut affected: BTreeSet<String> = if files.iter().any(|file| FOR_ALL.contains(&file.as_str())) {
        packages.iter().map(|package| package.name.clone()).collect()
    } else {
        files.iter().filter_map(owner).map(|package| package.name.clone()).collect()
    };
    loop {
        let depends = |package: &&Package| package.dependencies.iter().any(|it| affected.contains(&it.name));
        let more: Vec<String> = packages.iter().filter(depends).map(|package| package.name.clone()).collect();
        let before = affected.len();
        affected.extend(more);
        if affected.len() == before {
            return affected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Change;
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

    fn change(files: &[&str]) -> Change {
        let packages = [
            package("a", "crates/a", &[]),
            package("b", "crates/b", &["a"]),
            package("toolwire-cli", "crates/toolwire-cli", &["b"]),
        ];
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        Change::of(&packages, &files)
    }

    #[test]
    fn change_affects_its_crate_and_all_that_depend_on_it() {
        let of = |files: &[&str]| change(files).crates.into_iter().collect::<Vec<_>>();
        assert_eq!(of(&["crates/b/src/lib.rs"]), ["b", "toolwire-cli"]);
        assert_eq!(of(&["crates/a/Cargo.toml"]), ["a", "b", "toolwire-cli"]);
        assert_eq!(of(&["README.md", "crates/ab/x.rs"]), Vec::<&str>::new());
        assert_eq!(of(&["Cargo.lock"]), ["a", "b", "toolwire-cli"]);
    }

    #[test]
    fn change_concerns_steps_by_its_files() {
        let document = change(&["README.md"]);
        assert!(document.code_or_documents() && document.program_or_documents());
        assert!(!document.code() && !document.program() && !document.fuzz_targets());
        let home = change(&["docs/screens/home/.cursor/mcp.json"]);
        assert!(home.program_or_documents());
        let target = change(&["fuzz/fuzz_targets/sse.rs"]);
        assert!(target.fuzz_targets() && !target.code_or_documents());
        let code = change(&["crates/a/src/lib.rs"]);
        assert!(code.code() && code.program() && code.fuzz_targets());
    }
}
