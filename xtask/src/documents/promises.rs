//! Holds SECURITY.md and ARCHITECTURE.md to their tests: each promise and each invariant names those that hold it, they
//! are there, and they run.

use std::fs;
use std::path::Path;

use super::collect;

/// A part of a document whose items promise something.
struct Promises {
    file: &'static str,
    heading: &'static str,
}

const PROMISES: &[Promises] = &[
    Promises { file: "SECURITY.md", heading: "## What is promised" },
    Promises { file: "ARCHITECTURE.md", heading: "## Invariants" },
];

/// What is wrong with them, one sentence each.
pub(super) fn faults(root: &Path) -> Result<Vec<String>, String> {
    let mut sources = Vec::new();
    for folder in ["crates", "xtask/src"] {
        collect(&root.join(folder), "rs", &mut sources)?;
    }
    let mut code = String::new();
    for source in sources {
        code.push_str(
            &fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?,
        );
    }
    let mut faults = Vec::new();
    for promises in PROMISES {
        faults.extend(promises.broken(&promises.read(root)?, |test| code.contains(&format!("fn {test}("))));
    }
    Ok(faults)
}

/// Returns a fault for each test that a document names and that did not run.
pub(crate) fn not_run(root: &Path, has_run: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for promises in PROMISES {
        let text = promises.read(root)?;
        for promise in items(promises.part(&text)) {
            let missing = named(&promise).1.filter(|test| !has_run(test));
            faults.extend(missing.map(|test| format!("{}: the test `{test}` did not run", promises.file)));
        }
    }
    Ok(faults)
}

/// Splits a promise into its words and the tests that it names.
fn named(promise: &str) -> (&str, impl Iterator<Item = &str>) {
    let (words, tests) = promise.rsplit_once(" (").unwrap_or((promise, ""));
    (words, tests.split('`').skip(1).step_by(2))
}

impl Promises {
    fn read(&self, root: &Path) -> Result<String, String> {
        fs::read_to_string(root.join(self.file)).map_err(|error| format!("{}: {error}", self.file))
    }

    fn part<'t>(&self, text: &'t str) -> &'t str {
        let rest = text.split(self.heading).nth(1);
        rest.and_then(|rest| rest.split("\n## ").next()).unwrap_or_default()
    }

    fn broken(&self, text: &str, is_test: impl Fn(&str) -> bool) -> Vec<String> {
        let Self { file, heading } = self;
        let part = self.part(text);
        let mut broken = Vec::new();
        for promise in items(part) {
            let (words, tests) = named(&promise);
            let mut tests = tests.peekable();
            if tests.peek().is_none() {
                broken.push(format!("{file}: no test is named for {words:?}"));
            }
            let missing = tests.filter(|test| !is_test(test));
            broken.extend(missing.map(|test| format!("{file}: there is no test `{test}` for {words:?}")));
        }
        if part.is_empty() {
            broken.push(format!("{file} has no part {heading:?}"));
        }
        broken
    }
}

/// The items of a list, each in one line.
fn items(part: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in part.lines() {
        match (line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")), items.last_mut()) {
            (Some(first), _) => items.push(first.to_owned()),
            (None, Some(item)) if line.starts_with("  ") => {
                item.push(' ');
                item.push_str(line.trim());
            }
            _ => {}
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_that_does_not_run_is_a_fault() {
        let root = crate::workspace::root();
        let all = not_run(&root, |_| false).unwrap();
        assert!(all.iter().any(|fault| fault.starts_with("SECURITY.md")), "{all:?}");
        assert!(all.iter().any(|fault| fault.starts_with("ARCHITECTURE.md")), "{all:?}");
        assert!(not_run(&root, |_| true).unwrap().is_empty());
    }

    #[test]
    fn each_promise_names_tests_that_are_there() {
        let text = "# Security\n\n## What is promised\n\n- One (`there`).\n- Two.\n- Three\n  (`there`, `gone`).\n\n## More\n\n- no\n";
        let broken = PROMISES[0].broken(text, |test| test == "there");
        assert_eq!(
            broken,
            [
                "SECURITY.md: no test is named for \"Two.\"",
                "SECURITY.md: there is no test `gone` for \"Three\"",
            ]
        );
        assert_eq!(PROMISES[0].broken("# Security\n", |_| true).len(), 1);
    }
}
