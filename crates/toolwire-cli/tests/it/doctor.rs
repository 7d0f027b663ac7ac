//! `toolwire doctor`: servers in every kind of trouble.

use serde_json::{Value, json};

use crate::{
    fake_web::{FakeWeb, refusing, server_at},
    program::{Ended, finish, run, toolwire},
};

/// Examines a server with nothing in the environment that could matter.
fn doctor(args: &[&str]) -> Ended {
    let mut command = toolwire(&[&["doctor"], args].concat());
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(variable);
    }
    command.env("SHELL", "/bin/sh").env("PATH", "/usr/bin:/bin");
    run(command)
}

/// The code of each finding.
fn codes(ended: &Ended) -> Vec<String> {
    let json: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    let findings =
        json["servers"].as_array().unwrap().iter().flat_map(|server| server["findings"].as_array().unwrap());
    findings.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

/// Replaces what is different each time. Where lines break depends on it, so they are joined.
fn without_what_varies(text: &str) -> String {
    let text = text
        .replace(env!("CARGO_BIN_EXE_toolwire"), "[toolwire]")
        .replace(env!("CARGO_PKG_VERSION"), "[version]");
    let mut kept: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        if word == "ms" && kept.last().is_some_and(|last| last.parse::<u64>().is_ok()) {
            kept.pop();
            kept.push("[n]");
        }
        kept.push(word);
    }
    kept.join(" ").replace(" · ", "\n· ")
}

#[test]
fn a_healthy_server_is_called_healthy() {
    let server = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
    let ended = doctor(&server);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    insta::assert_snapshot!("doctor_healthy", without_what_varies(&ended.stdout));
    let ended = doctor(&[&["--json", "--strict"], &server[..]].concat());
    assert_eq!(ended.status.code(), Some(0));
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["servers"][0]["healthy"], true);
    assert_eq!(json["servers"][0]["server"]["tools"], 14);
    assert_eq!(codes(&ended), Vec::<String>::new());
}

#[test]
fn a_program_that_is_not_there() {
    let ended = doctor(&["--", "no-such-server", "--fast"]);
    assert_eq!(ended.status.code(), Some(4));
    insta::assert_snapshot!("doctor_program_not_found", ended.stdout);
    let ended = doctor(&["--json", "--", "/no/such/server"]);
    assert_eq!(codes(&ended), ["program-not-found"]);
}

#[cfg(unix)]
#[test]
fn programs_that_cannot_be_run() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ended = doctor(&["--json", "--", path]);
    assert_eq!((codes(&ended), ended.status.code()), (vec!["program-not-executable".to_owned()], Some(4)));
    crate::program::write_executable(&file, "#!/no/such/interpreter\n");
    assert_eq!(codes(&doctor(&["--json", "--", path])), ["interpreter-missing"]);
}

#[test]
fn a_program_that_ends_at_once() {
    let script = "echo 'Error: GITHUB_TOKEN is not set' >&2; exit 3";
    let ended = doctor(&["--", "sh", "-c", script]);
    assert_eq!(ended.status.code(), Some(4));
    insta::assert_snapshot!("doctor_exits_at_once", ended.stdout);
    let ended = doctor(&["--json", "--", "sh", "-c", script]);
    insta::assert_snapshot!("doctor_exits_at_once_json", ended.stdout);
}

#[test]
fn a_program_that_never_answers() {
    let ended = doctor(&["--timeout", "1", "--", "sleep", "1000"]);
    assert_eq!(ended.status.code(), Some(4));
    insta::assert_snapshot!("doctor_timeout", ended.stdout);
}

#[cfg(unix)]
#[test]
fn nothing_that_was_started_stays() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pid");
    let script = format!("echo $$ >> '{}'; exec sleep 1000", note.display());
    // In this time each server has to be there, so that it can be left behind.
    let start = |command| toolwire(&[command, "--timeout", "5", "--", "sh", "-c", &script]).spawn().unwrap();
    for child in ["doctor", "probe", "bench"].map(start) {
        finish(child);
    }
    let pids = std::fs::read_to_string(&note).unwrap();
    assert!(pids.lines().count() >= 3, "{pids}");
    let runs = |pid: &str| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.contains("(sleep)") && !state.contains(") Z ")
    };
    // What was killed may take a moment to go.
    let deadline = std::time::Instant::now() + crate::program::PATIENCE;
    while pids.lines().any(runs) && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let running: Vec<_> = pids.lines().filter(|pid| runs(pid)).collect();
    for pid in &running {
        let _ = std::process::Command::new("kill").arg(pid).status();
    }
    assert!(running.is_empty(), "{running:?}");
}

#[test]
fn a_program_that_talks_to_itself() {
    let ended = doctor(&["--json", "--timeout", "50", "--", "sh", "-c", "echo hello; cat"]);
    assert_eq!(codes(&ended), ["rpc-error", "junk-on-stdout"]);
    assert_eq!(ended.status.code(), Some(1));
}

