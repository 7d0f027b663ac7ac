//! `toolwire demo`: the tour.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::program::{finish, run, toolwire};

#[test]
fn the_tour_is_the_one_that_is_written_down() {
    let tour = run(toolwire(&["demo", "--once"]));
    assert_eq!((tour.status.code(), tour.stderr.as_str()), (Some(0), ""), "{tour:?}");
    insta::assert_snapshot!("tour", without_what_varies(&tour.stdout));
}

#[test]
fn the_tour_fits_a_terminal_of_80_columns() {
    let tour = run(toolwire(&["demo", "--once"])).stdout;
    // The path of the program is as long as it is.
    let lines = tour.lines().filter(|line| !line.contains("\"command\""));
    for line in lines {
        assert!(line.chars().count() <= 80, "{line:?}");
        assert_eq!(line, line.trim_end(), "spaces at the end");
    }
}

#[test]
fn the_snippet_for_hosts_starts_this_program() {
    let tour = run(toolwire(&["demo", "--once"])).stdout;
    let snippet = tour.split_once("\n  {\n").and_then(|(_, rest)| rest.split_once("\n  }\n")).unwrap().0;
    let config: Value = serde_json::from_str(&format!("{{{snippet}}}")).unwrap();
    let server = &config["mcpServers"]["toolwire-demo"];
    let command = std::path::Path::new(server["command"].as_str().unwrap());
    assert!(command.is_absolute(), "{command:?}");
    assert_eq!(
        command.canonicalize().unwrap(),
        std::fs::canonicalize(env!("CARGO_BIN_EXE_toolwire")).unwrap()
    );
    assert_eq!(server["args"], json!(["demo", "--stdio"]));
}

#[test]
fn colours_are_for_terminals_and_for_those_who_insist() {
    let coloured = |variables: &[(&str, &str)]| {
        let mut command = toolwire(&["demo", "--once"]);
        command.envs(variables.iter().copied());
        run(command).stdout.contains('\u{1b}')
    };
    assert!(!coloured(&[]), "piped");
    assert!(!coloured(&[("NO_COLOR", "1")]));
    assert!(!coloured(&[("NO_COLOR", "1"), ("CLICOLOR", "1")]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]), "colours exist at all");
}

#[test]
fn without_a_terminal_there_is_no_second_round() {
    let tour = run(toolwire(&["demo"]));
    assert_eq!(tour.status.code(), Some(0));
    // Not even when there is something to read.
    let mut command = toolwire(&["demo"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let _stays_open = child.stdin.take();
    let piped = finish(child);
    assert_eq!(piped.status.code(), Some(0));
    assert_eq!(without_what_varies(&piped.stdout), without_what_varies(&tour.stdout));
}

#[test]
fn a_reader_that_leaves_ends_the_tour_quietly() {
    let mut child = toolwire(&["demo", "--once"]).spawn().unwrap();
    let mut first = String::new();
    // The reader is dropped with the pipe at the end of the statement.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("Toolwire"), "{first}");
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
}

/// Replaces what is different each time: times with the spaces before them, the path
/// of the program, its version.
/// Progress may skip steps in haste, and the remark about debug builds is only in those.
fn without_what_varies(tour: &str) -> String {
    let tour = tour
        .replace(env!("CARGO_BIN_EXE_toolwire"), "[toolwire]")
        .replace(env!("CARGO_PKG_VERSION"), "[version]");
    let lines = tour.lines().filter(|line| !line.contains("this is a debug build"));
    lines
        .map(|line| {
            if line.contains("· progress ") {
                "  · progress [steps]\n".to_owned()
            } else {
                without_times(line)
            }
        })
        .collect()
}

fn without_times(line: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in line.split(' ') {
        let number = kept.last().is_some_and(|last| last.parse::<f64>().is_ok());
        if number && matches!(word, "µs" | "ms" | "s") {
            kept.pop();
            while kept.last() == Some(&"") {
                kept.pop();
            }
            kept.push("[time]");
        } else {
            kept.push(word);
        }
    }
    kept.join(" ") + "\n"
}
