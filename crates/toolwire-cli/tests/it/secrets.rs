//! Secrets in every place where one can be, and every command: none of them gets out.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use serde_json::json;

use crate::{fake_web::FakeWeb, home::Home, program::Ended};

/// What is in every secret, wherever it is cut.
const MARK: &str = "mArK3d";

/// A secret of which every part gives it away.
fn secret(place: &str) -> String {
    format!("{MARK}-{place}-{MARK}-{MARK}")
}

/// A program that says everything it was given, and dies.
const CHATTERBOX: &str = "echo \"args: $0 $*\" >&2; env >&2; echo \"out: $*\"; exit 3";

/// A home with secrets everywhere. The web server repeats what it was sent.
fn home(web: &FakeWeb) -> Home {
    let at = |path: &str| web.url(path).replacen("http://", &format!("http://me:{}@", secret("userinfo")), 1);
    let arguments = |flag: &str| {
        json!([
            "-c",
            CHATTERBOX,
            "sh",
            flag,
            secret("flag"),
            format!("--token={}", secret("equals")),
            format!("DB_PASSWORD={}", secret("assignment")),
            "--header",
            format!("Authorization: Bearer {}", secret("argheader")),
            format!("postgres://me:{}@db/x?token={}", secret("dburl"), secret("dbquery")),
            "${SECRET_TOKEN}"
        ])
    };
    let servers = json!({ "mcpServers": {
        "program": { "command": "sh", "args": arguments("--api-key"), "envFile": "${userHome}/secrets.env",
            "env": { "API_TOKEN": secret("env"), "FROM": "${SECRET_TOKEN}", "KEY_FILE": "/run/x" } },
        "missing": { "command": "no-such-program", "args": arguments("--api-key"), "env": { "PASSWORD": secret("env2") } },
        "web": { "url": format!("{}?token={}", at("/mcp"), secret("query")),
            "headers": { "Authorization": format!("Bearer {}", secret("bearer")), "X-Api-Key": secret("header"), "Cookie": "${SECRET_TOKEN}" } },
        "nobody": { "url": format!("http://me:{}@127.0.0.1:9/mcp?token={}", secret("userinfo2"), secret("query2")),
            "headers": { "Authorization": format!("Basic {}", secret("basic")) } },
        "works": { "command": "[toolwire]", "args": ["demo", "--stdio"], "env": { "API_TOKEN": secret("env3") } },
        "wrong": { "command": "x", "args": ["--api-key", secret("flag2"), 3] },
    } });
    let broken = format!(
        "{{ \"mcpServers\": {{ \"x\": {{ \"env\": {{ \"API_KEY\": \"{}\" \"B\": 1 }} }} }} }}",
        secret("broken")
    );
    let project = json!({ "mcpServers": { "guest": {
        "command": "sh", "args": ["-c", CHATTERBOX, "sh", "--api-key", secret("project")],
        "env": { "API_TOKEN": secret("projectenv") } },
        "there": { "url": format!("http://me:{}@127.0.0.1:9/mcp?token={}", secret("projectuser"), secret("projectquery")) },
    } });
    Home::new()
        .with(".cursor/mcp.json", &servers.to_string())
        .with(".gemini/settings.json", &broken)
        .with("secrets.env", &format!("DB_PASSWORD={}\n", secret("envfile")))
        .with("project/.mcp.json", &project.to_string())
}

fn run(home: &Home, args: &[&str]) -> Ended {
    home.run_with(&[("SECRET_TOKEN", &secret("variable")), ("MY_TOKEN", &secret("bearerenv"))], args)
}

