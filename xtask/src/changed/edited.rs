//! The functions that a change adds or edits, found by the lines that differ, to know the tests among them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::git;
use crate::workspace::root;

/// The names of the functions that the change adds or edits.
///
/// A macro may make a test that has the name of a function elsewhere, so crates and attributes do not count.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Edited(BTreeSet<String>);

/// Lines of a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lines {
    first: usize,
    last: usize,
}

impl Edited {
    /// Reads the change from git. On main itself, that is the last commit and everything that is not committed.
    ///
    /// # Errors
    ///
    /// Returns an error if git does not know the commit before the change, as in a shallow clone.
    pub(crate) fn read() -> Result<Self, String> {
        Self::of(&root())
    }

    fn of(root: &Path) -> Result<Self, String> {
        let base = super::base(root)?;
        let mut edited = Self::default();
        let options = ["diff", "-U0", "--no-color", "--no-ext-diff", "--no-renames", "--dst-prefix=b/"];
        for (file, changed) in hunks(&git(root, &[&options[..], &[&base, "--", "*.rs"]].concat())?) {
            edited.add(&read(&root.join(file))?, &changed);
        }
        let new = git(root, &["ls-files", "--others", "--exclude-standard", "-z", "--", "*.rs"])?;
        for file in new.split_terminator('\0') {
            edited.add(&read(&root.join(file))?, &[Lines { first: 1, last: usize::MAX }]);
        }
        Ok(edited)
    }

    /// Returns whether a function with the name of the test, which may be a path such as `module::test`, is among them.
    pub(crate) fn contains(&self, test: &str) -> bool {
        self.0.contains(test.rsplit("::").next().unwrap_or(test))
    }

    fn add(&mut self, code: &str, changed: &[Lines]) {
        let is_changed = |place: Lines| changed.iter().any(|lines| lines.touch(place));
        let edited = functions(code).into_iter().filter(|(_, place)| is_changed(*place));
        self.0.extend(edited.map(|(name, _)| name.to_owned()));
    }
}

impl Lines {
    fn touch(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns the lines of each file that `git diff -U0` says are new or stand beside those that were removed.
fn hunks(diff: &str) -> Vec<(String, Vec<Lines>)> {
    let mut files: Vec<(String, Vec<Lines>)> = Vec::new();
    for line in diff.lines() {
        if let Some(file) = line.strip_prefix("+++ ") {
            // A file that is gone has another prefix.
            files.push((file.strip_prefix("b/").unwrap_or_default().to_owned(), Vec::new()));
        } else if let Some(place) = line.strip_prefix("@@ ").and_then(place)
            && let Some((_, lines)) = files.last_mut()
        {
            lines.push(place);
        }
    }
    files.retain(|(file, _)| !file.is_empty());
    files
}

/// Reads the rest of a line such as `@@ -3,2 +3,4 @@`.
fn place(hunk: &str) -> Option<Lines> {
    let (_, new) = hunk.split(" @@").next()?.split_once(" +")?;
    let (first, count) = new.split_once(',').unwrap_or((new, "1"));
    let (first, count): (usize, usize) = (first.parse().ok()?, count.parse().ok()?);
    // Without new lines, the first is the one before those that were removed.
    Some(Lines { first, last: if count == 0 { first + 1 } else { first + count - 1 } })
}

/// Returns the functions of formatted code, with their attributes and comments.
fn functions(code: &str) -> Vec<(&str, Lines)> {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    // The first of the attributes and comments above a line.
    let mut above = None;
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if code.starts_with("#[") || code.starts_with("//") {
            above.get_or_insert(index);
            continue;
        }
        let first = above.take().unwrap_or(index);
        if let Some(name) = function(code) {
            let is_end = |other: &&str| other.trim() == "}" && indentation(other) == indentation(line);
            let length =
                if code.ends_with(['}', ';']) { Some(0) } else { lines[index..].iter().position(is_end) };
            let last = length.map_or(lines.len(), |length| index + length + 1);
            found.push((name, Lines { first: first + 1, last }));
        }
    }
    found
}

/// Returns the name of the function that this line begins.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| matches!(word, "async" | "const" | "unsafe") || word.starts_with("pub");
    let name = after.split(|it: char| !it.is_alphanumeric() && it != '_').next()?;
    (before.split_whitespace().all(is_qualifier) && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Edited, Lines, functions, hunks};
    use crate::changed::git;

    const CODE: &str = "\
fn helper() {
    work();
}

/// Documented.
#[test]
fn one() {
    if true {
        work();
    }
}

    #[tokio::test(start_paused = true)]
    pub(crate) async fn two() {
        work();
    }
#[test]
fn three() {}
        fn $rule() {
";

    fn lines(first: usize, last: usize) -> Lines {
        Lines { first, last }
    }

    #[test]
    fn functions_are_found() {
        let expected = [
            ("helper", lines(1, 3)),
            ("one", lines(5, 11)),
            ("two", lines(13, 16)),
            ("three", lines(17, 18)),
        ];
        assert_eq!(functions(CODE), expected);
    }

    #[test]
    fn lines_that_differ_are_read() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1 +1,2 @@ fn a() {\n-a\n+b\n+c\n@@ -7,2 +8,0 @@\n-d\n-e\n\
                    --- a/gone.rs\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-f\n";
        assert_eq!(hunks(diff), [("x.rs".to_owned(), vec![lines(1, 2), lines(8, 9)])]);
    }

    #[test]
    fn functions_that_the_change_adds_or_edits_are_read_from_git() {
        let root = std::env::temp_dir().join(format!("xtask-edited-{}", std::process::id()));
        let (repository, clone) = (root.join("repository"), root.join("shallow"));
        fs::create_dir_all(&repository).unwrap();
        let run = |at: &Path, arguments: &[&str]| {
            let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            git(at, &[&author[..], arguments].concat()).unwrap();
        };
        let code = |two: &str| format!("#[test]\nfn one() {{}}\n\n#[test]\nfn two() {{\n    {two}\n}}\n");
        run(&repository, &["init", "-q", "-b", "main"]);
        for (two, new) in [("first();", "old.rs"), ("second();", "third.rs")] {
            fs::write(repository.join("it.rs"), code(two)).unwrap();
            fs::write(repository.join(new), format!("fn {}() {{}}\n", new.trim_end_matches(".rs"))).unwrap();
            run(&repository, &["add", "."]);
            run(&repository, &["commit", "-q", "-m", two]);
        }
        fs::write(repository.join("new.rs"), "#[test]\nfn four() {}\n").unwrap();
        let url = format!("file://{}", repository.display());
        run(&root, &["clone", "-q", "--depth", "1", &url, "shallow"]);
        let (edited, shallow) = (Edited::of(&repository), Edited::of(&clone));
        fs::remove_dir_all(&root).unwrap();
        let names = ["four", "third", "two"].map(str::to_owned);
        assert_eq!(edited, Ok(Edited(names.into())));
        assert!(edited.is_ok_and(|it| it.contains("module::two") && !it.contains("module::one")));
        assert!(shallow.is_err());
    }
}
