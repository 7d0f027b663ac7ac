use super::{IMPURE, MAY_DEPEND_ON, NETWORK, check, cycle, document_differences, forbidden_edges, unwanted};
use crate::workspace::{Dependency, Kind, Package, root};

#[test]
fn this_workspace_keeps_the_rules() {
    assert_eq!(check(&root()), Ok(vec![]));
}

fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
    let dependencies =
        dependencies.iter().map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind });
    Package {
        name: name.to_owned(),
        folder: name.into(),
        published: true,
        programs: vec![],
        dependencies: dependencies.collect(),
        features: vec![],
    }
}

#[test]
fn an_edge_upwards_is_named() {
    let packages = [
        package("toolwire-protocol", &[("toolwire-server", Kind::Normal), ("serde", Kind::Normal)]),
        package("toolwire-server", &[("toolwire-protocol", Kind::Normal)]),
    ];
    assert_eq!(forbidden_edges(&packages), ["`toolwire-protocol` must not depend on `toolwire-server`"]);
}

#[test]
fn tests_may_use_more_but_not_in_a_circle() {
    let server = package("toolwire-server", &[("toolwire-client", Kind::Dev)]);
    let client = package("toolwire-client", &[]);
    assert_eq!(forbidden_edges(&[server, client]), Vec::<String>::new());

    let server = || package("toolwire-server", &[("toolwire-client", Kind::Dev)]);
    assert_eq!(cycle(&[server(), package("toolwire-client", &[])]), None);
    let client = package("toolwire-client", &[("toolwire-server", Kind::Dev)]);
    let found = cycle(&[server(), client, package("toolwire-protocol", &[])]).unwrap();
    assert!(found.contains("toolwire-client, toolwire-server"), "{found}");
    assert!(!found.contains("toolwire-protocol"), "{found}");
}

#[test]
fn a_new_crate_must_enter_the_table() {
    let found = forbidden_edges(&[package("toolwire-new", &[])]);
    assert_eq!(found, ["`toolwire-new` is not in the table of xtask/src/edges/mod.rs"]);
}

#[test]
fn the_table_points_down_only() {
    for (row, (name, allowed)) in MAY_DEPEND_ON.iter().enumerate() {
        for edge in *allowed {
            let below = MAY_DEPEND_ON[..row].iter().any(|(lower, _)| lower == edge);
            assert!(below, "`{edge}` must stand above `{name}` in the table");
        }
    }
}

#[test]
fn unwanted_crates_are_found_by_name_and_family() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let tree = names(&["httpdate", "hyper-util", "rustls_pki", "serde", "string", "tokio", "tower-service"]);
    let found = unwanted("toolwire", &tree, NETWORK);
    let expected =
        ["hyper-util", "rustls_pki"].map(|name| format!("the dependency tree of toolwire contains `{name}`"));
    assert_eq!(found, expected);
    assert_eq!(unwanted("p", &tree, IMPURE), ["the dependency tree of p contains `tokio`"]);
}

fn document() -> String {
    let mut text = "# Title\n\n| Crate | Purpose | May depend on |\n| --- | --- | --- |\n".to_owned();
    for (name, allowed) in MAY_DEPEND_ON {
        let allowed: Vec<String> = allowed.iter().map(|edge| format!("`{edge}`")).collect();
        text.extend(["| `", name, "` | what it is for | ", &allowed.join(", "), " |\n"]);
    }
    text + "\nMore prose, and another table:\n\n| `x` | y |\n"
}

#[test]
fn a_document_that_agrees_is_accepted() {
    assert_eq!(document_differences(&document()), Vec::<String>::new());
}

#[test]
fn a_document_that_differs_is_not() {
    let missing = document().replacen("| `toolwire-protocol` |\n", "| nothing |\n", 1);
    assert_eq!(
        document_differences(&missing),
        ["the row `toolwire-transport` in ARCHITECTURE.md does not list `toolwire-protocol`"]
    );
    let extra = document().replacen("|  |\n", "| `tokio` |\n", 1);
    assert_eq!(
        document_differences(&extra),
        ["the row `toolwire-protocol` in ARCHITECTURE.md wrongly lists `tokio`"]
    );
    let row = "| `xtask` | what it is for |  |\n";
    let found = document_differences(&document().replace(row, ""));
    assert_eq!(found, ["the table of ARCHITECTURE.md has no row for `xtask`"]);
    let found =
        document_differences(&document().replace(row, &format!("{row}| `toolwire-old` | gone | |\n")));
    assert_eq!(found, ["ARCHITECTURE.md has a row for `toolwire-old`, which is no crate"]);
    let found = document_differences("no table at all");
    assert_eq!(found, ["ARCHITECTURE.md has no table with a column \"May depend on\""]);
}
