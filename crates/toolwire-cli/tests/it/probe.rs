//! `toolwire probe` and `toolwire bench`: what a server speaks, and how fast.

use serde_json::Value;

use crate::{
    fake_web::{FakeWeb, server_at},
    program::{run, toolwire},
};

const DEMO: [&str; 4] = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];

/// Replaces times, versions, paths and counts.
fn without_what_varies(text: &str) -> String {
    let text = text
        .replace(env!("CARGO_BIN_EXE_toolwire"), "[toolwire]")
        .replace(env!("CARGO_PKG_VERSION"), "[version]");
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let timed = words
            .windows(2)
            .any(|pair| pair[0].parse::<f64>().is_ok() && matches!(pair[1], "µs" | "ms" | "s"));
        let shown = if timed { line.split(char::is_numeric).next().unwrap().trim_end() } else { line };
        if timed { format!("{shown} [times]") } else { shown.to_owned() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_server_of_every_version() {
    let ended = run(toolwire(&[&["probe"], &DEMO[..]].concat()));
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    insta::assert_snapshot!("probe_demo", without_what_varies(&ended.stdout));
}

#[test]
fn what_is_found_out_is_data_for_scripts() {
    let ended = run(toolwire(&[&["probe", "--json"], &DEMO[..]].concat()));
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["version"], "2026-07-28");
    assert_eq!(json["transport"], "stdio");
    assert_eq!(json["answers"]["count"], 10);
    let attempts = json["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 6);
    assert!(attempts.iter().all(|attempt| attempt["error"].is_null()), "{json}");
    assert!(json["capabilities"]["tools"].is_object());
}

#[test]
fn a_server_of_one_version() {
    let starts = std::env::temp_dir().join(format!("toolwire-probe-{}", std::process::id()));
    let script = r#"
echo started >> "$STARTS"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
    *notifications*) ;;
    *ping*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id";;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id";;
  esac
done"#;
    let env = format!("STARTS={}", starts.display());
    let ended = run(toolwire(&["probe", "--env", &env, "--", "sh", "-c", script]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    // One finds the version, one is asked for the modern era, and one for each other legacy version.
    let started = std::fs::read_to_string(&starts).unwrap();
    std::fs::remove_file(&starts).unwrap();
    assert_eq!(started.lines().count(), 5);
    // It is shown on one line, as a shell takes it.
    let line = script.replace('\\', r"\\").replace('\'', r"\'").replace('\n', r"\n");
    let shown = ended.stdout.replace(&line, "[script]");
    insta::assert_snapshot!("probe_one_version", without_what_varies(&shown));
}

#[test]
fn a_server_on_the_web() {
    let web = FakeWeb::start(server_at("/mcp"));
    let ended = run(toolwire(&["probe", &web.url("/mcp")]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    insta::assert_snapshot!("probe_http", without_what_varies(&web.hide_port(&ended.stdout)));
    let ended = run(toolwire(&["probe", "--json", &web.url("/mcp")]));
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["transport"], &json["http"]["session"]), (&"Streamable HTTP".into(), &false.into()));
}

#[test]
fn a_server_that_is_not_there_is_a_case_for_the_doctor() {
    let ended = run(toolwire(&["probe", "--", "no-such-server"]));
    assert_eq!(ended.status.code(), Some(4));
    assert!(ended.stderr.contains("toolwire doctor -- no-such-server"), "{}", ended.stderr);
}

#[test]
fn calls_are_counted_and_checked() {
    let args =
        ["bench", "echo", "text=hello", "--calls", "50", "--warmup", "0", "--duration", "60", "-c", "3"];
    let ended = run(toolwire(&[&args[..], &["--json"], &DEMO[..]].concat()));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["answers"], &json["errors"], &json["concurrency"]), (&50.into(), &0.into(), &3.into()));
    assert_eq!(json["what"], "tools/call echo");
    let counts = json["histogram"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 50);
    assert!(json["microseconds"]["p50"].as_u64() <= json["microseconds"]["max"].as_u64(), "{json}");

    let ended = run(toolwire(&[&args[..], &DEMO[..]].concat()));
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].ends_with("2026-07-28 · tools/call echo · 3 callers"), "{}", ended.stdout);
    assert!(
        lines[2].contains("answers per second (50 in ") && lines[2].ends_with("no errors"),
        "{}",
        ended.stdout
    );
    assert!(lines[4].starts_with("  p50 ") && lines[4].contains("p99.9 "), "{}", ended.stdout);
    assert!(ended.stdout.contains('█'), "{}", ended.stdout);
}

#[test]
fn without_a_tool_the_least_is_asked() {
    let args = ["bench", "--json", "-n", "10", "--warmup", "0", "--duration", "60"];
    for (era, what) in [("modern", "server/discover"), ("legacy", "ping")] {
        let ended = run(toolwire(&[&args[..], &["--era", era], &DEMO[..]].concat()));
        let json: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((json["what"].as_str(), json["answers"].as_u64()), (Some(what), Some(10)));
    }
}

#[test]
fn a_tool_that_fails_cannot_be_measured() {
    let ended = run(toolwire(&[&["bench", "fail"], &DEMO[..]].concat()));
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(5), ""));
    let ended = run(toolwire(&[&["bench", "no-such-tool"], &DEMO[..]].concat()));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("error[unknown-name]"), "{}", ended.stderr);
}

#[test]
fn arguments_are_those_of_a_call() {
    let few = ["-n", "2", "--warmup", "0", "--json"];
    // The schema wants a text, so that is what the number is sent as.
    let ended = run(toolwire(&[&["bench", "echo", "text=5"], &few[..], &DEMO[..]].concat()));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let ended = run(toolwire(&[&["bench", "echo", "nonsense"], &few[..], &DEMO[..]].concat()));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let ended = run(toolwire(&[&["bench", "add", "a=two", "b=3"], &few[..], &DEMO[..]].concat()));
    assert_eq!(ended.status.code(), Some(6), "{ended:?}");
    // That is an option of a call alone.
    assert!(ended.stderr.contains("add(a: ") && !ended.stderr.contains("--no-check"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_bench_declares_what_a_call_can_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first");
    let server = ["--era", "legacy", "--", "sh", "-c", r#"read -r line; echo "$line" > "$0""#];
    let ended = run(toolwire(&[&["bench"], &server[..], &[file.to_str().unwrap()]].concat()));
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    let first = std::fs::read_to_string(file).unwrap();
    assert!(first.contains(r#""elicitation""#) && first.contains(r#""sampling""#), "{first}");
}
