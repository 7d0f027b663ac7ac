//! `toolwire demo`.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::program::{ended, finish, run, toolwire};

const ENVELOPE: &str = "io.modelcontextprotocol";

#[test]
fn the_tour_is_the_one_that_is_written_down() {
    let tour = run(toolwire(&["demo", "--once"]));
    assert_eq!((tour.status.code(), tour.stderr.as_str()), (Some(0), ""), "{tour:?}");
    let expected = include_str!("tour.txt");
    let seen = without_what_varies(&tour.stdout);
    assert!(
        seen == expected,
        "the tour has changed; if that was meant, this belongs into tour.txt:\n{seen}"
    );
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
    assert_eq!(command.canonicalize().unwrap(), std::fs::canonicalize(env!("CARGO_BIN_EXE_toolwire")).unwrap());
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

#[test]
fn on_stdio_it_answers_both_eras_and_leaves_with_its_client() {
    let legacy = [
        request(
            1,
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        ),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 40}})),
    ];
    let answers = serve(&legacy);
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "toolwire-demo");
    assert_eq!(answers[1]["result"]["structuredContent"], json!({"sum": 42}));

    let meta = json!({
        format!("{ENVELOPE}/protocolVersion"): "2026-07-28",
        format!("{ENVELOPE}/clientInfo"): {"name": "test", "version": "1"},
        format!("{ENVELOPE}/clientCapabilities"): {},
    });
    let call = json!({"name": "add", "arguments": {"a": 2, "b": 40}, "_meta": meta});
    let modern = [request(1, "server/discover", json!({"_meta": meta})), request(2, "tools/call", call)];
    let answers = serve(&modern);
    assert_eq!(answers[0]["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(answers[1]["result"]["structuredContent"], json!({"sum": 42}));
}

#[test]
fn on_stdio_it_finishes_what_was_asked_before_it_leaves() {
    let handshake = request(
        1,
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let count = request(2, "tools/call", json!({"name": "count", "arguments": {"to": 5}}));
    let answers = serve(&[handshake, initialized, count]);
    assert_eq!(answers.last().unwrap()["result"]["content"][0]["text"], "counted to 5");
}

#[test]
fn on_stdio_it_leaves_when_nobody_reads_its_answers() {
    let mut child = toolwire(&["demo", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", request(1, "ping", json!({}))).unwrap();
    // The input stays open: it is the broken output that ends it.
    ended(&mut child);
    drop(stdin);
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Pipes messages through `toolwire demo --stdio`; gives every line it printed.
fn serve(messages: &[Value]) -> Vec<Value> {
    let mut child = toolwire(&["demo", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Replaces times, rates and paths, which are different each time. The columns of times become one word each.
fn without_what_varies(tour: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolwire");
    let tour = tour.replace(program, "[toolwire]");
    let lines = tour.lines().map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let mut kept: Vec<&str> = Vec::new();
        for word in words {
            let unit = matches!(word.trim_end_matches([',', '.', ';']), "µs" | "ms" | "s");
            let number = kept.last().is_some_and(|last| last.parse::<f64>().is_ok());
            if unit && number {
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
    });
    lines.collect()
}
