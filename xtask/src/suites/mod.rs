//! The test programs of the workspace: each runs with a limit and a log, and the tests that fail are named.

mod build;
mod results;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::changed::Edited;
use crate::documents::promises;
use crate::output::say;
use crate::process::Program;
use crate::steps::{Failure, Parts};
use crate::workspace::{Workspace, root};
use results::Results;

/// The time that a program may take. Most take seconds; those that compile something take a minute or two.
const LIMIT: Duration = Duration::from_mins(10);

/// The time in which a program lists its tests.
const LIST_LIMIT: Duration = Duration::from_mins(1);

/// Variables and their values.
type Environment = Vec<(&'static str, String)>;

/// A test program that is built.
#[derive(Debug, Clone, PartialEq)]
struct Suite {
    package: String,
    /// The kind of its target, such as `lib` or `test`.
    kind: String,
    /// The name of its target.
    target: String,
    program: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
}

/// The way in which test programs are run.
#[derive(Debug, Clone)]
struct Runner {
    environment: Environment,
    /// The folder for the texts that programs leave.
    folder: PathBuf,
    limit: Duration,
}

/// A test that has failed, or has not ended.
#[derive(Debug)]
struct FailedTest {
    suite: Suite,
    name: String,
    output: String,
}

/// Builds all test programs, runs those of the chosen crates, and returns the tests that fail.
pub(crate) fn run(chosen: impl Fn(&str) -> bool, environment: &[(&'static str, &str)]) -> Parts {
    let environment = environment.iter().map(|&(name, value)| (name, value.to_owned())).collect();
    let runner = Runner { environment, folder: Workspace::read(&root())?.target.join("tests"), limit: LIMIT };
    let mut suites = build::all(&root())?;
    suites.sort_by_cached_key(Suite::to_string);
    let is_whole = suites.iter().all(|suite| chosen(&suite.package));
    let (mut failed, mut broken, mut ran) = (Vec::new(), Vec::new(), BTreeSet::new());
    for suite in suites.iter().filter(|suite| chosen(&suite.package)) {
        match runner.run(suite, &mut ran) {
            Ok(tests) => failed.extend(tests),
            Err(error) => broken.push(format!("{suite}: {error}")),
        }
    }
    // A program that is broken has not said what it ran.
    if is_whole && broken.is_empty() {
        broken.extend(promises::not_run(&root(), |test| ran.contains(test))?);
    }
    let failures = runner.failures(failed);
    if broken.is_empty() { Ok(failures) } else { Err(broken.join("\n").into()) }
}

impl Runner {
    /// Runs a program and returns the tests that fail. The names of all that were run, without their modules, are added
    /// to `ran`.
    fn run(&self, suite: &Suite, ran: &mut BTreeSet<String>) -> Result<Vec<FailedTest>, String> {
        let list = self.program(suite, LIST_LIMIT, &["--list", "--format", "terse"]).successful_output()?;
        let start = Instant::now();
        let (ended, results) = self.results(suite, &[], "first")?;
        let time = start.elapsed().as_secs_f32();
        let failed = results.failed(&results::names(&list));
        let function = |test: &str| test.rsplit("::").next().unwrap_or(test).to_owned();
        ran.extend(results.passed().chain(failed.iter().copied()).map(function));
        let output = self.path(suite, "first", "txt");
        let ended = match ended {
            Ok(status) if status.success() && failed.is_empty() => {
                say!("ok    {suite}: {} tests in {time:.1} s", results.passed().count());
                return Ok(vec![]);
            }
            Ok(status) => status.to_string(),
            Err(error) => error,
        };
        say!("FAIL  {suite}: {} tests in {time:.1} s: {ended}; {}", failed.len(), output.display());
        if failed.is_empty() {
            return Err("all of its tests have passed, but the program has not".to_owned());
        }
        let failed_test = |name: &str| FailedTest {
            suite: suite.clone(),
            name: name.to_owned(),
            output: results.output_of(name).unwrap_or_else(|| format!("it had not ended: {ended}")),
        };
        Ok(failed.into_iter().map(failed_test).collect())
    }

    /// Runs one test and returns what it has written if it fails.
    fn again(&self, suite: &Suite, test: &str) -> Result<(), String> {
        let (ended, results) =
            self.results(suite, &[test, "--exact", "--test-threads=1", "--nocapture"], "again")?;
        let ended = match ended {
            Ok(status) if status.success() && results.log == format!("ok {test}\n") => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error,
        };
        Err(format!("{}\n{ended}", results.output.trim_end()))
    }

    /// Prints the tests and returns them as failures, with those marked that git says the change edits.
    fn failures(&self, failed: Vec<FailedTest>) -> Vec<Failure> {
        if failed.is_empty() {
            return vec![];
        }
        // Without an answer, every test may be a new one.
        let edited = Edited::read().inspect_err(|error| say!("the edited tests are not known: {error}"));
        let failure = |test: FailedTest| {
            let edited = edited.as_ref().map_or(true, |it| it.contains(&test.name));
            self.failure(test, edited)
        };
        failed.into_iter().map(failure).inspect(Failure::tell).collect()
    }

    fn failure(&self, test: FailedTest, edited: bool) -> Failure {
        let FailedTest { suite, name, output } = test;
        Failure {
            name: format!("{suite}: {name}"),
            output,
            command: self.command(&suite, &name),
            edited,
            again: {
                let runner = self.clone();
                Box::new(move || runner.again(&suite, &name))
            },
        }
    }

    /// Runs a program with its texts in files of this name, and returns how it ended and its results.
    fn results(
        &self,
        suite: &Suite,
        arguments: &[&str],
        name: &str,
    ) -> Result<(Result<ExitStatus, String>, Results), String> {
        let (log, output) = (self.path(suite, name, "log"), self.path(suite, name, "txt"));
        let explain = |error: std::io::Error| format!("{}: {error}", output.display());
        fs::create_dir_all(&self.folder).map_err(explain)?;
        // The program may end before it makes its own.
        fs::write(&log, "").map_err(explain)?;
        let program = self.program(suite, self.limit, arguments).args(["--logfile", &log.to_string_lossy()]);
        let ended = program.logged(&File::create(&output).map_err(explain)?);
        Ok((ended, Results { log: read(&log)?, output: read(&output)? }))
    }

    fn program(&self, suite: &Suite, limit: Duration, arguments: &[&str]) -> Program {
        // As cargo does it.
        let program = Program::new(&suite.program, limit)
            .args(arguments)
            .directory(&suite.folder)
            .env("CARGO_MANIFEST_DIR", &suite.folder.to_string_lossy())
            .env("CARGO_PKG_NAME", &suite.package);
        self.environment.iter().fold(program, |program, (name, value)| program.env(name, value))
    }

    /// Returns the command that runs a test in the same way.
    fn command(&self, suite: &Suite, test: &str) -> String {
        let Suite { package, kind, target, .. } = suite;
        let target = match kind.as_str() {
            "bin" | "test" => format!("--{kind} {target}"),
            _ => "--lib".to_owned(),
        };
        let mut words: Vec<String> =
            self.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        words.push(format!("cargo test -p {package} --all-features {target} -- --exact {test}"));
        words.join(" ")
    }

    fn path(&self, suite: &Suite, name: &str, extension: &str) -> PathBuf {
        let Suite { package, kind, target, .. } = suite;
        self.folder.join(format!("{package}-{kind}-{target}.{name}.{extension}"))
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.package, self.kind, self.target)
    }
}

/// Reads a text that may contain anything.
fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::{Runner, Suite};
    use crate::process::Program;

    const LONG: Duration = Duration::from_mins(2);

    /// A program made of `code`, in a folder of its own that is removed when it is dropped.
    struct Made {
        folder: PathBuf,
        suite: Suite,
    }

    impl Made {
        fn of(name: &str, code: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("xtask-suite-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("it.rs"), code).unwrap();
            let compile = ["--test", "--edition=2024", "-o", "it", "it.rs"];
            Program::new("rustc", LONG).args(compile).directory(&folder).run().unwrap();
            let suite = Suite {
                package: "made".to_owned(),
                kind: "test".to_owned(),
                target: "it".to_owned(),
                program: folder.join("it"),
                folder: folder.clone(),
            };
            Self { folder, suite }
        }

        fn runner(&self, limit: Duration) -> Runner {
            Runner {
                environment: vec![("WORD", "given".to_owned())],
                folder: self.folder.join("texts"),
                limit,
            }
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn failing_test_is_reported_with_its_output_and_its_command() {
        let made = Made::of(
            "fails",
            "#[test] fn passes() { assert_eq!(std::env::var(\"WORD\").unwrap(), \"given\") }
            mod inner { #[test] fn fails() { println!(\"said before\"); panic!(\"the reason\") } }",
        );
        let runner = made.runner(LONG);
        let mut ran = BTreeSet::new();
        let mut failed = runner.run(&made.suite, &mut ran).unwrap();
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(ran.iter().eq(["fails", "passes"]), "{ran:?}");
        let failure = runner.failure(failed.remove(0), false);
        assert_eq!(failure.name, "made test it: inner::fails");
        assert!(failure.output.starts_with("said before\n"), "{}", failure.output);
        assert!(failure.output.contains("the reason"), "{}", failure.output);
        assert_eq!(
            failure.command,
            "WORD=given cargo test -p made --all-features --test it -- --exact inner::fails"
        );
        let again = (failure.again)().unwrap_err();
        assert!(again.contains("said before") && again.contains("exit status: 101"), "{again}");
    }

    #[test]
    fn test_that_fails_once_passes_when_it_is_tried_again() {
        let made = Made::of(
            "once",
            "#[test] fn once() {
                let path = \"failed-before\";
                if std::fs::metadata(path).is_err() { std::fs::write(path, \"\").unwrap(); panic!(\"once\") }
            }",
        );
        let runner = made.runner(LONG);
        let failed = runner.run(&made.suite, &mut BTreeSet::new()).unwrap().remove(0);
        assert_eq!(failed.name, "once");
        assert_eq!((runner.failure(failed, false).again)(), Ok(()));
        assert!(runner.again(&made.suite, "gone").is_err(), "no test is no test that passes");
    }

    #[test]
    fn test_that_hangs_is_named_and_ends() {
        let made = Made::of(
            "hangs",
            "#[test] fn hangs() { loop { std::thread::park() } }
            #[test] fn passes() {}",
        );
        let failed = made.runner(Duration::from_secs(5)).run(&made.suite, &mut BTreeSet::new()).unwrap();
        let hangs = failed.iter().find(|test| test.name == "hangs").unwrap();
        assert!(hangs.output.contains("was stopped after 5s"), "{}", hangs.output);
    }

    #[test]
    fn output_of_other_programs_is_not_taken_for_results() {
        // One test runs the program again, for the other, and shows its output before it ends in different ways.
        let code = |end: &str| {
            format!(
                "#[test] fn passes() {{}}
                #[test] fn runs() {{
                    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
                    let output = this.args([\"--exact\", \"passes\"]).output().unwrap();
                    let output = String::from_utf8(output.stdout).unwrap().replace(\"passes\", \"runs\");
                    print!(\"{{output}}\");
                    use std::io::Write as _;
                    std::io::stdout().write_all(output.as_bytes()).unwrap();
                    {end}
                }}"
            )
        };
        for end in ["panic!()", "std::process::exit(0)"] {
            let made = Made::of("others", &code(end));
            let runner = made.runner(LONG);
            let failed = runner.run(&made.suite, &mut BTreeSet::new()).unwrap();
            assert!(failed.iter().any(|test| test.name == "runs"), "{end}: {failed:?}");
            assert!(runner.again(&made.suite, "runs").is_err(), "{end}");
        }
    }

    #[test]
    fn tests_of_a_program_that_ends_early_have_failed() {
        for end in ["abort()", "exit(0)"] {
            let made = Made::of("ends", &format!("#[test] fn ends() {{ std::process::{end} }}"));
            let failed = made.runner(LONG).run(&made.suite, &mut BTreeSet::new()).unwrap();
            let names: Vec<&str> = failed.iter().map(|test| test.name.as_str()).collect();
            assert_eq!(names, ["ends"], "{end}");
            assert!(failed[0].output.starts_with("it had not ended: "), "{}", failed[0].output);
        }
    }
}
