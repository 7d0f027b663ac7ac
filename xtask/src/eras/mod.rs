//! Who may look at the era of a revision.
//!
//! A few places own the eras; everybody else asks for a fact (`Version::has`) or an ability. What was there before
//! this rule is in `xtask/eras.txt`, a count for each file, which may only shrink: `cargo xtask eras` lowers it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::output::say;
use crate::sources::{self, Source};
use crate::steps::{Outcome, none};
use crate::workspace::root;

/// What asks for the era.
const TESTS: &[&str] = &["is_modern(", "is_legacy(", "Era::Modern", "Era::Legacy"];

/// Whose business it is, and why.
const OWNERS: &[(&str, &str)] = &[
    ("crates/toolwire-protocol/src/version.rs", "says which revision belongs to which era"),
    ("crates/toolwire-protocol/src/method.rs", "the one table of what exists in which revision"),
    ("crates/toolwire-protocol/src/peek.rs", "finds out what routing needs, before the revision is known"),
    ("crates/toolwire-protocol/src/classify/", "decides on the way in"),
    ("crates/toolwire-protocol/src/codec/", "decides on the way out"),
    ("crates/toolwire-protocol/src/probe/", "finds out which era a peer speaks"),
    ("crates/toolwire-client/src/connect/", "agrees with the server on a revision, and turns it into facts"),
    ("crates/toolwire-testkit/src/", "runs every test in each era"),
    ("crates/toolwire-cli/src/commands/probe/", "shows people what a server speaks"),
];

/// Where the counts are.
const ALLOWED: &str = "xtask/eras.txt";

/// Era tests by file.
type Counts = BTreeMap<String, usize>;

/// Fails on every era test that is new.
pub(crate) fn run() -> Outcome {
    let found = count(&sources::read(&root())?);
    let allowed = read(&root())?;
    say!("{} era tests outside the owners, {} allowed", total(&found), total(&allowed));
    none(&differences(&found, &allowed))
}

/// Lowers the counts to what is there; never raises one.
pub(crate) fn write() -> Result<bool, String> {
    let found = count(&sources::read(&root())?);
    let allowed = read(&root())?;
    let lowered: Counts = allowed
        .iter()
        .filter_map(|(path, allowed)| Some((path.clone(), *found.get(path)?.min(allowed))))
        .collect();
    let mut text = HEAD.to_owned();
    for (path, count) in &lowered {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{path} {count}");
    }
    fs::write(root().join(ALLOWED), text).map_err(|error| format!("{ALLOWED}: {error}"))?;
    let differences = differences(&found, &lowered);
    for difference in &differences {
        say!("{difference}");
    }
    say!("{} era tests outside the owners, {} before", total(&lowered), total(&allowed));
    Ok(differences.is_empty())
}

const HEAD: &str = "\
# How many era tests each file has that is not among the owners (xtask/src/eras/mod.rs). The numbers may only shrink:
# ask for a fact instead, and run `cargo xtask eras`.
";

fn total(counts: &Counts) -> usize {
    counts.values().sum()
}

fn count(sources: &[Source]) -> Counts {
    let is_owned = |source: &&Source| OWNERS.iter().any(|(owner, _)| source.path.starts_with(owner));
    let mut counts = Counts::new();
    for source in sources.iter().filter(|source| !is_owned(source)) {
        let tests = |line: &str| TESTS.iter().map(|test| line.matches(test).count()).sum::<usize>();
        let found: usize = source.lines.iter().map(|(_, line)| tests(line)).sum();
        if found > 0 {
            counts.insert(source.path.clone(), found);
        }
    }
    counts
}

fn read(root: &Path) -> Result<Counts, String> {
    let text = fs::read_to_string(root.join(ALLOWED)).map_err(|error| format!("{ALLOWED}: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Counts, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let entry = |line: &str| {
        let (path, count) = line.split_once(' ')?;
        Some((path.to_owned(), count.trim().parse().ok()?))
    };
    lines.map(|line| entry(line).ok_or_else(|| format!("{ALLOWED}: not `PATH COUNT`: {line}"))).collect()
}

fn differences(found: &Counts, allowed: &Counts) -> Vec<String> {
    let mut differences = Vec::new();
    for (path, found) in found {
        let allowed = allowed.get(path).copied().unwrap_or_default();
        if *found > allowed {
            differences.push(format!(
                "{path} looks at the era {found} times, {allowed} are allowed: ask for a fact, or be an owner"
            ));
        }
    }
    for (path, allowed) in allowed {
        let found = found.get(path).copied().unwrap_or_default();
        if found < *allowed {
            differences.push(format!(
                "{path} looks at the era {found} times, {allowed} are allowed: run `cargo xtask eras`"
            ));
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(entries: &[(&str, usize)]) -> Counts {
        entries.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect()
    }

    #[test]
    fn owners_exist() {
        for (owner, _) in OWNERS {
            assert!(root().join(owner).exists(), "{owner}");
        }
    }

    #[test]
    fn every_test_outside_the_owners_is_counted() {
        let source =
            |path: &str, line: &str| Source { path: path.to_owned(), lines: vec![(1, line.to_owned())] };
        let sources = [
            source("crates/toolwire-server/src/a.rs", "if v.is_modern() || era == Era::Legacy {"),
            source("crates/toolwire-server/src/b.rs", "let modern = true;"),
            source("crates/toolwire-protocol/src/codec/mod.rs", "if v.is_modern() {"),
        ];
        assert_eq!(count(&sources), counts(&[("crates/toolwire-server/src/a.rs", 2)]));
    }

    #[test]
    fn counts_may_neither_grow_nor_be_left_too_high() {
        let allowed = counts(&[("a", 2), ("b", 1)]);
        assert!(differences(&allowed, &allowed).is_empty());
        let found = differences(&counts(&[("a", 3), ("c", 1)]), &allowed);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("a looks at the era 3 times, 2 are allowed: ask"), "{found:?}");
        assert!(found[1].starts_with("c looks at the era 1 times, 0 are allowed"), "{found:?}");
        assert!(found[2].starts_with("b looks at the era 0 times, 1 are allowed: run"), "{found:?}");
    }

    #[test]
    fn the_file_is_understood() {
        assert_eq!(parse("# why\n\na/b.rs 3\n"), Ok(counts(&[("a/b.rs", 3)])));
        assert!(parse("a/b.rs many").is_err());
    }
}
