//! Stamps of steps of `--all` that have passed: such a step is not repeated while its files are the same.
//!
//! A stamp is a file `STEP` below `~/.cache/toolwire/checks`, with a hash of everything that the step reads and the time
//! at which it passed. `--only` repeats a step whatever its stamp says, and removes the stamp if the step fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::Step;
use super::outcome::{Ended, Stop};
use crate::output::{hex, say};
use crate::process::Program;
use crate::setup;
use crate::workspace::cache;

/// Every program here only answers a question.
const LIMIT: Duration = Duration::from_mins(5);

/// The files and folders that each of these steps reads, beside its own and the manifests: code, and everything that
/// decides how it is built and run.
const FOR_ALL: [&str; 8] =
    ["Cargo.lock", "clippy.toml", "rust-toolchain.toml", ".cargo", "crates", "examples", "interop", "xtask"];

/// The stamps of some steps, and what would be in them now.
#[derive(Debug)]
pub(super) struct Stamps {
    folder: PathBuf,
    root: PathBuf,
    /// By the name of the step.
    hashes: BTreeMap<&'static str, String>,
}

/// A step that has passed before with the files that there are now.
#[derive(Debug, PartialEq)]
pub(super) struct Unchanged {
    pub(super) name: &'static str,
    /// The time at which it passed, in words.
    pub(super) passed: String,
}

impl Stamps {
    /// Returns the stamps of this user for those of the steps that may have one. There are none where the files cannot
    /// be listed, as without git.
    pub(super) fn of(steps: &[&Step], root: &Path) -> Option<Self> {
        if steps.iter().all(|step| step.reads.is_none()) {
            return None;
        }
        Self::within(cache()?.join("checks"), steps, root)
            .inspect_err(|error| say!("there are no stamps: {error}"))
            .ok()
    }

    fn within(folder: PathBuf, steps: &[&Step], root: &Path) -> Result<Self, String> {
        Ok(Self { folder, root: root.to_owned(), hashes: hashes(steps, root)? })
    }

    /// Returns when a step has passed with its files as they are, if it has.
    pub(super) fn unchanged(&self, step: &Step) -> Option<Unchanged> {
        let text = fs::read_to_string(self.folder.join(step.name)).ok()?;
        let (hash, passed) = text.trim_end().split_once(' ')?;
        let is_same = self.hashes.get(step.name)? == hash;
        is_same.then(|| Unchanged { name: step.name, passed: passed.to_owned() })
    }

    /// Writes the stamps of steps that have passed with files that have not changed meanwhile, and removes those of steps
    /// that have failed.
    pub(super) fn update(&self, steps: &[&Step], ended: &[Ended]) {
        let after = hashes(steps, &self.root).inspect_err(|error| say!("no stamp is written: {error}"));
        let after = after.unwrap_or_default();
        for Ended { name, outcome, flaky, .. } in ended {
            let Some(hash) = self.hashes.get(name) else { continue };
            let written = match outcome {
                Ok(()) if flaky.is_empty() && after.get(name) == Some(hash) => self.put(name, hash),
                // It could not be tried, or something has changed: an older stamp says what it said.
                Ok(()) | Err(Stop::Skipped(_)) => Ok(()),
                Err(Stop::Failed(_)) => self.remove(name),
            };
            if let Err(error) = written {
                say!("the stamp of {name}: {error}");
            }
        }
    }

    fn put(&self, step: &str, hash: &str) -> Result<(), String> {
        let now = Program::new("date", LIMIT).args(["+%Y-%m-%d %H:%M"]).successful_output()?;
        let explain = |error: std::io::Error| format!("{}: {error}", self.folder.display());
        fs::create_dir_all(&self.folder).map_err(explain)?;
        fs::write(self.folder.join(step), format!("{hash} {now}")).map_err(explain)
    }

