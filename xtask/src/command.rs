//! What the command line asks for.

use crate::steps::Selection;
use crate::{fuzz, simulate};

pub(crate) const USAGE: &str = "\
usage: cargo xtask test [--list] [--all | --only STEP...]
       cargo xtask check
       cargo xtask bless
       cargo xtask api
       cargo xtask bench
       cargo xtask conformance
       cargo xtask fuzz [--minutes N] [--target T]
       cargo xtask screens
       cargo xtask setup
       cargo xtask mutants [--fresh] [AREA]...
       cargo xtask simulate [--seeds N] [--from SEED]
       cargo xtask soak [--minutes N]
       cargo xtask stores

test runs the checks that every change has to pass:
  --all         run every check there is, as a release has to
  --list        name the steps and exit
  --only STEP   run just this step; may be repeated
check runs those of them that the changes since main concern, except those with programs of other makers.
bless writes the files that tests compare with (public-api.txt, snapshots, compiler messages, screens), and shows
the difference.
api writes what the crates offer into their public-api.txt.
bench counts the instructions of the hot path and takes the time.
conformance runs the official suite against our server and our client.
fuzz runs the fuzz targets, each for 10 minutes or as long as told.
screens writes what the program says into the documents that show it.
setup installs the packages of Debian that steps of --all need, which takes root.
mutants changes the code that safety depends on, and finds the changes that no test notices. Changes that a test has
noticed before are left out while the code is the same; --fresh tries them again.
simulate runs more seeds of the simulation than the checks do.
soak runs a server under mixed load and faults, and fails if it does not stay as small as it was.
stores runs the contract of stores on real servers of Redis and Postgres, which it starts.";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Help,
    List,
    Api,
    Bench,
    Bless,
    Check,
    Fuzz(fuzz::Request),
    Mutants { areas: Vec<String>, fresh: bool },
    Screens,
    Setup,
    Simulate(simulate::Seeds),
    Soak { minutes: u64 },
    Test(Selection),
}

pub(crate) fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut words = arguments.iter().map(String::as_str);
    let Some(command) = words.next() else { return Ok(Request::Help) };
    let rest: Vec<&str> = words.collect();
    if matches!(command, "help" | "--help" | "-h") || rest.iter().any(|word| matches!(*word, "--help" | "-h"))
    {
        return Ok(Request::Help);
    }
    match command {
        "test" => test(&rest),
        "fuzz" => fuzz::parse(rest.into_iter()).map(Request::Fuzz),
        "mutants" => areas(&rest),
        "simulate" => simulate::parse(&arguments[1..]).map(Request::Simulate),
        "soak" => soak(&rest),
        "api" => alone(&rest, Request::Api),
        "bench" => alone(&rest, Request::Bench),
        "bless" => alone(&rest, Request::Bless),
        "check" => alone(&rest, Request::Check),
        "conformance" | "stores" => alone(&rest, Request::Test(Selection::Only(vec![command.to_owned()]))),
        "screens" => alone(&rest, Request::Screens),
        "setup" => alone(&rest, Request::Setup),
        other => Err(format!("unknown command `{other}`")),
    }
}

fn alone(rest: &[&str], request: Request) -> Result<Request, String> {
    match rest.first() {
        None => Ok(request),
        Some(other) => Err(unknown(other)),
    }
}

fn unknown(option: &str) -> String {
    format!("unknown option `{option}`")
}

fn test(rest: &[&str]) -> Result<Request, String> {
    let (mut all, mut only) = (false, Vec::new());
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "--all" => all = true,
            "--list" => return Ok(Request::List),
            "--only" => only.push((*words.next().ok_or("--only needs the name of a step")?).to_owned()),
            other => return Err(unknown(other)),
        }
    }
    match (all, only.is_empty()) {
        (true, false) => Err("--all runs every step, --only some: give one of them".to_owned()),
        (true, true) => Ok(Request::Test(Selection::All)),
        (false, true) => Ok(Request::Test(Selection::Change)),
        (false, false) => Ok(Request::Test(Selection::Only(only))),
    }
}

fn areas(rest: &[&str]) -> Result<Request, String> {
    let (options, areas): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.starts_with('-'));
    match options.iter().find(|option| **option != "--fresh") {
        Some(option) => Err(unknown(option)),
        None => Ok(Request::Mutants {
            areas: areas.into_iter().map(str::to_owned).collect(),
            fresh: !options.is_empty(),
        }),
    }
}

fn soak(rest: &[&str]) -> Result<Request, String> {
    match rest {
        [] => Ok(Request::Soak { minutes: 60 }),
        ["--minutes", minutes] => match minutes.parse() {
            Ok(minutes) if minutes > 0 => Ok(Request::Soak { minutes }),
            _ => Err(format!("`{minutes}` is not a number of minutes")),
        },
        ["--minutes"] => Err("--minutes needs a number".to_owned()),
        [other, ..] => Err(unknown(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Request, Selection, parse};

    fn parsed(line: &str) -> Result<Request, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn the_command_line_is_understood() {
        assert_eq!(parsed(""), Ok(Request::Help));
        assert_eq!(parsed("soak --help"), Ok(Request::Help));
        assert_eq!(parsed("test"), Ok(Request::Test(Selection::Change)));
        assert_eq!(parsed("test --all"), Ok(Request::Test(Selection::All)));
        assert_eq!(parsed("test --list"), Ok(Request::List));
        assert_eq!(parsed("bench"), Ok(Request::Bench));
        assert_eq!(parsed("bless"), Ok(Request::Bless));
        assert_eq!(parsed("check"), Ok(Request::Check));
        let only = |names: &[&str]| {
            Ok(Request::Test(Selection::Only(names.iter().map(|&name| name.to_owned()).collect())))
        };
        assert_eq!(parsed("setup"), Ok(Request::Setup));
        assert_eq!(parsed("conformance"), only(&["conformance"]));
        assert_eq!(parsed("stores"), only(&["stores"]));
        assert_eq!(parsed("test --only lint --only demo"), only(&["lint", "demo"]));
        let seal = vec!["seal".to_owned()];
        assert_eq!(parsed("mutants"), Ok(Request::Mutants { areas: Vec::new(), fresh: false }));
        assert_eq!(parsed("mutants seal"), Ok(Request::Mutants { areas: seal.clone(), fresh: false }));
        assert_eq!(parsed("mutants --fresh seal"), Ok(Request::Mutants { areas: seal, fresh: true }));
        assert_eq!(parsed("soak --minutes 5"), Ok(Request::Soak { minutes: 5 }));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parsed("tset"), Err("unknown command `tset`".to_owned()));
        for line in ["test --fast", "bench --fast", "conformance --fast", "mutants --fast", "soak --fast"] {
            assert_eq!(parsed(line), Err("unknown option `--fast`".to_owned()));
        }
        assert_eq!(parsed("test --only"), Err("--only needs the name of a step".to_owned()));
        for line in ["test --all --only lint", "test --only lint --all"] {
            let expected = "--all runs every step, --only some: give one of them";
            assert_eq!(parsed(line), Err(expected.to_owned()));
        }
        assert_eq!(parsed("soak --minutes none"), Err("`none` is not a number of minutes".to_owned()));
    }
}
