//! `toolwire serve`: the demonstration server, for clients to be tried on.

use std::{
    io::Write,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::program::{finish, lines, run, toolwire};

/// A server on a free port, and its URL.
pub(crate) fn listening() -> (Child, String) {
    let mut child = toolwire(&["serve", "--json", "--http", "127.0.0.1:0"]).spawn().unwrap();
    let line = lines(child.stdout.take().unwrap()).next().unwrap();
    let place: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(place["transport"], "http");
    (child, place["url"].as_str().unwrap().to_owned())
}

#[cfg(unix)]
#[test]
fn it_serves_every_era_on_http_and_ends_when_it_is_asked_to() {
    let (child, url) = listening();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/traces/demo.jsonl");
    let modern = run(toolwire(&["trace", "replay", demo, &url, "--era", "modern"]));
    assert_eq!((modern.status.code(), modern.stderr.as_str()), (Some(0), ""), "{}", modern.stdout);
    let legacy = run(toolwire(&["trace", "replay", demo, &url, "--era", "legacy", "--ignore", "code"]));
    assert_eq!((legacy.status.code(), legacy.stderr.as_str()), (Some(0), ""), "{}", legacy.stdout);

    let taken = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let second = run(toolwire(&["serve", "--http", taken]));
    assert_eq!(second.status.code(), Some(1));
    assert!(
        second.stderr.contains("cannot be listened on") && second.stderr.contains("127.0.0.1:0"),
        "{second:?}"
    );

    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn without_a_person_it_serves_whoever_has_started_it() {
    let mut child = toolwire(&["serve"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap();
    drop(stdin);
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(answer["id"], 1);
}

#[test]
fn an_origin_that_is_none_is_refused() {
    let ended = run(toolwire(&["serve", "--http", "127.0.0.1:0", "--allow-origin", "not an origin"]));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("not an origin"), "{}", ended.stderr);
}