#[test]
fn nothing_that_is_printed_or_recorded_has_a_secret() {
    let seen = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&seen);
    let web = FakeWeb::start(move |asked| {
        let body = format!("{}\n{}", asked.head, asked.body);
        noted.lock().unwrap().push_str(&body);
        let head = "HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: ";
        Some(format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes())
    });
    let home = home(&web);
    let trace = home.path("talk.jsonl").display().to_string();
    let given = secret("typed");
    let url =
        format!("{}?token={given}", web.url("/mcp").replacen("http://", &format!("http://me:{given}@"), 1));
    let header = format!("Authorization: Bearer {given}");
    let variable = format!("API_TOKEN={given}");
    let mut lines: Vec<Vec<&str>> = vec![
        vec![],
        vec!["-v"],
        vec!["--json", "-v"],
        vec!["list", "--no-connect"],
        vec!["list", "--trust"],
        vec!["doctor", "--timeout", "20"],
        vec!["doctor", "--json", "--trust", "--timeout", "20"],
        vec!["tools", &url, "--header", &header],
        vec!["tools", &url, "--json", "-v"],
        vec!["doctor", &url],
        vec!["probe", &url],
        vec!["tools", "http://127.0.0.1:9/mcp", "--bearer-env", "MY_TOKEN"],
        vec!["tools", "--env", &variable, "-v", "--", "sh", "-c", CHATTERBOX, "sh", "--api-key", &given],
        vec!["doctor", "--env", &variable, "--", "sh", "-c", CHATTERBOX, "sh", "--api-key", &given],
        vec!["probe", "--env", &variable, "--", "no-such-program", "--password", &given],
        vec!["add", "new", "--to", "cursor", "--yes", "--env", &variable, "--", "x", "--api-key", &given],
        vec!["add", "new2", "--to", "cursor", "--yes", "--json", "--url", &url, "--header", &header],
        vec!["remove", "new", "--from", "cursor", "--dry-run"],
        vec!["trust"],
        vec!["trust", "--yes"],
        vec!["trust", "--json"],
        vec!["untrust"],
        vec!["trust", "--json", "--yes"],
        vec!["untrust", "--json"],
    ];
    for name in [
        "program",
        "missing",
        "web",
        "nobody",
        "works",
        "wrong",
        "cursor:program",
        "nothing",
        "guest",
        "there",
    ] {
        for words in [
            &["tools", name][..],
            &["tools", name, "--json", "-v"],
            &["tools", name, "-v", "--trace", &trace],
            &["trace", "show", &trace],
            &["trace", "show", "--long", &trace],
            &["trace", "show", "--json", &trace],
            &["doctor", name, "-v"],
            &["probe", name],
            &["call", name, "add", "a=1", "b=2"],
            &["read", name, "demo://greeting"],
            &["bench", name, "--calls", "3"],
            &["trace", "replay", &trace, name],
        ] {
            // The project's own are met trusted, too.
            if ["guest", "there"].contains(&name) && words[0] != "trace" {
                lines.push(words.iter().copied().chain(["--trust"]).collect());
            }
            lines.push(words.to_vec());
        }
    }
    for words in lines {
        let ended = run(&home, &words);
        // What a project has written in its file is shown as it is to somebody who has to decide about it, or anything
        // could be hidden by calling it a secret. It is one as soon as it is trusted.
        let asked = ["trust", "list", "--json"].iter().any(|word| words.contains(word))
            && !words.contains(&"--trust");
        let decided = |told: &str| {
            let shown = ["project", "projectenv", "projectuser", "projectquery"];
            let shown = shown.iter().filter(|_| asked);
            // Long lines are folded, in the middle of a word if need be.
            let told = if asked { told.split_whitespace().collect() } else { told.to_owned() };
            shown.fold(told, |told, place| told.replace(&secret(place), ""))
        };
        for told in [&decided(&ended.stdout), &decided(&ended.stderr)] {
            assert!(!told.contains(MARK), "{words:?}\n{told}");
        }
        if let Ok(recorded) = fs::read_to_string(&trace) {
            assert!(!recorded.contains(MARK), "{words:?} recorded {recorded}");
        }
    }
    // The test can see what it looks for: the secrets did reach those they are for.
    let seen = seen.lock().unwrap();
    for place in ["bearer", "header", "query", "variable", "typed"] {
        assert!(seen.contains(&secret(place)), "{place}: {seen}");
    }
    assert_eq!(run(&home, &["trust", "--yes"]).status.code(), Some(0));
    let state = walk(&home.path(".local/state"));
    assert!(!state.is_empty() && state.iter().all(|text| !text.contains(MARK)), "{state:?}");
}

#[test]
fn files_with_secrets_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new()
        .with(".cursor/mcp.json", r#"{"mcpServers": {"old": {"command": "x", "env": {"K": "1"}}}}"#);
    let trace = home.path("talk.jsonl");
    // One that is there already, and that everybody may read.
    fs::copy(format!("{}/tests/it/traces/modern.jsonl", env!("CARGO_MANIFEST_DIR")), &trace).unwrap();
    for file in [&trace, &home.path(".cursor/mcp.json")] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_toolwire");
    for words in [
        &["add", "a", "--to", "cursor", "--yes", "--", "x"][..],
        &["add", "a", "--yes", "--", "x"],
        &["add", "a", "--to", "codex", "--yes", "--env", "A=b", "--", "x"],
        &["add", "a", "--to", "project", "--yes", "--", "x"],
        &["tools", "--trace", trace.to_str().unwrap(), "--", program, "demo", "--stdio"],
    ] {
        let ended = home.run(words);
        assert_eq!(ended.status.code(), Some(0), "{words:?}: {ended:?}");
    }
    let entry =
        fs::read_dir(home.path(".local/state/toolwire/trust")).unwrap().next().unwrap().unwrap().path();
    let files = [
        ".cursor/mcp.json",
        ".cursor/mcp.json.bak",
        ".config/toolwire/servers.json",
        ".codex/config.toml",
        "project/.mcp.json",
        "talk.jsonl",
    ];
    for file in files.map(|file| home.path(file)).iter().chain([&entry]) {
        let mode = fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{} has {mode:o}", file.display());
    }
    assert!(fs::read_to_string(&trace).unwrap().starts_with("{\"toolwireTrace\":1"));
}

/// The texts of all files below a folder.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| {
            if path.is_dir() { walk(&path) } else { vec![fs::read_to_string(&path).unwrap_or_default()] }
        })
        .collect()
}
