//! Our own sources as the rules read them: without tests, comments and documentation.

use std::fs;
use std::path::Path;

use crate::documents::collect;

/// One file, as far as it is compiled into a library or a program.
#[derive(Debug, PartialEq)]
pub(crate) struct Source {
    /// From the root of the workspace, with slashes.
    pub(crate) path: String,
    /// Counted from one.
    pub(crate) lines: Vec<(usize, String)>,
}

/// Every source of `crates/*/src`, in order.
pub(crate) fn read(root: &Path) -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    collect(&root.join("crates"), "rs", &mut paths)?;
    let parsed = paths.iter().filter_map(|path| {
        let name = shown(root, path);
        is_compiled(&name).then(|| {
            let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
            Ok(parse(name, &text))
        })
    });
    parsed.collect()
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string().replace('\\', "/")
}

fn is_compiled(path: &str) -> bool {
    let mut parts = path.split('/').skip(2);
    parts.next() == Some("src") && !parts.any(|part| part == "tests" || part == "tests.rs")
}

fn parse(path: String, text: &str) -> Source {
    // Tests are the last thing in a file, by the order that CONTRIBUTING.md gives.
    let before_tests = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = |line: &str| line.split("//").next().unwrap_or_default().trim_end().to_owned();
    let lines = before_tests.lines().enumerate().map(|(index, line)| (index + 1, code(line)));
    Source { path, lines: lines.filter(|(_, line)| !line.trim().is_empty()).collect() }
}

#[cfg(test)]
mod tests {
    use super::{is_compiled, parse, read};
    use crate::workspace::root;

    #[test]
    fn only_code_is_left() {
        let text = "//! About.\nuse a; // why\n\n/// Docs.\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        let lines = parse("x".to_owned(), text).lines;
        assert_eq!(lines, [(2, "use a;".to_owned()), (5, "fn b() {}".to_owned())]);
    }

    #[test]
    fn tests_and_examples_are_left_out() {
        assert!(is_compiled("crates/toolwire/src/lib.rs"));
        assert!(!is_compiled("crates/toolwire/src/a/tests.rs"));
        assert!(!is_compiled("crates/toolwire/src/a/tests/b.rs"));
        assert!(!is_compiled("crates/toolwire/tests/it/main.rs"));
        assert!(!is_compiled("crates/toolwire/examples/a.rs"));
    }

    #[test]
    fn this_workspace_has_sources() {
        let sources = read(&root()).unwrap();
        assert!(sources.iter().any(|source| source.path == "crates/toolwire-protocol/src/lib.rs"));
    }
}