/// A server of 2025-06-18 in the shell: it answers `initialize` and lists, and says hello first.
const SHELL_SERVER: &str = r#"
echo "starting up"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case $line in
    *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id";;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
    *tools/list*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"delete.all","inputSchema":{"type":"object","properties":{"path":{"type":["string","null"]}},"anyOf":[{}]}}]}}\n' "$id";;
  esac
done
"#;

#[test]
fn a_server_that_works_and_could_do_better() {
    let ended = doctor(&["--", "sh", "-c", SHELL_SERVER]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let findings = ended.stdout.split_once("\n\n").unwrap().1;
    insta::assert_snapshot!("doctor_warnings", findings);
    let strict = doctor(&["--strict", "--", "sh", "-c", SHELL_SERVER]);
    assert_eq!(strict.status.code(), Some(1));
}

#[test]
fn a_server_that_does_not_survive_the_first_message() {
    let script = SHELL_SERVER.replace("*server/discover*)", "*server/discover*) exit 1; ");
    let ended = doctor(&["--json", "--", "sh", "-c", &script]);
    assert!(codes(&ended).contains(&"dies-on-discover".to_owned()), "{ended:?}");
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn a_list_without_an_end_and_one_that_fails() {
    let endless = SHELL_SERVER.replace(r#"{"tools":[{"#, r#"{"nextCursor":"again","tools":[{"#);
    let ended = doctor(&["--json", "--", "sh", "-c", &endless]);
    assert!(codes(&ended).contains(&"list-endless".to_owned()), "{ended:?}");
    assert_eq!(ended.status.code(), Some(1));
    let nameless = SHELL_SERVER.replace(r#""inputSchema":"#, r#""input":"#);
    let ended = doctor(&["--json", "--", "sh", "-c", &nameless]);
    assert!(ended.stdout.contains("delete.all: it has no inputSchema"), "{ended:?}");
    let broken = SHELL_SERVER.replace(r#"{"tools":[{"#, r#"{"toolz":[{"#);
    let ended = doctor(&["--json", "--", "sh", "-c", &broken]);
    assert!(codes(&ended).contains(&"list-failed".to_owned()), "{ended:?}");
}

#[test]
fn what_http_answers_is_told_apart() {
    let html = "Content-Type: text/html\r\n";
    let text = "Content-Type: text/plain\r\n";
    for (status, headers, body, code, exit) in [
        ("401 Unauthorized", text, "", "auth-needed", 3),
        ("403 Forbidden", text, "no", "forbidden", 3),
        ("403 Forbidden", text, "Invalid Host header", "host-refused", 3),
        ("421 Misdirected Request", text, "", "host-refused", 3),
        ("404 Not Found", text, "", "wrong-path", 4),
        ("405 Method Not Allowed", "Allow: GET\r\n", "", "method-refused", 4),
        ("406 Not Acceptable", text, "", "method-refused", 4),
        ("429 Too Many Requests", "Retry-After: 60\r\n", "", "rate-limited", 4),
        ("503 Service Unavailable", text, "", "server-failing", 4),
        ("200 OK", html, "<!doctype html><title>Hi</title>", "web-page", 4),
        ("200 OK", text, "hello", "not-mcp", 4),
        ("308 Permanent Redirect", "Location: https://elsewhere.example/mcp\r\n", "", "redirected", 4),
    ] {
        let web = FakeWeb::canned(status, headers, body);
        let ended = doctor(&["--json", &web.url("/x")]);
        assert_eq!(codes(&ended), [code], "{status}: {ended:?}");
        assert_eq!(ended.status.code(), Some(exit), "{status}");
    }
}

#[test]
fn a_challenge_is_shown() {
    let headers = "WWW-Authenticate: Bearer realm=\"tools\", scope=\"read\"\r\n";
    let web = FakeWeb::canned("401 Unauthorized", headers, "");
    let ended = doctor(&[&web.url("/mcp")]);
    assert_eq!(ended.status.code(), Some(3));
    insta::assert_snapshot!("doctor_auth_needed", web.hide_port(&ended.stdout));
}

#[test]
fn the_right_path_is_found() {
    let web = FakeWeb::start(server_at("/mcp"));
    let ended = doctor(&[&web.url("/api")]);
    assert_eq!(ended.status.code(), Some(4));
    insta::assert_snapshot!("doctor_wrong_path", web.hide_port(&ended.stdout));
    let ended = doctor(&["--json", &web.url("/mcp")]);
    assert_eq!((codes(&ended), ended.status.code()), (vec!["legacy-only".to_owned()], Some(0)), "{ended:?}");
}

#[test]
fn the_wrong_scheme_is_found() {
    let web = FakeWeb::canned("200 OK", "Content-Type: text/plain\r\n", "hello");
    let ended = doctor(&["--json", &web.url("/mcp").replace("http:", "https:")]);
    assert_eq!(codes(&ended), ["tls-mismatch"], "{ended:?}");
    // An alert of TLS: protocol version.
    let tls = FakeWeb::start(|_| Some(vec![0x15, 3, 3, 0, 2, 2, 70]));
    let ended = doctor(&["--json", &tls.url("/mcp")]);
    assert_eq!(codes(&ended), ["tls-mismatch"], "{ended:?}");
}

#[test]
fn addresses_where_nothing_is() {
    let (_bound, address) = refusing();
    let ended = doctor(&["--json", &format!("http://{address}/mcp")]);
    assert_eq!((codes(&ended), ended.status.code()), (vec!["connection-refused".to_owned()], Some(4)));
    let ended = doctor(&["--json", "http://no-such-host.invalid/mcp"]);
    assert_eq!(codes(&ended), ["dns-failed"], "{ended:?}");
    let garbage = FakeWeb::start(|_| Some(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()));
    let ended = doctor(&["--json", &garbage.url("/mcp")]);
    assert_eq!(codes(&ended), ["not-mcp"], "{ended:?}");
}

#[test]
fn a_web_server_that_never_answers() {
    let web = FakeWeb::start(|_| None);
    let ended = doctor(&["--json", "--timeout", "1", &web.url("/mcp")]);
    assert_eq!((codes(&ended), ended.status.code()), (vec!["timeout".to_owned()], Some(4)), "{ended:?}");
}

#[test]
fn all_configured_servers_are_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let look = |config: &str, args: &[&str]| {
        std::fs::create_dir_all(folder.path().join(".cursor")).unwrap();
        std::fs::write(folder.path().join(".cursor/mcp.json"), config).unwrap();
        let mut command = toolwire(&[&["doctor"], args].concat());
        command.current_dir(folder.path()).env("HOME", folder.path()).env("PATH", "/usr/bin:/bin");
        command.env("SHELL", "/bin/sh").env_remove("XDG_CONFIG_HOME");
        run(command)
    };
    let demo = env!("CARGO_BIN_EXE_toolwire");
    let config = json!({ "mcpServers": {
        "bad": { "command": "no-such-server" },
        "good": { "command": demo, "args": ["demo", "--stdio"] },
    } });
    let ended = look(&config.to_string(), &["--json"]);
    assert_eq!(
        (codes(&ended), ended.status.code()),
        (vec!["program-not-found".to_owned()], Some(4)),
        "{ended:?}"
    );
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let names: Vec<_> = json["servers"].as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(names, ["bad", "good"]);
    let ended = look("{ oops", &["--json"]);
    assert_eq!(
        (codes(&ended), ended.status.code()),
        (vec!["config-broken".to_owned()], Some(1)),
        "{ended:?}"
    );
    let ended = look("{}", &[]);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no servers are configured"), "{}", ended.stderr);
}

#[test]
fn a_broken_file_is_shown_with_its_excerpt_as_it_is() {
    let home = crate::home::Home::new()
        .with(".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\":    { \"command\" \"x\" }\n}\n");
    let ended = home.run(&["doctor"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stdout.contains("│   3 |     \"a\":    { \"command\" \"x\" }\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("│     |                         ^\n"), "{}", ended.stdout);
}

#[test]
fn a_token_that_is_refused_is_not_asked_for_again() {
    let web = FakeWeb::canned("401 Unauthorized", "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n", "");
    for command in ["tools", "doctor"] {
        let url = web.url("/mcp");
        let plain = run(toolwire(&[command, &url]));
        let sent = run(toolwire(&[command, &url, "--header", "Authorization: Bearer 0123"]));
        let told = |ended: &Ended| ended.stdout.clone() + &ended.stderr;
        assert!(told(&plain).contains("--bearer-env") && !told(&plain).contains("expired"), "{plain:?}");
        assert!(told(&sent).contains("is it expired") && !told(&sent).contains("--bearer-env"), "{sent:?}");
    }
}

#[test]
fn what_is_behind_a_redirect_is_what_is_wrong() {
    let web = FakeWeb::start(|asked| {
        let (status, more) = if asked.line.contains(" /mcp ") {
            ("307 Temporary Redirect", "Location: /other\r\n")
        } else {
            ("500 Internal Server Error", "")
        };
        Some(
            format!("HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n").into_bytes(),
        )
    });
    let ended = doctor(&["--json", &web.url("/mcp")]);
    assert_eq!(codes(&ended), ["server-failing"], "{ended:?}");
    let ended = run(toolwire(&["tools", "--json", &web.url("/other")]));
    let error: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(error["error"]["code"], "unreachable", "a fault says nothing about what it speaks: {ended:?}");
}
