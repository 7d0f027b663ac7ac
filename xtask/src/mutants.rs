//! Changes to the code that safety depends on, one at a time, to find those that no test notices.
//!
//! It takes hours, so it is not among the checks. What survives has to be in `xtask/mutants.txt` with a reason, and
//! what is listed there must survive: the list may only shrink.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::output::say;
use crate::process::Program;
use crate::sources;
use crate::tools;
use crate::workspace::{Workspace, root};

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

/// Changes these areas, or all, and says whether every survivor is known.
pub(crate) fn run(names: &[String]) -> Result<bool, String> {
    let areas = select(names)?;
    for area in &areas {
        area.files()?;
    }
    let known = known(&root())?;
    let program = tools::MUTANTS.install()?;
    let mut wrong = Vec::new();
    let mut lines =
        vec![format!("{:<12}{:>9}{:>9}{:>9}{:>10}", "area", "mutants", "caught", "missed", "unviable")];
    for area in areas {
        let results = area.run(&program)?;
        let count = |name: &str| results.get(name).map_or(0, Vec::len);
        // A mutant that hangs was noticed: its tests did not pass.
        let caught = count("caught") + count("timeout");
        let (missed, unviable) = (count("missed"), count("unviable"));
        let all = caught + missed + unviable;
        if all == 0 {
            // Most likely the tests fail without any change, and nothing was tried.
            return Err(format!("no mutant of `{}` was tried; what cargo-mutants said is above", area.name));
        }
        lines.push(format!("{:<12}{all:>9}{caught:>9}{missed:>9}{unviable:>10}", area.name));
        let missed = results.get("missed").map(Vec::as_slice).unwrap_or_default();
        wrong.extend(differences(area, missed, &known));
    }
    say!("\n{}", lines.join("\n"));
    for difference in &wrong {
        say!("{difference}");
    }
    Ok(wrong.is_empty())
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

    /// Runs cargo-mutants and returns what it has written: mutants by what became of them.
    fn run(&self, program: &Path) -> Result<BTreeMap<&'static str, Vec<String>>, String> {
        let place = Workspace::read(&root())?.target.join("mutants").join(self.name);
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let mut mutate = Program::new(program, LIMIT)
            .directory(&root())
            .args(["mutants", "--no-shuffle", "--all-features", "--package", self.package])
            .args(["--output"])
            .args([&place]);
        for file in self.files()? {
            mutate = mutate.args(["--file", &file]);
        }
        // How it ends says only that something was missed, which is looked at below.
        mutate = mutate.args(["--"]).args(self.tests);
        if let Err(error) = mutate.run() {
            say!("{error}");
        }
        read(&place.join("mutants.out"))
    }
}

fn read(folder: &Path) -> Result<BTreeMap<&'static str, Vec<String>>, String> {
    let list = |name: &'static str| {
        let path: PathBuf = folder.join(format!("{name}.txt"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((name, text.lines().map(without_place).collect()))
    };
    ["caught", "missed", "timeout", "unviable"].into_iter().map(list).collect()
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
    fn a_mutant_is_known_wherever_it_has_moved() {
        assert_eq!(
            without_place("a/b.rs:12:5: replace a::b -> bool with true"),
            "a/b.rs: replace a::b -> bool with true"
        );
    }
}
