//! The comparison of what each published crate offers with the `public-api.txt` beside its manifest. A change shows in
//! the diff; `cargo xtask api` writes the files.
//!
//! Items that the documentation hides are not part of the API, and are not in the files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use public_api::Builder;

use crate::output::say;
use crate::rustdoc;
use crate::steps::{Outcome, none};
use crate::workspace::{Package, Workspace, root};

/// Crates whose types may be part of our API: a new major version of one of them is one of ours.
const MAY_BE_SEEN: &[&str] = &[
    "alloc",
    "bytes",
    "core",
    "crate",
    "futures_core",
    "http",
    "http_body",
    "rustls",
    "schemars",
    "serde",
    "serde_core",
    "serde_json",
    "std",
    "str",
    "tokio",
    "tokio_rustls",
    "tower_layer",
    "tower_service",
    "url",
    "zeroize",
];

/// Differences that are shown for one crate.
const SHOWN: usize = 20;

/// Compares what the crates offer with what is written down.
pub(crate) fn check() -> Outcome {
    let data = rustdoc::data()?;
    let mut faults = Vec::new();
    for package in published()? {
        let offered = offered(&package, &data)?;
        let written = fs::read_to_string(file(&package)).unwrap_or_default();
        faults.extend(differences(&package.name, &written, &offered));
        faults.extend(foreign(&package.name, &offered));
    }
    none(&faults)
}

/// Writes down what the crates offer.
pub(crate) fn write() -> Result<bool, String> {
    let data = rustdoc::data()?;
    for package in published()? {
        let place = file(&package);
        let offered = offered(&package, &data)?;
        say!("{}: {} items", package.name, offered.lines().count());
        fs::write(&place, offered).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    Ok(true)
}

/// The crates with an API: those that are published and have a library that is not a macro.
fn published() -> Result<Vec<Package>, String> {
    let packages = Workspace::read(&root())?.packages;
    let is_library = |package: &Package| root().join(&package.folder).join("src/lib.rs").exists();
    Ok(packages
        .into_iter()
        .filter(|package| package.published && package.name != "toolwire-macros" && is_library(package))
        .collect())
}

fn file(package: &Package) -> PathBuf {
    root().join(&package.folder).join("public-api.txt")
}

/// Returns the items that a crate offers, a line each. `data` is the folder with the documentation as data.
fn offered(package: &Package, data: &Path) -> Result<String, String> {
    let file = data.join(format!("{}.json", package.name.replace('-', "_")));
    // Without implementations that follow from others: they say nothing that a reader would look for.
    let api = Builder::from_rustdoc_json(&file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| {
            format!("{}: {error}; `cargo clean --doc` lets it be written anew", file.display())
        })?;
    let mut text = String::new();
    for item in api.items() {
        let _ = writeln!(text, "{item}");
    }
    Ok(text)
}

fn differences(package: &str, written: &str, offered: &str) -> Vec<String> {
    let (before, now): (BTreeSet<&str>, BTreeSet<&str>) =
        (written.lines().collect(), offered.lines().collect());
    let gone = before.difference(&now).map(|line| format!("- {line}"));
    let new = now.difference(&before).map(|line| format!("+ {line}"));
    let all: Vec<String> = gone.chain(new).collect();
    if all.is_empty() {
        return all;
    }
    let more = all.len().saturating_sub(SHOWN);
    let mut text = format!(
        "{package} offers something else than its public-api.txt says; if that is meant, run `cargo xtask api`:\n  {}",
        all[..all.len() - more].join("\n  ")
    );
    if more > 0 {
        let _ = write!(text, "\n  and {more} more");
    }
    vec![text]
}

/// Types of crates that are not ours and not among those whose types may be seen.
fn foreign(package: &str, offered: &str) -> Vec<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let paths = offered.split(|letter| !is_name(letter)).filter_map(|word| word.split_once("::"));
    let crates: BTreeSet<&str> = paths
        .map(|(first, _)| first)
        .filter(|first| first.starts_with(|letter: char| letter.is_ascii_lowercase()))
        .filter(|first| !first.starts_with("toolwire") && !MAY_BE_SEEN.contains(first))
        .collect();
    crates
        .into_iter()
        .map(|name| {
            format!("{package} shows types of the crate {name}, which is not in the list of xtask/src/api.rs")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_went_is_told() {
        let [text] = &differences("x", "pub a\npub b\n", "pub b\npub c\n")[..] else { panic!("one text") };
        assert!(text.ends_with("- pub a\n  + pub c"), "{text}");
        assert!(differences("x", "pub a\n", "pub a\n").is_empty());
        let many = (0..30).map(|number| format!("pub {number}")).collect::<Vec<_>>().join("\n");
        assert!(differences("x", "", &many)[0].ends_with("and 10 more"));
    }

    #[test]
    fn types_of_others_are_named() {
        let offered =
            "pub fn toolwire::f(bytes::Bytes, Self::Item, hyper::Body) -> core::option::Option<T::X>";
        let faults = foreign("toolwire", offered);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("crate hyper"), "{faults:?}");
    }
}
