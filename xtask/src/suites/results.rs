//! The results of the tests of a program.

/// The two texts that a test program leaves, whole or up to its end by force.
#[derive(Debug)]
pub(super) struct Results {
    /// The file in which it notes the end of each test. Nothing else writes there, as opposed to its output.
    pub(super) log: String,
    pub(super) output: String,
}

impl Results {
    /// Returns the tests that have passed.
    pub(super) fn passed(&self) -> impl Iterator<Item = &str> {
        self.log.lines().filter_map(|line| line.strip_prefix("ok "))
    }

    /// Returns those of the tests that have neither passed nor been left out.
    pub(super) fn failed<'n>(&self, tests: &[&'n str]) -> Vec<&'n str> {
        tests.iter().copied().filter(|test| !self.has_ended_well(test)).collect()
    }

    fn has_ended_well(&self, test: &str) -> bool {
        self.log.lines().filter_map(|line| line.strip_suffix(test)).any(|result| {
            // A reason may follow the word.
            result == "ok "
                || result == "ignored "
                || result.starts_with("ignored: ") && result.ends_with(' ')
        })
    }

    /// Returns the text that the program shows as that of a test. It shows none of a test that has not ended.
    pub(super) fn output_of(&self, test: &str) -> Option<String> {
        let (_, output) = self.output.split_once(&format!("---- {test} stdout ----\n"))?;
        let end = ["\n---- ", "\nfailures:\n"].iter().filter_map(|end| output.find(end)).min();
        let output = output.get(..end.unwrap_or(output.len()))?;
        Some(output.trim_start_matches('\n').trim_end().to_owned())
    }
}

/// Reads the names of the tests from what a program answers to `--list --format terse`.
pub(super) fn names(list: &str) -> Vec<&str> {
    list.lines().filter_map(|line| line.strip_suffix(": test")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Results, names};

    #[test]
    fn tests_that_have_not_ended_well_have_failed() {
        let log = "ok a::one\nfailed two\nignored three\nignored: takes hours four\nfailed: time limit six\n";
        let results = Results { log: log.to_owned(), output: String::new() };
        assert!(results.passed().eq(["a::one"]));
        assert_eq!(
            results.failed(&["a::one", "one", "two", "three", "four", "five", "six"]),
            ["one", "two", "five", "six"]
        );
    }

    #[test]
    fn output_is_told_apart_by_test() {
        let output = "
failures:

---- three stdout ----

thread 'three' panicked at x.rs:1:1:
the reason

---- five stdout ----
another

failures:
    five
    three
";
        let results = Results { log: String::new(), output: output.to_owned() };
        let output = |test: &str| results.output_of(test);
        assert_eq!(output("three").unwrap(), "thread 'three' panicked at x.rs:1:1:\nthe reason");
        assert_eq!(output("five").unwrap(), "another");
        assert_eq!(output("four"), None);
    }

    #[test]
    fn list_of_tests_is_read() {
        assert_eq!(names("a::one: test\nthree: test\nspeed: benchmark\n"), ["a::one", "three"]);
    }
}
