use std::collections::BTreeSet;

use clap::Parser;
use toolwire::ErrorCode;

use super::*;
use crate::{args::Cli, commands::doctor::Problem, failure::Code};

/// How wide a page may be, so that it fits a terminal of 80 columns with its margin.
const WIDTH: usize = 78;

#[test]
fn everything_this_program_prints_has_its_page() {
    for code in Code::ALL {
        assert!(find(code.name()).is_some_and(|page| page.code == code.name()), "{code:?}");
        assert!(find(&format!("exit-{}", code.exit())).is_some(), "{code:?}");
    }
    for problem in Problem::ALL {
        assert!(find(problem.name()).is_some_and(|page| page.code == problem.name()), "{problem:?}");
    }
}

#[test]
fn every_code_of_the_protocol_has_its_page() {
    let named = (-32768..=1).filter(|code| ErrorCode(*code).name().is_some());
    let mut count = 0;
    for code in named {
        assert!(find(&code.to_string()).is_some_and(|page| page.code == code.to_string()), "{code}");
        count += 1;
    }
    assert_eq!(count, 11, "the codes that the protocol names");
}

#[test]
fn pages_are_built_alike_and_fit_a_terminal() {
    for page in all() {
        let text = page.markdown();
        assert!(text.starts_with(&format!("# {}: ", page.code)), "{}", page.code);
        for part in ["\n## Usual causes\n", "\n## Find out\n", "\n## Fix\n"] {
            assert!(text.contains(part), "{} has no {part:?}", page.code);
        }
        assert!(text.lines().any(|line| line.starts_with("    ")), "{} has no example", page.code);
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{}: {line}", page.code);
            assert_eq!(line, line.trim_end(), "{}", page.code);
        }
    }
}

#[test]
fn no_file_is_forgotten_and_no_code_is_twice() {
    let codes: BTreeSet<_> = all().map(|page| page.code).collect();
    assert_eq!(codes.len(), all().count(), "a code is there twice");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pages");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "md"));
    assert_eq!(files.count(), codes.len(), "a file without a line in the table");
}

#[test]
fn what_pages_tell_to_type_and_to_read_exists() {
    let mut commands = 0;
    for page in all() {
        let typed = page.markdown().lines().map(str::trim_start).filter(|line| line.starts_with("toolwire "));
        for line in typed {
            let parsed = Cli::try_parse_from(words(line));
            // Help and versions are no commands, but can be typed.
            let refused = parsed.err().filter(clap::Error::use_stderr);
            assert!(refused.is_none(), "{}: {line}\n{}", page.code, refused.unwrap());
            let explained = line.strip_prefix("toolwire explain ").map(str::trim);
            assert!(explained.is_none_or(|code| find(code).is_some()), "{}: {line}", page.code);
            commands += 1;
        }
    }
    assert!(commands > 50, "{commands}");
}

#[test]
fn codes_are_found_however_they_are_written() {
    for (written, code) in [
        ("AUTH_NEEDED", "auth-needed"),
        ("[timeout]:", "timeout"),
        ("-32601", "-32601"),
        ("32601", "-32601"),
        ("rpc-32601", "-32601"),
        ("rpc-1", "-1"),
        ("401", "http-401"),
        ("HTTP 401", "http-401"),
        ("503", "http-5xx"),
        ("4", "exit-4"),
        ("exit 130", "exit-130"),
        ("143", "exit-130"),
    ] {
        assert_eq!(find(written).map(|page| page.code), Some(code), "{written}");
    }
    for nonsense in ["", "8", "nonsense", "-99999", "http-4", "299"] {
        assert_eq!(find(nonsense), None, "{nonsense}");
    }
}

#[test]
fn close_codes_are_offered() {
    assert_eq!(close_to("auth-neded").first(), Some(&"auth-needed"));
    assert!(close_to("stdout").contains(&"junk-on-stdout"));
    assert!(close_to("zzz").is_empty());
}

/// The words of a command line; only single quotes are understood.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
