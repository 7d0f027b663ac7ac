//! Changes to the code that safety depends on, one at a time, to find those that no test notices.
//!
//! It takes hours, so it is not among the checks. What survives has to be in `xtask/mutants.txt` with a reason, and
//! what is listed there must survive: the list may only shrink.
//!
//! Mutants that were caught are kept below `~/.cache/toolwire/mutants`, and a run that was interrupted goes on after them.
//! They are not kept when code changes. A change of tests is assumed to add some; `--fresh` assumes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::output::{hex, say};
use crate::process::Program;
use crate::sources;
use crate::tools;
use crate::workspace::{cache, root};

/// Days, on a slow machine.
const LIMIT: Duration = Duration::from_hours(48);

/// The survivors we know, with reasons.
const KNOWN: &str = "xtask/mutants.txt";

/// Code that is changed, and the tests that ought to notice.
struct Area {
    name: &'static str,
    /// A module: the file of this name, the folder of this name, or both.
    module: &'static str,
    package: &'static str,
    /// Which tests: those of the area itself. A mutant that only some test far away notices counts as missed, which is
    /// strict, and saves most of the time.
    tests: &'static [&'static str],
}

const AREAS: &[Area] = &[
    Area {
        name: "seal",
        module: "crates/toolwire-protocol/src/seal",
        package: "toolwire-protocol",
        tests: &["--lib", "seal"],
    },
    Area {
        name: "classify",
        module: "crates/toolwire-protocol/src/classify",
        package: "toolwire-protocol",
        tests: &["--lib", "classify"],
    },
    Area {
        name: "edge",
        module: "crates/toolwire-http/src/server/edge",
        package: "toolwire-http",
        tests: &["--lib", "edge"],
    },
    Area {
        name: "admission",
        module: "crates/toolwire-server/src/admission",
        package: "toolwire-server",
        tests: &["--lib", "--tests", "admission"],
    },
    Area {
        name: "ledger",
        module: "crates/toolwire-transport/src/ledger",
        package: "toolwire-transport",
        tests: &["--lib", "ledger"],
    },
];

/// Changes these areas, or all, and returns whether every survivor is known. A fresh run tries all mutants again.
pub(crate) fn run(names: &[String], fresh: bool) -> Result<bool, String> {
    let areas = select(names)?;
    for area in &areas {
        area.files()?;
    }
    let known = known(&root())?;
    let cache = cache().ok_or("there is no folder for the results: set HOME")?.join("mutants");
    let program = tools::MUTANTS.install()?;
    let mut wrong = Vec::new();
    let mut lines = vec![line("area", ["mutants", "earlier", "caught", "missed", "unviable"])];
    for area in areas {
        let results = area.run(&program, &area.folder(&cache, fresh)?)?;
        let count = |name: &str| results.get(name).map_or(0, Vec::len);
        // A mutant that hangs was noticed: its tests did not pass.
        let caught = count("caught") + count("timeout");
        let (earlier, missed, unviable) = (count(EARLIER), count("missed"), count("unviable"));
        let all = earlier + caught + missed + unviable;
        if all == 0 {
            return Err(format!(
                "no mutant of `{}` was tried; the output of cargo-mutants is above",
                area.name
            ));
        }
        let counts = [all, earlier, caught, missed, unviable].map(|count| count.to_string());
        lines.push(line(area.name, counts.each_ref().map(String::as_str)));
        let missed = results.get("missed").map(Vec::as_slice).unwrap_or_default();
        wrong.extend(differences(area, missed, &known));
    }
    say!("\n{}", lines.join("\n"));
    for difference in &wrong {
        say!("{difference}");
    }
    Ok(wrong.is_empty())
}

/// Returns a line of the table at the end.
fn line(area: &str, [all, earlier, caught, missed, unviable]: [&str; 5]) -> String {
    format!("{area:<12}{all:>9}{earlier:>9}{caught:>9}{missed:>9}{unviable:>10}")
}

