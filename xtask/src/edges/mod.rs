//! Which crate may depend on which, and what must never be in a crate's dependency tree.
//!
//! The one table here is the rule; ARCHITECTURE.md repeats it for readers and is held to it. The rules look
//! at manifests only: what a crate does with a dependency it may have is for reviewers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::workspace::{Kind, Package, Workspace, tree};

/// Every crate of the workspace, lowest first, and the crates it may depend on outside its tests.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("toolwire-protocol", &[]),
    ("toolwire-macros", &[]),
    ("toolwire-transport", &["toolwire-protocol"]),
    ("toolwire-store", &["toolwire-protocol"]),
    ("toolwire-store-sqlite", &["toolwire-protocol", "toolwire-store"]),
    ("toolwire-store-redis", &["toolwire-protocol", "toolwire-store"]),
    ("toolwire-store-postgres", &["toolwire-protocol", "toolwire-store"]),
    ("toolwire-server", &["toolwire-protocol", "toolwire-transport", "toolwire-store"]),
    ("toolwire-client", &["toolwire-protocol", "toolwire-transport"]),
    ("toolwire-http", &["toolwire-protocol", "toolwire-transport", "toolwire-server", "toolwire-client"]),
    (
        "toolwire-auth",
        &["toolwire-protocol", "toolwire-transport", "toolwire-server", "toolwire-client", "toolwire-http"],
    ),
    (
        "toolwire",
        &[
            "toolwire-protocol",
            "toolwire-macros",
            "toolwire-transport",
            "toolwire-server",
            "toolwire-client",
            "toolwire-http",
            "toolwire-auth",
            "toolwire-store",
            "toolwire-store-sqlite",
            "toolwire-store-redis",
            "toolwire-store-postgres",
        ],
    ),
    (
        "toolwire-testkit",
        &[
            "toolwire-protocol",
            "toolwire-transport",
            "toolwire-server",
            "toolwire-client",
            "toolwire-http",
            "toolwire-auth",
            "toolwire-store",
        ],
    ),
    ("toolwire-macros-tests", &[]),
    ("toolwire-cli", &["toolwire", "toolwire-testkit"]),
    ("toolwire-examples", &["toolwire"]),
    ("toolwire-conformance", &["toolwire", "toolwire-http", "toolwire-auth"]),
    ("toolwire-benchmarks", &["toolwire"]),
    ("xtask", &[]),
];

/// What a stdio-only program is built with: one list per side.
const STDIO_ONLY: &[&[&str]] = &[&["server", "stdio"], &["client", "child"]];

/// Crates that speak HTTP, TLS or WebSocket; `name-*` and `name_*` are meant along with each `name`.
const NETWORK: &[&str] = &[
    "async-tungstenite",
    "aws-lc",
    "axum",
    "boring",
    "curl",
    "fastwebsockets",
    "h2",
    "h3",
    "http",
    "httparse",
    "hyper",
    "isahc",
    "native-tls",
    "openssl",
    "quinn",
    "reqwest",
    "ring",
    "rustls",
    "schannel",
    "security-framework",
    "surf",
    "tokio-native-tls",
    "tokio-openssl",
    "tokio-rustls",
    "tokio-tungstenite",
    "tokio-websockets",
    "tower-http",
    "tungstenite",
    "ureq",
    "warp",
    "webpki",
    "ws",
];

/// Our stores that are chosen by a feature, and the clients that they are built on.
const STORES: &[&str] = &[
    "libsqlite3-sys",
    "postgres-protocol",
    "postgres-types",
    "redis",
    "rusqlite",
    "tokio-postgres",
    "toolwire-store-postgres",
    "toolwire-store-redis",
    "toolwire-store-sqlite",
];

/// Crates that bring a runtime, a clock or randomness, none of which the protocol crate may have.
const IMPURE: &[&str] =
    &["async-io", "async-std", "chrono", "getrandom", "mio", "rand", "smol", "time", "tokio"];

/// Checks every rule and returns all violations, one sentence each.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let workspace = Workspace::read(root)?;
    let mut violations = forbidden_edges(&workspace.packages);
    violations.extend(cycle(&workspace.packages));
    violations.extend(stdio_trees(root, workspace.package("toolwire")?)?);
    let protocol = workspace.package("toolwire-protocol")?;
    let features: Vec<&str> = protocol.features.iter().map(String::as_str).collect();
    let names = tree(root, &protocol.name, &features)?;
    violations.extend(unwanted("toolwire-protocol", &names, IMPURE));
    let document = root.join("ARCHITECTURE.md");
    if document.exists() {
        let text = fs::read_to_string(document).map_err(|error| format!("ARCHITECTURE.md: {error}"))?;
        violations.extend(document_differences(&text));
    }
    Ok(violations)
}

