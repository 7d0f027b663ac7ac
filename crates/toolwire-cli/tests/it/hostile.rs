//! Servers that are broken or mean harm: what happened is told, and the terminal is safe.

use crate::program::{Ended, run, toolwire};

/// Answers the handshake, and then each request with the next of its arguments, as `printf` understands it.
const SERVER: &str = r#"
read -r _; printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}\n'
read -r _; printf '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}\n'
read -r _; for answer; do read -r _; printf "$answer"; done; while read -r _; do :; done
"#;

fn tools(answers: &[&str], args: &[&str]) -> Ended {
    let server = [&["--", "sh", "-c", SERVER, "sh"], answers].concat();
    run(toolwire(&[&["tools", "--timeout", "5"], args, &server[..]].concat()))
}

#[test]
fn a_name_cannot_control_the_terminal_or_pretend_to_be_several_lines() {
    let answer = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a\\u001b[31mb\\nc\\u202ed","inputSchema":{"type":"object"}}]}}\n"#;
    let ended = tools(&[answer], &[]);
    assert_eq!(ended.stdout, "a\u{fffd}[31mb c\u{fffd}d()\n", "{ended:?}");
}

#[test]
fn what_came_instead_of_the_answer_is_told() {
    let ended = tools(&[r#"{"jsonrpc":"2.0","id":3,"result":\n"#], &[]);
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    let said = "no answer to tools/list within 5s; the server sent something that is not a message";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: why? toolwire doctor -- sh -c"), "{}", ended.stderr);
}

#[test]
fn a_list_in_a_circle_is_an_invalid_answer() {
    let page =
        |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[],"nextCursor":"a"}}}}\n"#);
    let ended = tools(&[&page(3), &page(4), &page(5)], &["--json"]);
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(6), ""), "{ended:?}");
    let error: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(error["error"]["code"], "invalid-answer");
}

#[test]
fn scripts_get_what_a_server_logs_as_json() {
    let ended = run(toolwire(&["tools", "--json", "-v", "--", "sh", "-c", "echo oh >&2; exit 3"]));
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    let lines: Vec<serde_json::Value> =
        ended.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.contains(&serde_json::json!({ "stderr": "oh" })), "{}", ended.stderr);
    assert_eq!(lines.last().unwrap()["error"]["code"], "connection-closed");
}