fn select(names: &[String]) -> Result<Vec<&'static Area>, String> {
    if let Some(unknown) = names.iter().find(|name| AREAS.iter().all(|area| area.name != *name)) {
        let all: Vec<&str> = AREAS.iter().map(|area| area.name).collect();
        return Err(format!("there is no area `{unknown}`; there are {}", all.join(", ")));
    }
    Ok(AREAS.iter().filter(|area| names.is_empty() || names.iter().any(|name| name == area.name)).collect())
}

impl Area {
    /// Its sources. An area without any would find nothing wrong for ever.
    fn files(&self) -> Result<Vec<String>, String> {
        let paths = sources::read(&root())?.into_iter().map(|source| source.path);
        let files: Vec<String> = paths.filter(|path| self.has(path)).collect();
        if files.is_empty() {
            return Err(format!("the area `{}` has no files: there is no {}", self.name, self.module));
        }
        Ok(files)
    }

    fn has(&self, path: &str) -> bool {
        path.strip_prefix(self.module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Returns the folder with the results of this area in this checkout, emptied unless they are of the same code.
    fn folder(&self, cache: &Path, fresh: bool) -> Result<PathBuf, String> {
        let checkout = hex(&Sha256::digest(root().as_os_str().as_encoded_bytes()));
        let place = cache.join(format!("{}-{}", self.name, &checkout[..8]));
        let key = place.join("code");
        let code = Self::code()?;
        if fresh || fs::read_to_string(&key).ok().as_ref() != Some(&code) {
            let _ = fs::remove_dir_all(&place);
            fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
            fs::write(&key, code).map_err(|error| format!("{}: {error}", key.display()))?;
        }
        Ok(place)
    }

    /// Returns a hash over what decides which mutants there are and what else they run with: the crates of this workspace
    /// without their tests, the versions of other crates, the compiler and the areas themselves.
    fn code() -> Result<String, String> {
        let fixed = ["Cargo.lock", "rust-toolchain.toml", "xtask/src/mutants.rs"].map(str::to_owned);
        let files = sources::read(&root())?.into_iter().map(|source| source.path);
        let mut hash = Sha256::new();
        for path in files.chain(fixed) {
            let content = fs::read(root().join(&path)).map_err(|error| format!("{path}: {error}"))?;
            hash.update(format!("\0{path}\0"));
            hash.update(content);
        }
        Ok(hex(&hash.finalize()))
    }

    /// Runs cargo-mutants and returns its results: mutants by outcome.
    fn run(&self, program: &Path, place: &Path) -> Result<BTreeMap<&'static str, Vec<String>>, String> {
        let mut mutate = Program::new(program, LIMIT)
            .directory(&root())
            .args(["mutants", "--iterate", "--no-shuffle", "--all-features", "--package", self.package])
            .args(["--output"])
            .args([place]);
        for file in self.files()? {
            mutate = mutate.args(["--file", &file]);
        }
        let status = mutate.args(["--"]).args(self.tests).status()?;
        if !is_complete(status.code()) {
            return Err(format!("cargo-mutants could not try `{}`: {status}", self.name));
        }
        read(&place.join("mutants.out"))
    }
}

/// Returns whether cargo-mutants has tried all mutants: with nothing missed, some missed, or some that hang. Otherwise, as
/// when the tests fail without any mutant, its lists say nothing.
fn is_complete(code: Option<i32>) -> bool {
    matches!(code, Some(0 | 2 | 3))
}

/// The list of mutants that earlier runs caught or could not compile.
const EARLIER: &str = "previously_caught";

fn read(folder: &Path) -> Result<BTreeMap<&'static str, Vec<String>>, String> {
    let list = |name: &'static str| {
        let path: PathBuf = folder.join(format!("{name}.txt"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((name, text.lines().map(without_place).collect()))
    };
    [EARLIER, "caught", "missed", "timeout", "unviable"].into_iter().map(list).collect()
}

/// `a.rs:12:5: replace x` without the line and the column, which any change above moves.
fn without_place(mutant: &str) -> String {
    let mut parts = mutant.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(path), Some(_), Some(_), Some(change)) => format!("{path}:{change}"),
        _ => mutant.to_owned(),
    }
}

