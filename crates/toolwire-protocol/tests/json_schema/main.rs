//! The official test suite of JSON Schema: every case of 2020-12, judged by our validator.
//!
//! The suite is not part of this repository. `TOOLWIRE_JSON_SCHEMA` names its folder; `cargo xtask test --only
//! json-schema` obtains a pinned release of it and sets the variable.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;
use toolwire_protocol::schema::Schema;

/// Fewer cases than this would mean that we look in the wrong place.
const AT_LEAST: usize = 1_200;

/// The groups whose verdicts differ from ours, and the reason for each.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("vocabulary", "schema that uses custom metaschema with with no validation vocabulary", NO_METASCHEMAS),
    ("format-assertion", "schema that uses custom metaschema with format-assertion: false", NO_METASCHEMAS),
    ("format-assertion", "schema that uses custom metaschema with format-assertion: true", NO_METASCHEMAS),
    ("ecmascript-regex", "ECMA 262 \\s matches whitespace", ASCII_SPACE),
    ("ecmascript-regex", "ECMA 262 \\S matches everything but whitespace", ASCII_SPACE),
];

const NO_METASCHEMAS: &str = "a metaschema is never fetched, so every schema has the standard vocabularies";
const ASCII_SPACE: &str = "the pattern engine takes `\\s` for the white space of ASCII";

/// Schemas that are checked with several values.
#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Case>,
}

/// A value, and the verdict on it.
#[derive(Deserialize)]
struct Case {
    description: String,
    data: Value,
    valid: bool,
}

/// The outcome of all cases.
#[derive(Default)]
struct Tally {
    judged: usize,
    reported: usize,
    wrong: Vec<String>,
    different: BTreeSet<(String, String)>,
}

impl Tally {
    fn judge(&mut self, file: &str, group: &Group) {
        let schema = match Schema::compile(&group.schema) {
            Ok(schema) => schema,
            Err(error) => return self.note(file, group, &format!("does not compile: {error}")),
        };
        // What is not checked is reported, so there is no verdict to compare.
        if !schema.skipped().is_empty() {
            self.reported += group.tests.len();
            return;
        }
        for case in &group.tests {
            self.judged += 1;
            if schema.is_valid(&case.data) != case.valid {
                self.note(file, group, &format!("`{}` should be valid: {}", case.description, case.valid));
            }
        }
    }

    fn note(&mut self, file: &str, group: &Group, fault: &str) {
        let known =
            DIFFERENCES.iter().any(|(f, description, _)| *f == file && *description == group.description);
        if known {
            self.different.insert((file.to_owned(), group.description.clone()));
        } else {
            self.wrong.push(format!("{file}: {}: {fault}", group.description));
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

#[test]
fn the_official_suite_and_ours_agree() {
    let suite =
        env::var_os("TOOLWIRE_JSON_SCHEMA").expect("TOOLWIRE_JSON_SCHEMA names the folder of the suite");
    let folder = Path::new(&suite).join("tests/draft2020-12");
    let mut tally = Tally::default();
    for path in files(&folder).into_iter().chain(files(&folder.join("optional"))) {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let groups: Vec<Group> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for group in &groups {
            tally.judge(&file, group);
        }
    }
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.judged >= AT_LEAST, "only {} cases were judged", tally.judged);
    let unknown: Vec<_> = DIFFERENCES
        .iter()
        .filter(|(file, group, _)| !tally.different.contains(&((*file).to_owned(), (*group).to_owned())))
        .collect();
    assert!(unknown.is_empty(), "these no longer differ: {unknown:?}");
    println!("{} judged, {} with a reference that is reported as not checked", tally.judged, tally.reported);
}