    fn remove(&self, step: &str) -> Result<(), String> {
        let path = self.folder.join(step);
        if !path.exists() {
            return Ok(());
        }
        fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Returns a hash for each step that may have a stamp: over the compiler, the packages of Debian that steps need, and the
/// names and contents of the files that it reads, committed or not.
fn hashes(steps: &[&Step], root: &Path) -> Result<BTreeMap<&'static str, String>, String> {
    let mut versions = Program::new("rustc", LIMIT).args(["-V"]).directory(root).successful_output()?;
    let packages = Program::new("dpkg-query", LIMIT).args(["-W"]).args(setup::names()).output();
    // It fails if one of them is missing, and still lists the others. Elsewhere than on Debian it is not there.
    versions += &packages.map(|(_, list)| list).unwrap_or_default();
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let names = Program::new("git", LIMIT).args(list).directory(root).successful_output()?;
    // In the order of their names, whatever git knows of them.
    let mut files = BTreeMap::new();
    for name in names.split_terminator('\0') {
        // A file that was removed is in the list until that is committed.
        if let Ok(content) = fs::read(root.join(name)) {
            files.insert(name, Sha256::digest(content));
        }
    }
    let hash = |reads: &[&str]| {
        let mut hash = Sha256::new_with_prefix(&versions);
        for (name, content) in files.iter().filter(|(name, _)| reads_file(reads, name)) {
            hash.update(format!("\0{name}\0"));
            hash.update(content);
        }
        hex(&hash.finalize())
    };
    Ok(steps.iter().filter_map(|step| Some((step.name, hash(step.reads?)))).collect())
}

/// Returns whether a step reads a file.
fn reads_file(reads: &[&str], name: &str) -> bool {
    let path = Path::new(name);
    path.ends_with("Cargo.toml") || FOR_ALL.iter().chain(reads).any(|it| path.starts_with(it))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::{Ended, LIMIT, Program, Stamps, Step, Stop};
    use crate::steps::retry::Flaky;
    use crate::steps::{Outcome, Run, STEPS};

    /// A repository of git and a folder for stamps, removed when dropped.
    struct Project(PathBuf);

    impl Project {
        fn new(name: &str) -> Self {
            let project =
                Self(std::env::temp_dir().join(format!("xtask-stamps-{name}-{}", std::process::id())));
            fs::create_dir_all(project.root()).unwrap();
            project.git(&["init", "-q"]);
            project
        }

        fn root(&self) -> PathBuf {
            self.0.join("root")
        }

        fn git(&self, arguments: &[&str]) {
            Program::new("git", LIMIT).args(arguments).directory(&self.root()).run().unwrap();
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn stamps(&self, steps: &[&Step]) -> Stamps {
            Stamps::within(self.0.join("stamps"), steps, &self.root()).unwrap()
        }

        /// Returns the hash of a step that reads `fuzz`.
        fn hash(&self) -> String {
            self.stamps(&[&step("fuzz")]).hashes["fuzz"].clone()
        }
    }

    impl Drop for Project {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn step(name: &'static str) -> Step {
        Step::main(name, "", || Ok(())).only_with_all().reading(&["fuzz"])
    }

    fn ended(name: &'static str, outcome: Outcome) -> Ended {
        Ended { name, outcome, flaky: vec![], time: LIMIT }
    }

    #[test]
    fn hash_is_that_of_the_files_that_the_step_reads() {
        let project = Project::new("hash");
        let nothing = project.hash();
        assert_eq!(nothing.len(), 64);
        project.write("docs/any.md", "not read");
        project.write("fuzzy.rs", "not read");
        assert_eq!(project.hash(), nothing);
        let mut known = vec![nothing];
        let changes = [
            ("crates/b/src/lib.rs", "a"),
            ("crates/b/src/lib.rs", "b"),
            ("fuzz/it.rs", "a"),
            ("b/Cargo.toml", ""),
            ("xtask/src/x.rs", ""),
        ];
        for (name, text) in changes {
            project.write(name, text);
            let hash = project.hash();
            assert!(!known.contains(&hash), "{name}");
            known.push(hash);
        }
        // Whether git knows a file does not matter.
        project.git(&["add", "crates", "xtask"]);
        assert_eq!(project.hash(), known[5]);
        fs::remove_file(project.root().join("xtask/src/x.rs")).unwrap();
        assert_eq!(project.hash(), known[4]);
    }

    #[test]
    fn step_is_unchanged_if_it_has_passed_with_the_same_files() {
        let project = Project::new("unchanged");
        let (fuzz, other, without) = (step("fuzz"), step("other"), Step::main("without", "", || Ok(())));
        let steps = [&fuzz, &other, &without];
        let ends = |outcome: Outcome| [ended("fuzz", outcome), ended("without", Ok(()))];
        assert_eq!(project.stamps(&steps).unchanged(&fuzz), None);
        project.stamps(&steps).update(&steps, &ends(Ok(())));
        let stamps = project.stamps(&steps);
        let found = stamps.unchanged(&fuzz).unwrap();
        assert_eq!((found.name, found.passed.len()), ("fuzz", "2026-11-19 14:02".len()));
        assert_eq!((stamps.unchanged(&other), stamps.unchanged(&without)), (None, None));
        project.write("fuzz/it.rs", "new");
        assert_eq!(project.stamps(&steps).unchanged(&fuzz), None);
        fs::remove_file(project.root().join("fuzz/it.rs")).unwrap();
        // What could not be tried says nothing new, and what has failed says that the stamp is wrong.
        stamps.update(&steps, &ends(Err(Stop::skipped("not here"))));
        assert!(project.stamps(&steps).unchanged(&fuzz).is_some());
        stamps.update(&steps, &ends(Err("wrong".into())));
        assert_eq!(project.stamps(&steps).unchanged(&fuzz), None);
    }

    #[test]
    fn step_whose_files_change_while_it_runs_gets_no_stamp() {
        let project = Project::new("meanwhile");
        let fuzz = step("fuzz");
        let stamps = project.stamps(&[&fuzz]);
        project.write("fuzz/it.rs", "new");
        stamps.update(&[&fuzz], &[ended("fuzz", Ok(()))]);
        assert_eq!(project.stamps(&[&fuzz]).unchanged(&fuzz), None);
    }

    #[test]
    fn step_with_flaky_parts_gets_no_stamp() {
        let project = Project::new("flaky");
        let fuzz = step("fuzz");
        let flaky = vec![Flaky { name: "a".to_owned(), output: String::new() }];
        project.stamps(&[&fuzz]).update(&[&fuzz], &[Ended { flaky, ..ended("fuzz", Ok(())) }]);
        assert_eq!(project.stamps(&[&fuzz]).unchanged(&fuzz), None);
    }

    #[test]
    fn no_step_of_the_run_for_every_change_has_a_stamp() {
        assert!(STEPS.iter().all(|step| step.run == Run::Release || step.reads.is_none()));
    }
}