/// Survivors and the reason of each.
fn known(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = fs::read_to_string(root.join(KNOWN)).map_err(|error| format!("{KNOWN}: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let entry = |line: &str| match line.split_once(" # ") {
        Some((mutant, reason)) if !reason.trim().is_empty() => {
            Ok((mutant.trim().to_owned(), reason.trim().to_owned()))
        }
        _ => Err(format!("{KNOWN}: not `MUTANT # REASON`: {line}")),
    };
    lines.map(entry).collect()
}

fn differences(area: &Area, missed: &[String], known: &BTreeMap<String, String>) -> Vec<String> {
    let new = missed.iter().filter(|mutant| !known.contains_key(*mutant));
    let new =
        new.map(|mutant| format!("MISSED  {mutant}: no test notices, and {KNOWN} has no reason for it"));
    let path = |mutant: &str| mutant.split(':').next().unwrap_or_default().to_owned();
    let gone = known.keys().filter(|mutant| area.has(&path(mutant)) && !missed.contains(mutant));
    let gone = gone.map(|mutant| format!("CAUGHT  {mutant}: take it off {KNOWN}"));
    new.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_survivors_can_be_read() {
        known(&root()).unwrap();
        assert!(parse("a.rs: replace x\n").unwrap_err().contains("MUTANT # REASON"));
    }

    #[test]
    fn every_survivor_needs_a_reason_and_every_reason_a_survivor() {
        let area = &AREAS[0];
        let mutant = |change: &str| format!("{}/mod.rs: {change}", area.module);
        let known = parse(&format!("# why\n{} # it only saves time\nother.rs: z # elsewhere\n", mutant("x")))
            .unwrap();
        assert!(differences(area, &[mutant("x")], &known).is_empty());
        let found = differences(area, &[mutant("y")], &known);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("MISSED") && found[1].starts_with("CAUGHT"), "{found:?}");
    }

    #[test]
    fn an_area_is_a_module_however_it_is_laid_out() {
        let area = &AREAS[0];
        for (rest, expected) in [(".rs", true), ("/mod.rs", true), ("/a/b.rs", true), ("er.rs", false)] {
            assert_eq!(area.has(&format!("{}{rest}", area.module)), expected, "{rest}");
        }
    }

    #[test]
    fn results_are_kept_while_the_code_is_the_same() {
        let cache = std::env::temp_dir().join(format!("xtask-mutants-{}", std::process::id()));
        let area = &AREAS[0];
        let place = area.folder(&cache, false).unwrap();
        let result = place.join("caught.txt");
        fs::write(&result, "").unwrap();
        area.folder(&cache, false).unwrap();
        assert!(result.exists());
        AREAS[1].folder(&cache, true).unwrap();
        assert!(result.exists(), "another area has a folder of its own");
        area.folder(&cache, true).unwrap();
        assert!(!result.exists(), "a fresh run keeps nothing");
        fs::write(&result, "").unwrap();
        fs::write(place.join("code"), "other").unwrap();
        area.folder(&cache, false).unwrap();
        assert!(!result.exists(), "results of other code");
        fs::remove_dir_all(&cache).unwrap();
    }

    #[test]
    fn lists_count_only_when_all_mutants_were_tried() {
        for (code, expected) in
            [(Some(0), true), (Some(2), true), (Some(3), true), (Some(4), false), (None, false)]
        {
            assert_eq!(is_complete(code), expected, "{code:?}");
        }
    }

    #[test]
    fn a_mutant_is_known_wherever_it_has_moved() {
        assert_eq!(
            without_place("a/b.rs:12:5: replace a::b -> bool with true"),
            "a/b.rs: replace a::b -> bool with true"
        );
    }
}
