//! Holds SECURITY.md to its tests: each promise names those that hold it, and they are there.

use std::fs;
use std::path::Path;

use super::collect;

/// The part of the document that promises.
const PROMISES: &str = "## What is promised";

/// The faults of SECURITY.md, one sentence each.
pub(super) fn faults(root: &Path) -> Result<Vec<String>, String> {
    let text =
        fs::read_to_string(root.join("SECURITY.md")).map_err(|error| format!("SECURITY.md: {error}"))?;
    let mut sources = Vec::new();
    collect(&root.join("crates"), "rs", &mut sources)?;
    let mut code = String::new();
    for source in sources {
        code.push_str(
            &fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?,
        );
    }
    Ok(broken(&text, |test| code.contains(&format!("fn {test}("))))
}

fn broken(text: &str, is_test: impl Fn(&str) -> bool) -> Vec<String> {
    let promises =
        text.split(PROMISES).nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
    let mut broken = Vec::new();
    for promise in promises.lines().filter_map(|line| line.strip_prefix("- ")) {
        let (words, tests) = promise.rsplit_once(" (").unwrap_or((promise, ""));
        let mut named = tests.split('`').skip(1).step_by(2).peekable();
        if named.peek().is_none() {
            broken.push(format!("SECURITY.md: no test is named for {words:?}"));
        }
        let missing = named.filter(|test| !is_test(test));
        broken.extend(missing.map(|test| format!("SECURITY.md: there is no test `{test}` for {words:?}")));
    }
    if promises.is_empty() {
        broken.push(format!("SECURITY.md has no part {PROMISES:?}"));
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_promise_names_tests_that_are_there() {
        let text = "# Security\n\n## What is promised\n\n- One (`there`).\n- Two.\n- Three (`there`, `gone`).\n\n## More\n\n- no\n";
        let broken = broken(text, |test| test == "there");
        assert_eq!(
            broken,
            [
                "SECURITY.md: no test is named for \"Two.\"",
                "SECURITY.md: there is no test `gone` for \"Three\"",
            ]
        );
        assert_eq!(super::broken("# Security\n", |_| true).len(), 1);
    }
}
