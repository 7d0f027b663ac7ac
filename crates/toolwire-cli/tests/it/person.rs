//! A person at a keyboard without a terminal: runs commands on the demonstration server and keeps what they print.

use std::{fmt::Write as _, io::Write as _, path::Path, process::Stdio};

use crate::program::{Ended, finish, toolwire};

/// Runs a command line on the demonstration server, in an empty home.
pub(crate) fn on_demo(line: &[&str]) -> Ended {
    on_demo_with(line, "")
}

/// The same, with something to read on standard input.
pub(crate) fn on_demo_with(line: &[&str], input: &str) -> Ended {
    let home = tempfile::tempdir().unwrap();
    let server = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
    let words: Vec<&str> = line.iter().copied().chain(server).collect();
    in_folder(home.path(), &words, input)
}

/// Runs a command line in a folder that is the home as well.
pub(crate) fn in_folder(home: &Path, words: &[&str], input: &str) -> Ended {
    let mut command = toolwire(words);
    command.current_dir(home).env("HOME", home).env("XDG_CONFIG_HOME", home).env("APPDATA", home);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A program that does not read closes its end, which is its right.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    finish(child)
}

/// What was printed where, and how it ended, without what is different on each machine.
pub(crate) fn told(ended: &Ended) -> String {
    let mut told = ended.stdout.clone();
    if !told.is_empty() && !told.ends_with('\n') {
        told += "%\n";
    }
    if !ended.stderr.is_empty() {
        write!(told, "--- stderr\n{}", ended.stderr).unwrap();
    }
    write!(told, "--- exit {}", ended.status.code().unwrap()).unwrap();
    let server = format!("{} demo --stdio", env!("CARGO_BIN_EXE_toolwire"));
    // A file with control characters in it is no pleasure to read.
    let told = told.replace('\u{1b}', "␛");
    told.replace(&server, "[demo]").replace(&format!("\"{}\"", env!("CARGO_PKG_VERSION")), "\"[version]\"")
}

/// Runs a command line in both eras, which must come to the same, and gives what it told.
pub(crate) fn in_both_eras(line: &[&str]) -> String {
    let [modern, legacy] = ["modern", "legacy"].map(|era| {
        let words: Vec<&str> = line.iter().copied().chain(["--era", era]).collect();
        told(&on_demo(&words))
    });
    assert_eq!(modern, legacy, "{line:?} differs between the eras");
    modern
}
