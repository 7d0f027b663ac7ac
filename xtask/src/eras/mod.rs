//! Who may look at the era of a revision.
//!
//! A few places own the eras; everybody else asks for a fact (`Version::has`, `Method::info`) or an ability, and neither
//! asks for the era nor compares revisions. A feature that nobody asks for is not in the table.

use std::path::Path;
use std::{collections::BTreeSet, fs};

use crate::output::say;
use crate::sources::{self, Source};
use crate::steps::{Outcome, none};
use crate::workspace::root;

/// What asks for the era.
const TESTS: &[&str] = &["is_modern", "is_legacy", "Era::Modern", "Era::Legacy"];

/// What compares two things.
const COMPARISONS: &[&str] = &["<", "<=", "==", "!=", ">=", ">"];

/// How a dated revision begins.
const REVISIONS: &[&str] = &["Version::V20", "V20"];

/// The table of what a revision has.
const FEATURES: &str = "crates/toolwire-protocol/src/feature.rs";

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

/// Fails on every test of the era outside the owners, and on every feature that nobody asks for.
pub(crate) fn run() -> Outcome {
    let sources = sources::read(&root())?;
    let mut problems = tests(&sources);
    say!("{} era tests outside the owners", problems.len());
    problems.extend(unused(&sources, &features(&root())?));
    none(&problems)
}

fn tests(sources: &[Source]) -> Vec<String> {
    let is_owned = |source: &&Source| OWNERS.iter().any(|(owner, _)| source.path.starts_with(owner));
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| !is_owned(source)) {
        for (number, line) in source.lines.iter().filter(|(_, line)| is_test(line)) {
            let line = line.trim();
            problems.push(format!("{}:{number} looks at the era: {line}", source.path));
        }
    }
    problems
}

fn is_test(line: &str) -> bool {
    let compares = |revision: &str| {
        COMPARISONS.iter().any(|comparison| line.contains(&format!(" {comparison} {revision}")))
    };
    TESTS.iter().any(|test| line.contains(test)) || REVISIONS.iter().any(|revision| compares(revision))
}

/// The names in the table of features.
fn features(root: &Path) -> Result<BTreeSet<String>, String> {
    let text = fs::read_to_string(root.join(FEATURES)).map_err(|error| format!("{FEATURES}: {error}"))?;
    let names = rows(&text);
    if names.is_empty() { Err(format!("{FEATURES}: no table was found")) } else { Ok(names) }
}

fn rows(text: &str) -> BTreeSet<String> {
    let row = |line: &str| {
        let (name, revisions) = line.trim().split_once(" = ")?;
        revisions.contains(" ..= ").then(|| name.to_owned())
    };
    text.lines().filter_map(row).filter(|name| !name.contains('$')).collect()
}

fn unused(sources: &[Source], features: &BTreeSet<String>) -> Vec<String> {
    let asks = |source: &Source, feature: &str| {
        let name = format!("Feature::{feature}");
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        source.lines.iter().any(|(_, line)| line.split(&name).skip(1).any(ends))
    };
    let elsewhere = || sources.iter().filter(|source| source.path != FEATURES);
    let nobody = features.iter().filter(|feature| !elsewhere().any(|source| asks(source, feature)));
    nobody.map(|feature| format!("nobody asks for Feature::{feature}: remove it from {FEATURES}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, OWNERS, Source, features, root, rows, tests, unused};

    fn source(path: &str, line: &str) -> Source {
        Source { path: path.to_owned(), lines: vec![(1, line.to_owned())] }
    }

    #[test]
    fn owners_exist() {
        for (owner, _) in OWNERS {
            assert!(root().join(owner).exists(), "{owner}");
        }
    }

    #[test]
    fn every_test_outside_the_owners_is_found() {
        let sources = [
            source("crates/toolwire-server/src/a.rs", "if v.is_modern() {"),
            source("crates/toolwire-server/src/b.rs", "versions.filter(Version::is_modern)"),
            source("crates/toolwire-server/src/c.rs", "match era { Era::Legacy => 1 }"),
            source("crates/toolwire-server/src/d.rs", "if version >= Version::V2025_06_18 {"),
            source("crates/toolwire-server/src/e.rs", "if version == V2025_03_26 {"),
            source("crates/toolwire-server/src/f.rs", "let modern = version.has(Feature::Handshake);"),
            source("crates/toolwire-server/src/g.rs", "const BOTH: [Version; 1] = [Version::V2025_03_26];"),
            source("crates/toolwire-protocol/src/codec/mod.rs", "if v.is_modern() {"),
        ];
        let found = tests(&sources);
        let files = ["a", "b", "c", "d", "e"].map(|file| format!("crates/toolwire-server/src/{file}.rs:1"));
        assert_eq!(found.len(), files.len(), "{found:?}");
        assert!(found.iter().zip(&files).all(|(found, file)| found.starts_with(file)), "{found:?}");
    }

    #[test]
    fn a_feature_that_nobody_asks_for_is_found() {
        let table = "    $feature:ident = $first:ident ..= $last:ident;\n    Used = V1 ..= V2;\n    UsedLong = V1 ..= V1;";
        let names = rows(table);
        assert_eq!(names, BTreeSet::from(["Used".to_owned(), "UsedLong".to_owned()]));
        let asked = source("crates/a/src/b.rs", "version.has(Feature::UsedLong)");
        let unused = unused(&[asked], &names);
        assert_eq!(unused.len(), 1);
        assert!(unused[0].starts_with("nobody asks for Feature::Used:"), "{unused:?}");
        assert!(features(&root()).is_ok_and(|names| names.contains("Batches")));
    }
}
