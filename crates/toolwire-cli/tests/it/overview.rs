//! `toolwire` alone and `toolwire list`: what is configured, and whether it works.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::Value;

use crate::{
    home::Home,
    program::{finish, wait_until},
};

/// A home with servers that work, fail, are off and cannot be understood, and with files that are broken.
fn full() -> Home {
    Home::new()
        .with(
            ".cursor/mcp.json",
            r#"{
  // what Cursor has
  "mcpServers": {
    "demo": { "command": "[toolwire]", "args": ["demo", "--stdio"] },
    "gone": { "command": "no-such-program-anywhere" },
    "crash": { "command": "sh", "args": ["-c", "echo 'no such module: x' >&2; exit 3"] },
    "key": { "command": "x", "env": { "KEY": "${API_KEY}" } },
    "web": { "url": "http://127.0.0.1:9/mcp" },
    "types": { "command": "x", "args": "-y" },
    "off": { "command": "x", "disabled": true },
  },
}"#,
        )
        .with(
            ".codex/config.toml",
            "[mcp_servers.demo]\ncommand = \"[toolwire]\"\nargs = ['demo', '--stdio']\n",
        )
        .with("project/.mcp.json", r#"{ "mcpServers": { "demo": { "command": "no-such-program-either" } } }"#)
        .with(".gemini/settings.json", "{\n  \"mcpServers\": {\n    \"x\": { \"command\": \"y\"\n")
        .with(".codeium/windsurf/mcp_config.json", "")
}

