//! Fuzzing: a few seconds for each target in the checks, and as long as one likes with `cargo xtask fuzz`.
//!
//! The targets are a crate of their own, `fuzz/`, built by cargo-fuzz with the address sanitizer. What a target finds
//! interesting stays below `target/`, so that the corpora in the repository stay small. Its flags are not stable, so the
//! pinned compiler is told to take them all the same: then what the checks build is what they fuzz.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::features;
use crate::output::say;
use crate::process::Program;
use crate::steps::{Outcome, Stop};
use crate::tools::FUZZ;
use crate::workspace::{Workspace, root};

/// Building everything with the sanitizer, on a slow machine.
const BUILD_LIMIT: Duration = Duration::from_mins(45);

/// How long each target runs in the checks.
const CHECK_SECONDS: u64 = 4;

/// How long a target runs if nobody says so.
const DEFAULT_MINUTES: u64 = 10;

/// How long one input may take by the clock. Targets hold themselves to less, by the time of the processor.
const TIMEOUT_SECONDS: u64 = 20;

/// One target, with what an input may be and cost.
struct Target {
    name: &'static str,
    /// The longest input, in bytes.
    length: usize,
    /// How much memory it may take, and how much of it at once, in megabytes. The sanitizer takes a part of it.
    memory: u64,
    at_once: u64,
    dictionary: Option<&'static str>,
    /// More inputs to begin with.
    seeds: Option<&'static str>,
}

const JSON: Option<&str> = Some("json.dict");
const SCHEMA: Option<&str> = Some("schema.dict");
const TOKEN: Option<&str> = Some("token.dict");
const CORPUS: Option<&str> = Some("crates/toolwire-protocol/tests/corpus/json");

const TARGETS: &[Target] = &[
    target("envelope", 16 * 1024, 256, 4).with(JSON, CORPUS),
    target("scan_vs_value", 16 * 1024, 256, 4).with(JSON, CORPUS),
    target("ndjson", 4096, 256, 1),
    target("sse", 4096, 256, 1),
    target("schema_compile", 32 * 1024, 512, 16).with(SCHEMA, None),
    target("schema_validate", 32 * 1024, 512, 16).with(SCHEMA, None),
    target("header_plan", 16 * 1024, 256, 4).with(SCHEMA, None),
    target("uri_template", 10 * 1024, 256, 4),
    target("request_state", 20 * 1024, 256, 4).with(JSON, None),
    target("http1_bytes", 16 * 1024, 512, 8).with(Some("http.dict"), None),
    target("http2_bytes", 16 * 1024, 512, 8),
    target("session_operations", 96, 512, 8),
    target("challenge", 20 * 1024, 256, 4),
    target("oauth_metadata", 16 * 1024, 256, 4).with(JSON, None),
    target("compact_jws", 20 * 1024, 256, 4).with(TOKEN, None),
    target("jwks", 32 * 1024, 256, 4).with(TOKEN, None),
    target("dpop_proof", 10 * 1024, 256, 4).with(TOKEN, None),
];

const fn target(name: &'static str, length: usize, memory: u64, at_once: u64) -> Target {
    Target { name, length, memory, at_once, dictionary: None, seeds: None }
}

impl Target {
    const fn with(mut self, dictionary: Option<&'static str>, seeds: Option<&'static str>) -> Self {
        self.dictionary = dictionary;
        self.seeds = seeds;
        self
    }
}

/// What `cargo xtask fuzz` is asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) minutes: u64,
    pub(crate) target: Option<String>,
}

/// Reads `--minutes N` and `--target T`.
pub(crate) fn parse<'a>(mut arguments: impl Iterator<Item = &'a str>) -> Result<Request, String> {
    let mut request = Request { minutes: DEFAULT_MINUTES, target: None };
    while let Some(argument) = arguments.next() {
        match argument {
            "--minutes" => {
                let minutes = arguments.next().and_then(|minutes| minutes.parse().ok()).filter(|it| *it > 0);
                request.minutes = minutes.ok_or("--minutes needs a number of at least 1")?;
            }
            "--target" => {
                request.target =
                    Some(arguments.next().ok_or("--target needs the name of a target")?.to_owned());
            }
            other => return Err(format!("unknown option `{other}`")),
        }
    }
    Ok(request)
}

/// Runs each target for some seconds; the step `fuzz` of `cargo xtask test --all`.
pub(crate) fn check() -> Outcome {
    if !cfg!(target_os = "linux") {
        return Err(Stop::Skipped("targets are fuzzed on Linux only".to_owned()));
    }
    FUZZ.install().map_err(Stop::skipped)?;
    Ok(fuzz(TARGETS.iter(), CHECK_SECONDS)?)
}

/// Builds the targets without a sanitizer, to see that they compile and that their lock file is up to date.
pub(crate) fn compiles() -> Outcome {
    let build = Program::cargo(&root().join("fuzz"), BUILD_LIMIT).args(["check", "--locked", "--target-dir"]);
    Ok(build.args([features::target()?]).run()?)
}

/// Brings what building the targets needs.
pub(crate) fn prepare() -> Result<(), String> {
    FUZZ.install().map(drop)
}

/// Runs one target, or all of them, for some minutes each.
pub(crate) fn run(request: &Request) -> Result<bool, String> {
    let chosen = |target: &&Target| request.target.as_deref().is_none_or(|name| name == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(chosen).collect();
    if targets.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!("there is no such target; there are {}", names.join(", ")));
    }
    match fuzz(targets.into_iter(), request.minutes * 60) {
        Ok(()) => Ok(true),
        Err(reason) => {
            say!("{reason}");
            Ok(false)
        }
    }
}