/// Normal and build dependencies between our crates that the table does not have.
fn forbidden_edges(packages: &[Package]) -> Vec<String> {
    let mut violations = Vec::new();
    for package in packages {
        let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(name, _)| *name == package.name) else {
            violations.push(format!("`{}` is not in the table of xtask/src/edges/mod.rs", package.name));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind != Kind::Dev) {
            let name = dependency.name.as_str();
            if packages.iter().any(|package| package.name == name) && !allowed.contains(&name) {
                violations.push(format!("`{}` must not depend on `{name}`", package.name));
            }
        }
    }
    violations
}

/// A circle of dependencies between our crates, tests included, if there is one.
fn cycle(packages: &[Package]) -> Option<String> {
    let mut left: Vec<&Package> = packages.iter().collect();
    loop {
        let names: BTreeSet<&str> = left.iter().map(|package| package.name.as_str()).collect();
        let waits = |package: &&Package| {
            let mut needed = package.dependencies.iter().map(|dependency| dependency.name.as_str());
            needed.any(|name| names.contains(name))
        };
        let waiting: Vec<&Package> = left.iter().copied().filter(waits).collect();
        if waiting.is_empty() {
            return None;
        }
        if waiting.len() == left.len() {
            let names: Vec<&str> = names.into_iter().collect();
            return Some(format!(
                "these crates depend on each other in a circle, counting dev-dependencies: {} \
                 (move the tests to the highest crate they need)",
                names.join(", ")
            ));
        }
        left = waiting;
    }
}

/// Network crates and stores in what a stdio-only server or client is built from.
fn stdio_trees(root: &Path, toolwire: &Package) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for features in STDIO_ONLY {
        let missing =
            features.iter().find(|feature| !toolwire.features.iter().any(|known| known == *feature));
        if let Some(feature) = missing {
            violations.push(format!("`toolwire` has no feature `{feature}`"));
            continue;
        }
        let names = tree(root, "toolwire", features)?;
        let what = format!("toolwire with only {}", features.join(", "));
        violations.extend([NETWORK, STORES].iter().flat_map(|deny| unwanted(&what, &names, deny)));
    }
    Ok(violations)
}

fn unwanted(what: &str, names: &[String], deny: &[&str]) -> Vec<String> {
    let is_denied = |name: &str| {
        deny.iter().any(|denied| {
            name.strip_prefix(denied).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
        })
    };
    let unwanted = names.iter().filter(|name| is_denied(name));
    unwanted.map(|name| format!("the dependency tree of {what} contains `{name}`")).collect()
}

/// Where the table of ARCHITECTURE.md and ours do not say the same.
///
/// The document's table has the crate in its first column and a column headed "may depend on"; names are in
/// backticks, and a cell without any means nothing.
fn document_differences(text: &str) -> Vec<String> {
    let Some(rows) = document_rows(text) else {
        return vec!["ARCHITECTURE.md has no table with a column \"May depend on\"".to_owned()];
    };
    let mut violations = Vec::new();
    for (name, allowed) in MAY_DEPEND_ON {
        let Some((_, written)) = rows.iter().find(|(row, _)| row == name) else {
            violations.push(format!("the table of ARCHITECTURE.md has no row for `{name}`"));
            continue;
        };
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        let written: BTreeSet<&str> = written.iter().map(String::as_str).collect();
        let missing = allowed.difference(&written).map(|edge| ("does not list", edge));
        let extra = written.difference(&allowed).map(|edge| ("wrongly lists", edge));
        for (verb, edge) in missing.chain(extra) {
            violations.push(format!("the row `{name}` in ARCHITECTURE.md {verb} `{edge}`"));
        }
    }
    let unknown = rows.iter().filter(|(row, _)| MAY_DEPEND_ON.iter().all(|(name, _)| row != name));
    violations
        .extend(unknown.map(|(row, _)| format!("ARCHITECTURE.md has a row for `{row}`, which is no crate")));
    violations
}

fn document_rows(text: &str) -> Option<Vec<(String, Vec<String>)>> {
    let mut lines = text.lines().skip_while(|line| !line.to_lowercase().contains("may depend on |"));
    let column = cells(lines.next()?).iter().position(|cell| cell.eq_ignore_ascii_case("may depend on"))?;
    let table = lines.skip(1).take_while(|line| line.trim_start().starts_with('|'));
    let mut rows = Vec::new();
    for line in table {
        let cells = cells(line);
        let edges = cells.get(column).map(|cell| code_spans(cell)).unwrap_or_default();
        for name in cells.first().map(|cell| code_spans(cell)).unwrap_or_default() {
            rows.push((name, edges.clone()));
        }
    }
    Some(rows)
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

fn code_spans(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
