//! `read`, `prompt`, `complete` and `watch`.

use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{
    person::{in_both_eras, on_demo, on_demo_with, told},
    program::{finish, lines, run, toolwire},
};

#[test]
fn text_goes_to_standard_output_as_it_is() {
    assert_snapshot!("greeting", in_both_eras(&["read", "demo://greeting"]));
    assert_snapshot!(
        "greeting_json",
        told(&on_demo(&["read", "demo://greeting", "--json", "--era", "legacy"]))
    );
    assert_eq!(on_demo(&["read", "demo://users/Ada"]).stdout, "Hello, Ada!");
    assert_snapshot!("no_uri", told(&on_demo(&["read"])));
}

#[test]
fn bytes_go_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logo.png");
    let saved = on_demo(&["read", "demo://logo", "-o", file.to_str().unwrap()]);
    assert_snapshot!("logo_saved", told(&saved).replace(file.to_str().unwrap(), "[file]"));
    let picture = std::fs::read(file).unwrap();
    assert_eq!(picture.get(1..4), Some(&b"PNG"[..]));
    // A pipe gets the bytes as they are.
    let server = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
    let words: Vec<&str> = ["read", "demo://logo"].into_iter().chain(server).collect();
    assert_eq!(toolwire(&words).output().unwrap().stdout, picture);
}

/// As on a full disk: no file may grow, and that is an error and no signal.
#[cfg(unix)]
#[test]
fn what_cannot_be_saved_whole_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logo.png");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" read demo://logo -o \"$1\" -- \"$0\" demo --stdio";
    let program = env!("CARGO_BIN_EXE_toolwire");
    let mut shell = std::process::Command::new("sh");
    let done = shell.args(["-c", script, program]).arg(&file).output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && told.contains("logo.png"), "{told}");
    assert!(!file.exists(), "{told}");
}

#[test]
fn an_error_of_the_server_has_its_code_its_data_and_a_way_on() {
    assert_snapshot!("unknown_modern", told(&on_demo(&["read", "demo://greetin", "--era", "modern"])));
    assert_snapshot!("unknown_legacy", told(&on_demo(&["read", "other://thing", "--era", "legacy"])));
    assert_snapshot!(
        "unknown_json",
        told(&on_demo(&["read", "demo://greetin", "--json", "--era", "modern"]))
    );
}

#[test]
fn prompts_are_conversations() {
    assert_snapshot!("greet", in_both_eras(&["prompt", "greet", "name=Ada"]));
    assert_snapshot!(
        "greet_json",
        told(&on_demo(&["prompt", "greet", "name=Ada", "--json", "--era", "legacy"]))
    );
    assert_snapshot!("greet_missing", in_both_eras(&["prompt", "greet"]));
    assert_snapshot!("greet_unknown_argument", in_both_eras(&["prompt", "greet", "name=Ada", "nmae=x"]));
    assert_snapshot!("greet_misspelled", in_both_eras(&["prompt", "gret"]));
    assert_eq!(
        on_demo_with(&["prompt", "greet", "name=-"], "Ada").stdout,
        "user\n  Please greet Ada warmly.\n"
    );
}

#[test]
fn completion_offers_values() {
    assert_snapshot!("complete_prompt", in_both_eras(&["complete", "prompt", "greet", "name", "A"]));
    assert_snapshot!(
        "complete_template",
        in_both_eras(&["complete", "resource", "demo://users/{name}", "name"])
    );
    assert_snapshot!(
        "complete_nothing",
        in_both_eras(&["complete", "prompt", "greet", "name", "zzz", "other=x"])
    );
    assert_snapshot!(
        "complete_json",
        told(&on_demo(&["complete", "prompt", "greet", "name", "B", "--json", "--era", "legacy"]))
    );
    assert_snapshot!("complete_usage", told(&on_demo(&["complete", "greet", "name"])));
}

/// A server that tells of changes as soon as it is asked to, and then ends.
const CHANGES: &str = r#"
while read -r line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25",
        "capabilities":{"logging":{},"resources":{"listChanged":true,"subscribe":true}},
        "serverInfo":{"name":"x","version":"1"}}}' | tr -d '\n'
      echo ;;
    *'"logging/setLevel"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
    *'"resources/subscribe"'*)
      echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"x","data":"hot"}}'
      echo '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://y"}}'
      echo '{"jsonrpc":"2.0","id":'$id',"result":{}}'
      exit 0 ;;
  esac
done"#;

#[cfg(unix)]
#[test]
fn watching_tells_of_changes_and_of_the_end() {
    let server = ["--", "sh", "-c", CHANGES];
    let words: Vec<&str> = ["watch", "x://y", "--era", "legacy"].into_iter().chain(server).collect();
    let ended = run(toolwire(&words));
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    assert!(ended.stderr.starts_with("watching resources, x://y; Ctrl-C ends it\n"), "{ended:?}");
    assert!(ended.stderr.contains("error[connection-closed]: nothing more will come"), "{ended:?}");
    let times = ended.stdout.lines().map(|line| line.split_once("Z  ").unwrap().1);
    assert_eq!(times.collect::<Vec<_>>(), ["warning x: hot", "x://y has changed"], "{ended:?}");

    let words: Vec<&str> =
        ["watch", "x://y", "--json", "--era", "legacy"].into_iter().chain(server).collect();
    let ended = run(toolwire(&words));
    let told: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [watching, log, change, end] = told.as_slice() else { panic!("{ended:?}") };
    assert_eq!(watching["watching"], json!(["resources", "x://y"]));
    assert_eq!(log["log"]["data"], "hot");
    assert_eq!((&change["change"], &change["uri"]), (&json!("updated"), &json!("x://y")));
    assert!(end["ended"].is_string() && end["time"].as_str().unwrap().ends_with('Z'), "{end}");
}

#[cfg(unix)]
#[test]
fn watching_ends_with_ctrl_c_and_that_is_no_failure() {
    for era in ["modern", "legacy"] {
        let server = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
        let words: Vec<&str> = ["watch", "--json", "--era", era].into_iter().chain(server).collect();
        let mut child = toolwire(&words).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = lines(child.stdout.take().unwrap());
        let first: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
        assert_eq!(first["watching"], json!(["tools", "prompts", "resources"]), "{era}");
        interrupt(child.id());
        assert_eq!(finish(child).status.code(), Some(0), "{era}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_the_call_on_the_server_and_ends_with_130() {
    for era in ["modern", "legacy"] {
        let server = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
        // With -v the server's own words are passed on: it says when it has been cancelled.
        let words = ["call", "wait", "seconds=600", "-v", "--era", era];
        let words: Vec<&str> = words.into_iter().chain(server).collect();
        let mut child = toolwire(&words).spawn().unwrap();
        let mut lines = lines(child.stderr.take().unwrap());
        assert!(lines.any(|line| line == "info wait: waiting for 600 s"), "{era}");
        interrupt(child.id());
        let after: Vec<String> = lines.collect();
        assert_eq!(finish(child).status.code(), Some(130), "{era}: {after:?}");
        assert!(after.iter().any(|line| line == "server: wait: cancelled"), "{era}: {after:?}");
        assert!(after.iter().any(|line| line.starts_with("error[interrupted]")), "{era}: {after:?}");
    }
}

#[cfg(unix)]
fn interrupt(id: u32) {
    assert!(std::process::Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
}