fn fuzz<'t>(targets: impl Iterator<Item = &'t Target>, seconds: u64) -> Result<(), String> {
    let root = root();
    let place = Workspace::read(&root)?.target.join("fuzz");
    build(&root, &place)?;
    let programs = place.join(host(&root)?).join("release");
    let mut failed = Vec::new();
    for target in targets {
        match target.run(&root, &place, &programs, seconds) {
            Ok(figures) => say!("{:<20}{figures}", target.name),
            Err(reason) => failed.push(reason),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn build(root: &Path, place: &Path) -> Result<(), String> {
    // cargo-fuzz would write a lock file that is out of date anew.
    let metadata = ["metadata", "--locked", "--format-version", "1"];
    Program::cargo(&root.join("fuzz"), BUILD_LIMIT).args(metadata).successful_output()?;
    Program::new(FUZZ.install()?, BUILD_LIMIT)
        .directory(&root.join("fuzz"))
        .args(["build", "--target-dir"])
        .args([place])
        .env("RUSTC_BOOTSTRAP", "1")
        .run()
}

/// The name of this platform, which is the name of the folder that programs are built in.
fn host(root: &Path) -> Result<String, String> {
    let said = Program::new("rustc", BUILD_LIMIT).directory(root).args(["-vV"]).successful_output()?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say what it builds for".to_owned())
}

impl Target {
    /// Runs the target and tells what it has done.
    fn run(&self, root: &Path, place: &Path, programs: &Path, seconds: u64) -> Result<String, String> {
        let found = place.join("corpus").join(self.name);
        let artifacts = place.join("artifacts").join(self.name);
        for folder in [&found, &artifacts] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let log = place.join(format!("{}.log", self.name));
        let output = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let seeds = root.join("fuzz/corpus").join(self.name);
        let mut program =
            Program::new(programs.join(self.name), Duration::from_secs(seconds + 10 * TIMEOUT_SECONDS))
                .args([&found, &seeds])
                .args(self.seeds.map(|seeds| root.join(seeds)))
                .args(
                    self.dictionary
                        .map(|name| format!("-dict={}", root.join("fuzz/dictionaries").join(name).display())),
                )
                .args([
                    format!("-artifact_prefix={}/", artifacts.display()),
                    format!("-max_total_time={seconds}"),
                    format!("-timeout={TIMEOUT_SECONDS}"),
                    format!("-max_len={}", self.length),
                    format!("-rss_limit_mb={}", self.memory),
                    format!("-malloc_limit_mb={}", self.at_once),
                    "-print_final_stats=1".to_owned(),
                ]);
        // Freed memory is kept to notice whoever still uses it, which is not what is looked for here.
        program = program
            .env("ASAN_OPTIONS", "quarantine_size_mb=8:detect_odr_violation=0:allocator_may_return_null=1");
        // Reading the debugging information for a backtrace takes more memory than a target may.
        let status = program.env("RUST_BACKTRACE", "0").logged(&output)?;
        let said = fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        if status.success() {
            return Ok(figures(&said));
        }
        let why = said.lines().find(|line| line.contains("panicked at") || line.contains("ERROR:"));
        Err(format!(
            "fuzz target `{}` failed: {}; the input is in {}, the log is {}",
            self.name,
            why.unwrap_or("it ended with an error").trim(),
            artifacts.display(),
            log.display()
        ))
    }
}

/// The runs, and the memory that was taken at most, as libFuzzer says them at its end.
fn figures(log: &str) -> String {
    let stat = |name: &str| {
        let line =
            log.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':'));
        line.map_or("?", str::trim)
    };
    format!(
        "{:>10} runs, {:>6} a second, {:>4} new inputs, {:>4} MB at most",
        stat("number_of_executed_units"),
        stat("average_exec_per_sec"),
        stat("new_units_added"),
        stat("peak_rss_mb")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_understood() {
        let parsed = |line: &str| parse(line.split_whitespace());
        assert_eq!(parsed(""), Ok(Request { minutes: DEFAULT_MINUTES, target: None }));
        let asked = Request { minutes: 3, target: Some("sse".to_owned()) };
        assert_eq!(parsed("--target sse --minutes 3"), Ok(asked));
        assert_eq!(parsed("--minutes 0"), Err("--minutes needs a number of at least 1".to_owned()));
        assert_eq!(parsed("--target"), Err("--target needs the name of a target".to_owned()));
        assert_eq!(parsed("--fast"), Err("unknown option `--fast`".to_owned()));
    }

    #[test]
    fn every_target_is_a_program_with_something_to_begin_with() {
        let fuzz = root().join("fuzz");
        let programs = fs::read_dir(fuzz.join("fuzz_targets")).unwrap().count();
        assert_eq!(programs, TARGETS.len());
        for target in TARGETS {
            assert!(
                fuzz.join("fuzz_targets").join(format!("{}.rs", target.name)).exists(),
                "{}",
                target.name
            );
            let seeds = fs::read_dir(fuzz.join("corpus").join(target.name));
            assert!(target.seeds.is_some() || seeds.unwrap().count() > 0, "{}", target.name);
            if let Some(name) = target.dictionary {
                assert!(fuzz.join("dictionaries").join(name).exists(), "{name}");
            }
        }
    }

    #[test]
    fn the_figures_of_a_run_are_read() {
        let log = "INFO\nstat::number_of_executed_units: 12\nstat::average_exec_per_sec:     3\nstat::new_units_added: 4\nstat::peak_rss_mb:              5\n";
        assert_eq!(figures(log), "        12 runs,      3 a second,    4 new inputs,    5 MB at most");
    }
}
