//! Servers that are broken or mean harm: what happened is told, and the terminal is safe.

use crate::{
    fake_web::FakeWeb,
    program::{Ended, run, toolwire},
};

/// Answers the handshake, and then each request with the next of its arguments, as `printf` understands it.
const SERVER: &str = r#"
read -r _; printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}\n'
read -r _; printf '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}\n'
read -r _; for answer; do read -r _; printf "$answer"; done; while read -r _; do :; done
"#;

fn tools(answers: &[&str], args: &[&str]) -> Ended {
    let server = [&["--", "sh", "-c", SERVER, "sh"], answers].concat();
    run(toolwire(&[&["tools"], args, &server[..]].concat()))
}

#[test]
fn a_name_cannot_control_the_terminal_or_pretend_to_be_several_lines() {
    let answer = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a\\u001b[31mb\\nc\\u202ed","inputSchema":{"type":"object"}}]}}\n"#;
    let ended = tools(&[answer], &[]);
    assert_eq!(ended.stdout, "a\\x1b[31mb\\nc\\u202ed()\n", "{ended:?}");
}

#[test]
fn what_came_instead_of_the_answer_is_told() {
    let ended = tools(&[r#"{"jsonrpc":"2.0","id":3,"result":\n"#], &["--timeout", "5"]);
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

/// A list with a tool that is none between two that are.
const ONE_BAD: &str = r#"{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":"oops"},{"name":"c","inputSchema":{"type":"object"}}]}}\n"#;

/// Answers every request for the list with [`ONE_BAD`].
fn one_bad(args: &[&str]) -> Ended {
    const LISTING: &str = r#"
    read -r _; printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}\n'
    read -r _; printf '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}\n'
    read -r _; n=3; while read -r _; do printf "$1" $n; n=$((n+1)); done
    "#;
    let (command, rest) = args.split_first().unwrap();
    let server = ["--", "sh", "-c", LISTING, "sh", ONE_BAD];
    run(toolwire(&[&[*command], rest, &server[..]].concat()))
}

#[test]
fn one_bad_tool_does_not_hide_the_others() {
    let ended = one_bad(&["tools"]);
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), "a()\nc()\n"), "{ended:?}");
    assert_eq!(ended.stderr, "warning: the tool `b` is left out: its inputSchema is not an object\n");
    let ended = one_bad(&["tools", "--json"]);
    let tools: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 2, "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(told["leftOut"][0]["name"], "b");
    let ended = one_bad(&["call", "b"]);
    assert_eq!(ended.status.code(), Some(6), "{ended:?}");
    assert!(ended.stderr.contains("its inputSchema is not an object"), "{ended:?}");
    let ended = one_bad(&["doctor"]);
    assert!(ended.stdout.contains("error[schema-invalid]"), "{ended:?}");
    assert!(ended.stdout.contains("b: its inputSchema is not an object"), "{ended:?}");
}

#[test]
fn a_message_over_the_limit_fails_at_once_and_tells_how_to_allow_it() {
    let answer = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a","description":"%1100000s","inputSchema":{"type":"object"}}]}}\n"#;
    let server = ["--", "sh", "-c", SERVER, "sh", answer];
    // Longer than a run may take: the answer is not waited for.
    let tools = |args: &[&str]| run(toolwire(&[&["tools", "--timeout", "600"], args, &server[..]].concat()));
    let ended = tools(&["--max-message", "1"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("error[message-too-large]"), "{ended:?}");
    assert!(ended.stderr.contains("longer than the limit of 1048576 bytes"), "{ended:?}");
    assert!(ended.stderr.contains("--max-message 4"), "{ended:?}");
    assert_eq!(tools(&["--max-message", "2"]).status.code(), Some(0));
}

#[test]
fn a_server_that_asks_for_folders_is_answered_before_anything_is_called() {
    // The tools are those of a server that knows its folders only if it was told of them first.
    const ROOTS: &str = r#"
    read -r _; printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}\n'
    read -r _; printf '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}\n'
    read -r _; printf '{"jsonrpc":"2.0","id":77,"method":"roots/list"}\n'
    read -r first; case "$first" in *'"roots"'*) name=knows;; *) name=does_not_know;; esac
    read -r _; printf '{"jsonrpc":"2.0","id":3,"result":{}}\n'
    read -r _; printf '{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"%s","inputSchema":{"type":"object"}}]}}\n' $name
    while read -r _; do :; done
    "#;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let ended = run(toolwire(&["tools", "--timeout", "20", "--root", root, "--", "sh", "-c", ROOTS]));
    assert_eq!(ended.stdout, "knows()\n", "{ended:?}");
    let ended = run(toolwire(&["tools", "--root", "/no/such/folder", "--", "sh", "-c", ROOTS]));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--root: /no/such/folder does not exist"), "{ended:?}");
}

#[test]
fn templates_need_not_be_known_to_a_server_with_resources() {
    let server = SERVER.replace(r#""tools":{}"#, r#""resources":{}"#);
    let refused = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found"}}\n"#;
    let ended = run(toolwire(&["templates", "--", "sh", "-c", &server, "sh", refused]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("has no resource templates"), "{ended:?}");
}

#[test]
fn an_answer_over_the_limit_is_told_the_same_way_over_http() {
    let web = FakeWeb::start(|asked| {
        let message: serde_json::Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => serde_json::json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "x", "version": "1" },
            }),
            Some("tools/list") => serde_json::json!({ "tools": [], "_meta": { "x": "y".repeat(1_100_000) } }),
            Some("notifications/initialized") => {
                return Some(
                    b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
                );
            }
            _ => {
                return Some(
                    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
                );
            }
        };
        let body = serde_json::json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        Some(format!("{head}Connection: close\r\n\r\n{body}").into_bytes())
    });
    let url = web.url("/mcp");
    let ended = run(toolwire(&["tools", "--json", "--max-message", "1", "--timeout", "20", &url]));
    let error: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(error["error"]["code"], "message-too-large", "{ended:?}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("--max-message"), "{ended:?}");
    assert_eq!(run(toolwire(&["tools", "--timeout", "20", &url])).status.code(), Some(0));
}

#[test]
fn a_token_without_the_scopes_is_answered_with_what_it_lacks_and_not_with_what_a_code_means() {
    let web = FakeWeb::start(|asked| {
        let message: serde_json::Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let error = serde_json::json!({ "code": -32600, "message": "the scope files:write is needed" });
        let body = serde_json::json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string();
        let head = format!(
            "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        Some(format!("{head}Connection: close\r\n\r\n{body}").into_bytes())
    });
    let mut command = toolwire(&["tools", "--timeout", "20", "--bearer-env", "TOKEN", &web.url("/mcp")]);
    command.env("TOKEN", "a-token-of-somebody-1");
    let ended = run(command);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("files:write"), "{ended:?}");
    assert!(!ended.stderr.contains("explain -32600"), "{ended:?}");
    assert!(ended.stderr.contains("send a token that has the scopes"), "{ended:?}");
}