#[test]
fn a_full_home_for_people() {
    let ended = full().run(&[]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    insta::assert_snapshot!(format!("{}\n--- stderr\n{}", ended.stdout, ended.stderr));
    let alone = ended.stdout;
    assert_eq!(full().run(&["list", "--timeout", "60"]).stdout, alone);
    // What a shell would want to have on one line may be as long as it is.
    for line in alone.lines().filter(|line| !line.contains("[home]")) {
        assert!(line.chars().count() <= 80, "{line}");
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn a_full_home_for_scripts() {
    let ended = full().run(&["--json"]);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1);
    let mut value: Value = serde_json::from_str(&ended.stdout).unwrap();
    let searched = value["searched"].take();
    assert!(searched.as_array().unwrap().contains(&"[home]/.codex/config.toml".into()), "{searched}");
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn an_empty_home_is_told_where_was_looked_and_what_to_type() {
    let ended = Home::new().run(&[]);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    insta::assert_snapshot!(ended.stdout);
    let json: Value = serde_json::from_str(&Home::new().run(&["--json"]).stdout).unwrap();
    assert_eq!((&json["servers"], &json["broken"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[test]
fn listing_only_starts_nothing() {
    let home = Home::new();
    let witness = home.path("started");
    let touch = format!(
        r#"{{"mcpServers": {{"a": {{"command": "touch", "args": ["{}"]}}, "off": {{"command": "x", "disabled": true}}}}}}"#,
        witness.display()
    );
    let home = home
        .with(".cursor/mcp.json", &touch)
        .with(".codex/config.toml", "[mcp_servers.b]\nurl = 'https://x'");
    let ended = home.run(&["list", "--no-connect"]);
    insta::assert_snapshot!("a_list_without_connecting", ended.stdout);
    let ended = home.run(&["list", "--no-connect", "--host", "codex", "--json"]);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["servers"].as_array().unwrap().len(), 1);
    assert_eq!(json["servers"][0]["state"], "unknown");
    assert!(!witness.exists());
    let _ = home.run(&["list"]);
    assert!(witness.exists(), "the test can see when something is started");
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_never_answers_is_given_up_and_ended() {
    let home = Home::new();
    let text = hanging(&home);
    let home = home.with(".cursor/mcp.json", &text);
    let ended = home.run(&["list", "--timeout", "5"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("✗ hang: no connection within 5 s"), "{}", ended.stdout);
    assert!(ended.stdout.contains("→ toolwire doctor hang"), "{}", ended.stdout);
    assert_is_gone(&home);
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_everything_that_was_started() {
    let home = Home::new();
    let text = hanging(&home);
    let home = home.with(".cursor/mcp.json", &text);
    for (signal, exit) in [("-INT", 130), ("-TERM", 143)] {
        let child = home.toolwire(&["list", "--timeout", "50"]).spawn().unwrap();
        let pid = child.id().to_string();
        // The server says that it has begun by writing its number.
        let pid_of_server = || fs::read_to_string(home.path("pid")).unwrap_or_default();
        wait_until("the server is started", || pid_of_server().ends_with('\n'));
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let ended = finish(child);
        assert_eq!(ended.status.code(), Some(exit), "{ended:?}");
        assert!(ended.stderr.contains("error[interrupted]"), "{ended:?}");
        assert_is_gone(&home);
        fs::remove_file(home.path("pid")).unwrap();
    }
}

#[cfg(target_os = "linux")]
/// The settings of a server that writes its process number into a file and then does nothing, for long.
fn hanging(home: &Home) -> String {
    let script = format!("echo $$ > {}; exec sleep 600", home.path("pid").display());
    serde_json::json!({ "mcpServers": { "hang": { "command": "sh", "args": ["-c", script] } } }).to_string()
}

#[cfg(target_os = "linux")]
/// Waits until the process whose number is in the file has ended.
fn assert_is_gone(home: &Home) {
    let pid = home.read("pid").trim().to_owned();
    let is_there = || {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // One that is dead but not yet forgotten by its new parent is gone, too.
        !status.is_empty() && !status.contains(") Z ")
    };
    wait_until(&format!("the server {pid} has ended"), || !is_there());
}

#[test]
fn a_home_full_of_rubbish_is_survived() {
    let home = Home::new()
        .with(".cursor/mcp.json", &"[".repeat(200_000))
        .with(".claude.json", "\u{0}\u{1}\u{2}")
        .with(
            ".config/Code/User/mcp.json",
            r#"{"servers": {"": {"command": "x"}, "\u001b[2J\n": {"url": "http://"}, "a b": null}}"#,
        )
        .with(".config/zed/settings.json", r#"{"context_servers": {"z": {"command": {"path": 3}}}}"#)
        .with(".codex/config.toml", "[mcp_servers]\nx = 3\n[[mcp_servers.y]]\n")
        .with(".gemini/settings.json", "\u{feff}")
        .with("project/mcp.json", "null");
    fs::write(home.path("project/.mcp.json"), b"\xff\xfe{").unwrap();
    fs::create_dir_all(home.path(".codeium/windsurf/mcp_config.json")).unwrap();
    let ended = home.run(&["list", "--timeout", "30"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains("panicked"), "{ended:?}");
    insta::assert_snapshot!(format!("{}\n--- stderr\n{}", ended.stdout, ended.stderr));
}

#[test]
#[cfg(unix)]
fn servers_are_visited_side_by_side_but_not_all_at_once() {
    let home = Home::new();
    fs::create_dir(home.path("running")).unwrap();
    // Each says that it is there, waits until two of them are, or for long, counts who is there, and leaves.
    let script = format!(
        "cd {}; touch running/$$; n=0; present() {{ ls running | wc -l; }}
        until [ -e together ] || [ $(present) -gt 1 ] || [ $n -gt 100 ]; do sleep 0.1; n=$((n+1)); done
        touch together; sleep 0.3; present >> seen; rm running/$$; exit 1",
        home.path("").display()
    );
    let server = serde_json::json!({ "command": "sh", "args": ["-c", script] });
    let servers: serde_json::Map<_, _> =
        (0..40).map(|number| (format!("s{number}"), server.clone())).collect();
    let home = home.with(".cursor/mcp.json", &serde_json::json!({ "mcpServers": servers }).to_string());
    let ended = home.run(&["list", "--timeout", "50"]);
    assert!(ended.stdout.ends_with("40 servers: 40 fail\n"), "{ended:?}");
    let most = home.read("seen").lines().map(|line| line.trim().parse::<usize>().unwrap()).max().unwrap();
    assert!((2..=16).contains(&most), "{most} at once");
}

#[test]
fn a_server_that_wants_to_know_who_is_calling_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It answers for as long as the tests run.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    let url = format!("http://127.0.0.1:{port}/mcp");
    let servers = serde_json::json!({ "mcpServers": { "private": { "url": url } } });
    let home = Home::new().with(".cursor/mcp.json", &servers.to_string());
    let json: Value = serde_json::from_str(&home.run(&["--json"]).stdout).unwrap();
    let server = &json["servers"][0];
    assert_eq!(
        (&server["state"], &server["error"]["code"]),
        (&"auth".into(), &"auth-needed".into()),
        "{json}"
    );
    let page = home.run(&[]).stdout;
    assert!(page.contains("private  cursor  auth") && page.ends_with("1 server: 1 needs auth\n"), "{page}");
}

#[test]
#[cfg(unix)]
fn a_toolwire_that_is_configured_as_a_server_does_not_start_itself_for_ever() {
    let home = Home::new();
    let count = home.path("count").display().to_string();
    let counting = |words: &str| {
        let script = format!("echo x >> '{count}'; exec '{}' {words}", env!("CARGO_BIN_EXE_toolwire"));
        // What a configuration says about the depth does not count.
        serde_json::json!({ "command": "sh", "args": ["-c", script], "env": { "TOOLWIRE_DEPTH": "0" } })
    };
    let servers = serde_json::json!({ "mcpServers": {
        "bare": counting(""), "list": counting("list"), "doctor": counting("doctor"), "self": counting("tools self"),
    } });
    let home = home.with(".cursor/mcp.json", &servers.to_string());
    for (words, most) in [(&["list", "--timeout", "20"][..], 20), (&["doctor", "--timeout", "20"], 40)] {
        let ended = home.run(words);
        let told = home.read("count").lines().count();
        assert!((4..=most).contains(&told), "{words:?}: {told} processes, {ended:?}");
        fs::remove_file(home.path("count")).unwrap();
    }
    let ended = home.run_with(&[("TOOLWIRE_DEPTH", "3")], &["tools", "bare"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    insta::assert_snapshot!("too_deep", ended.stderr);
    for depth in ["1", "nonsense"] {
        let ended = home.run_with(&[("TOOLWIRE_DEPTH", depth)], &["list"]);
        assert!(ended.stderr.contains("error[too-deep]"), "{ended:?}");
    }
    assert!(!home.path("count").exists());
}

#[test]
#[cfg(unix)]
fn what_a_host_starts_without_a_command_connects_to_nothing() {
    let home = Home::new();
    let touch = format!(
        r#"{{"mcpServers": {{"a": {{"command": "touch", "args": ["{}"]}}}}}}"#,
        home.path("started").display()
    );
    let home = home.with(".cursor/mcp.json", &touch);
    // Both are pipes, as they are for a server.
    let mut command = home.toolwire(&[]);
    let child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let ended = finish(child);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("nothing is connected to"), "{ended:?}");
    assert!(ended.stdout.contains("1 server") && !home.path("started").exists(), "{ended:?}");
    let ended = home.run_with(&[("TOOLWIRE_DEPTH", "1")], &[]);
    assert!(ended.status.success() && !home.path("started").exists(), "{ended:?}");
}
