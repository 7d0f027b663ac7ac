//! A machine full of configurations, in every shape that hosts write and people break.

use std::{collections::BTreeMap, fs, path::Path};

use tempfile::TempDir;

use super::{places::System, *};
use crate::{
    failure::Code,
    target::{Command, Remote},
};

/// A machine with files in a home directory, and a project below it.
struct Machine {
    folder: TempDir,
    variables: BTreeMap<String, String>,
    system: System,
}

impl Machine {
    fn new(system: System) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let variables = [
            ("HOME", home.display().to_string()),
            ("USERPROFILE", home.display().to_string()),
            ("APPDATA", home.join("AppData").display().to_string()),
            ("TOKEN", "s3cret".to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        fs::create_dir_all(home.join("code/app/src/.git")).unwrap();
        fs::remove_dir(home.join("code/app/src/.git")).unwrap();
        fs::create_dir(home.join("code/app/.git")).unwrap();
        Self { folder, variables, system }
    }

    fn linux() -> Self {
        Self::new(System::Linux)
    }

    /// Writes a file, by its path from the home directory.
    fn with(self, path: &str, text: &str) -> Self {
        let file = self.folder.path().join("home").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    fn places(&self) -> Places {
        let current = self.folder.path().join("home/code/app/src");
        Places::new(self.system, self.variables.clone(), current)
    }

    /// What is found by somebody who trusts every file of the project.
    fn find(&self) -> Found {
        let places = self.places();
        let mut found = find_in(&places, &Host::ALL);
        (0..found.untrusted.len()).for_each(|file| found.accept(file, &places));
        found
    }

    /// What was found, one line each, without the folder of the test.
    fn told(&self) -> String {
        let found = self.find();
        let servers = found.servers.iter().map(|server| {
            let off = if server.disabled { " (disabled)" } else { "" };
            let address = match &server.address {
                Ok(address) => whole(address),
                Err(failure) => {
                    format!(
                        "! {failure}{}",
                        failure.advice().map(|hint| format!(" → {hint}")).unwrap_or_default()
                    )
                }
            };
            format!("{}:{}{off} = {address}", server.host, server.name)
        });
        let broken = found.broken.iter().map(|failure| format!("broken: {failure}"));
        let told: Vec<_> = servers.chain(broken).collect();
        told.join("\n").replace(&self.folder.path().display().to_string(), "")
    }
}

/// An address with everything in it.
fn whole(address: &Address) -> String {
    match address {
        Address::Command(Command { env, directory, .. }) => {
            let env: String = env.iter().flat_map(|(name, value)| [name.as_str(), "=", value, " "]).collect();
            let directory =
                directory.as_ref().map(|folder| format!(" in {}", folder.display())).unwrap_or_default();
            format!("{env}{address}{directory}")
        }
        Address::Http(Remote { url, headers }) | Address::WebSocket(Remote { url, headers }) => {
            let headers = headers.iter().flat_map(|(name, value)| [" [", name, ": ", value, "]"]);
            url.to_owned() + &headers.collect::<String>()
        }
        Address::Unix(_) => address.to_string(),
    }
}

#[test]
fn every_host_is_found_on_linux() {
    let plain = r#"{"mcpServers": {"a": {"command": "x", "args": ["1"], "env": {"E": "${TOKEN}"}}}}"#;
    let machine = Machine::linux()
        .with(".config/Claude/claude_desktop_config.json", plain)
        .with(".claude.json", r#"{"numStartups": 3, "mcpServers": {"user": {"type": "stdio", "command": "u"}},
            "projects": {"/elsewhere": {"mcpServers": {"no": {"command": "no"}}}}}"#)
        .with(".cursor/mcp.json", r#"{"mcpServers": {"remote": {"url": "https://c/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}}}"#)
        .with(".config/Code/User/mcp.json", r#"{"inputs": [], "servers": {"v": {"type": "http", "url": "https://v"}}}"#)
        .with(".config/Code/User/settings.json", r#"{"mcp": {"servers": {"old": {"command": "old", "env": {"N": 1, "Z": null}}}}}"#)
        .with(".config/Code - Insiders/User/mcp.json", r#"{"servers": {"ins": {"command": "${workspaceFolder}/x", "cwd": "sub"}}}"#)
        .with(".codeium/windsurf/mcp_config.json", r#"{"mcpServers": {"w": {"serverUrl": "https://w/mcp", "disabled": true}}}"#)
        .with(".config/zed/settings.json", "// Zed\n{\"theme\": \"x\", \"context_servers\": {\
            \"z\": {\"command\": {\"path\": \"z\", \"args\": [\"1\"], \"env\": null}, \"settings\": {}},\n\
            \"ext\": {\"source\": \"extension\", \"settings\": {}}, /* c */ \"n\": {\"command\": \"n\", \"enabled\": false,},},}")
        .with(".codex/config.toml", "model = 'm'\n[mcp_servers.c]\ncommand = 'c'\nargs = ['a']\n[mcp_servers.c.env]\nA = 'b'\n\
            [mcp_servers.h]\nurl = 'https://h/mcp'\nbearer_token_env_var = 'TOKEN'\nhttp_headers = { X = 'y' }\nenv_http_headers = { Z = 'TOKEN' }\n")
        .with(".gemini/settings.json", r#"{"mcpServers": {"g": {"httpUrl": "https://g/mcp"}, "e": {"command": "e", "env": {"K": "$TOKEN"}, "cwd": "/abs"}}}"#)
        .with(".config/toolwire/servers.json", r#"{"mcpServers": {"own": {"command": "own"}}}"#)
        .with("code/app/.mcp.json", r#"{"mcpServers": {"p": {"command": "p", "args": ["${MISSING:-d}"]}}}"#)
        .with("code/app/src/mcp.json", r#"{"servers": {"near": {"command": "near"}}}"#)
        .with("code/app/.vscode/mcp.json", r#"{"servers": {"ask": {"command": "x", "env": {"K": "${input:key}"}}}}"#)
        .with("code/.mcp.json", r#"{"mcpServers": {"outside": {"command": "of the repository"}}}"#);
    insta::assert_snapshot!(machine.told());
}

#[test]
fn other_systems_have_other_places() {
    let text = r#"{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "x"}}, "context_servers": {"a": {"command": "x"}}}"#;
    let hosts =
        |machine: &Machine| machine.find().servers.iter().map(|server| server.host).collect::<Vec<_>>();
    let library = "Library/Application Support";
    let mac = Machine::new(System::MacOs)
        .with(&format!("{library}/Claude/claude_desktop_config.json"), text)
        .with(&format!("{library}/Code/User/mcp.json"), text)
        .with(".config/zed/settings.json", text)
        .with(".config/toolwire/servers.json", text);
    assert_eq!(hosts(&mac), [Host::Toolwire, Host::ClaudeDesktop, Host::VsCode, Host::Zed]);
    let windows = Machine::new(System::Windows)
        .with("AppData/Claude/claude_desktop_config.json", text)
        .with("AppData/Code/User/mcp.json", text)
        .with("AppData/Zed/settings.json", text)
        .with("AppData/toolwire/servers.json", text)
        .with(".cursor/mcp.json", text);
    assert_eq!(hosts(&windows), [Host::Toolwire, Host::ClaudeDesktop, Host::Cursor, Host::VsCode, Host::Zed]);
}

#[test]
fn variables_move_the_folders() {
    let mut machine = Machine::linux()
        .with("xdg/toolwire/servers.json", r#"{"mcpServers": {"x": {"command": "x"}}}"#)
        .with("cc/.claude.json", r#"{"mcpServers": {"c": {"command": "c"}}}"#)
        .with("cx/config.toml", "[mcp_servers.d]\ncommand = 'd'");
    let home = machine.folder.path().join("home");
    for (name, folder) in [("XDG_CONFIG_HOME", "xdg"), ("CLAUDE_CONFIG_DIR", "cc"), ("CODEX_HOME", "cx")] {
        machine.variables.insert(name.to_owned(), home.join(folder).display().to_string());
    }
    assert_eq!(machine.told(), "toolwire:x = x\nclaude-code:c = c\ncodex:d = d");
    machine.variables.insert("XDG_CONFIG_HOME".to_owned(), "relative".to_owned());
    assert!(!machine.told().contains("toolwire:x"));
    machine.variables.clear();
    assert_eq!(machine.told(), "", "no home at all");
}

#[test]
fn claude_code_has_servers_for_this_project() {
    let machine = Machine::linux();
    let project = machine.folder.path().join("home/code/app").display().to_string();
    let text = serde_json::json!({
        "mcpServers": { "db": { "command": "user" } },
        "projects": { project: { "mcpServers": { "db": { "command": "project" } } }, "/other": 3 },
    });
    let machine = machine.with(".claude.json", &text.to_string());
    assert_eq!(machine.told(), "claude-code:db = project\nclaude-code:db = user");
    let found = machine.find();
    assert_eq!(found.named("db").unwrap().address.as_ref().unwrap().to_string(), "project");
}

#[test]
fn wrong_types_are_told_by_their_path_and_never_shown() {
    let machine = Machine::linux().with(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "a1": 5, "a2": [], "a3": null, "a4": {}, "a5": {"command": ""}, "a6": {"command": 7},
            "b1": {"command": "x", "args": "secret"}, "b2": {"command": "x", "args": ["a", 2]},
            "c1": {"command": "x", "env": 1}, "c2": {"command": "x", "env": {"PORT": 8080}}, "c3": {"command": "x", "env": ["A=secret"]},
            "d1": {"url": "localhost:3000"}, "d2": {"url": 3}, "d3": {"url": "https://x", "headers": "secret"},
            "e1": {"command": "x", "url": "https://x"}, "e2": {"type": "carrier-pigeon", "command": "x"},
            "e3": {"type": "http", "command": "x"}, "e4": {"type": "stdio", "url": "https://x"},
            "f1": {"command": "x", "disabled": "yes"}, "f2": {"command": "x", "cwd": 3},
            "g1": {"command": "x", "env": {"K": "${MISSING}"}}, "g2": {"command": "x", "envFile": "no.env"},
            "ok": {"command": "fine"}
        }}"#,
    );
    let told = machine.told();
    assert!(!told.contains("secret"), "{told}");
    insta::assert_snapshot!(told);
}

#[test]
fn a_broken_file_does_not_hide_the_others() {
    let machine = Machine::linux()
        .with(
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" \n    \"b\": {}\n  }\n}",
        )
        .with(".codeium/windsurf/mcp_config.json", "")
        .with(".gemini/settings.json", "[1, 2]")
        .with(".config/zed/settings.json", r#"{"context_servers": [1]}"#)
        .with(".codex/config.toml", "[mcp_servers.a]\ncommand = \n")
        .with(".config/Code/User/settings.json", r#"{"mcp": true}"#)
        .with(".config/toolwire/servers.json", "\u{feff}{\"mcpServers\": {\"bom\": {\"command\": \"x\"}}}");
    let home = machine.folder.path().join("home");
    fs::create_dir_all(home.join(".claude.json")).unwrap();
    insta::assert_snapshot!(machine.told());
    let data = machine
        .find()
        .broken
        .iter()
        .map(|failure| failure.to_json()["error"]["data"].clone())
        .collect::<Vec<_>>();
    assert!(data.iter().any(|data| data["line"] == 4 && data["column"] == 5), "{data:?}");
}

#[test]
fn a_name_means_the_nearest_and_a_host_means_itself() {
    let server = |command: &str| format!(r#"{{"mcpServers": {{"db": {{"command": "{command}"}}}}}}"#);
    let machine = Machine::linux()
        .with(".cursor/mcp.json", &server("cursor"))
        .with(
            ".gemini/settings.json",
            r#"{"mcpServers": {"db": {"command": "gemini"}, "a:b": {"command": "colon"}}}"#,
        )
        .with("code/app/.mcp.json", r#"{"mcpServers": {"db": {"command": "project", "disabled": true}}}"#);
    let found = machine.find();
    let command = |name: &str| found.named(name).map(|server| server.address.as_ref().unwrap().to_string());
    assert_eq!(command("db").as_deref(), Some("cursor"), "the project's is disabled");
    assert_eq!(command("gemini:db").as_deref(), Some("gemini"));
    assert_eq!(command("project:db").as_deref(), Some("project"), "a disabled one can be meant");
    assert_eq!(command("a:b").as_deref(), Some("colon"));
    assert_eq!(command("gemini:a:b").as_deref(), Some("colon"));
    assert_eq!(command("zed:db"), None);
}

#[test]
fn a_wrong_name_is_answered_with_close_ones() {
    let machine = Machine::linux().with(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"github": {"command": "x"}, "filesystem": {"command": "x"}}}"#,
    );
    let hint = |name: &str| {
        let failure = names::choose(&machine.find(), name).unwrap_err();
        failure.advice().unwrap().to_owned()
    };
    assert_eq!(hint("gihtub"), "did you mean github?");
    assert_eq!(hint("cursor:file"), "did you mean filesystem?");
    assert!(hint("zzz").starts_with("toolwire lists those"));
    assert_eq!(hint("localhost:3000"), "did you mean http://localhost:3000/mcp?");
    let machine = machine.with(".gemini/settings.json", "{");
    let failure = names::choose(&machine.find(), "zzz").unwrap_err();
    assert!(failure.advice().unwrap().contains(".gemini/settings.json:1:"), "{failure:?}");
}

#[test]
fn a_file_is_read_once_even_where_two_places_meet() {
    let machine = Machine::linux().with(".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    let home = machine.folder.path().join("home");
    fs::create_dir_all(home.join(".git")).unwrap();
    let found = find_in(&Places::new(System::Linux, machine.variables.clone(), home), &Host::ALL);
    assert_eq!(found.servers.len(), 1);
}

#[test]
fn variables_can_come_from_a_file() {
    let machine = Machine::linux()
        .with("code/app/.vscode/mcp.json", r#"{"servers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"B": "2"}}}}"#)
        .with("code/app/.env", "# note\nexport A=\"one two\"\nB=1\n\nnothing\nC='x=y'\n");
    assert_eq!(machine.told(), "vscode:a = A=one two B=1 C=x=y B=2 x");
    let file = machine.find().servers.remove(0).file;
    assert!(file.ends_with(Path::new(".vscode/mcp.json")));
}

#[test]
fn nothing_of_a_project_is_replaced_or_read_before_it_is_trusted() {
    let text = r#"{"servers": {
        "a": {"command": "x", "args": ["${TOKEN}", "${MISSING}"], "envFile": "${workspaceFolder}/.env", "env": {"B": "${OTHER}"}},
        "b": {"url": "${BASE}/mcp?t=${env:TOKEN}", "headers": {"Authorization": "Bearer ${input:key}"}},
        "c": {"command": 3}
    }}"#;
    // A folder in the place of the file would be an error, if it were opened.
    let machine = Machine::linux().with("code/app/.vscode/mcp.json", text);
    fs::create_dir(machine.folder.path().join("home/code/app/.env")).unwrap();
    let places = machine.places();
    let mut found = find_in(&places, &Host::ALL);
    let [a, b, c] = &found.servers[..] else { panic!("{found:?}") };
    for server in [a, b] {
        assert_eq!(server.address.as_ref().unwrap_err().code(), Code::NotTrusted);
    }
    assert_eq!(c.address.as_ref().unwrap_err().code(), Code::ConfigBroken);
    let [a, b] = [a, b].map(|server| server.pending.as_ref().unwrap());
    assert!(
        whole(&a.address).contains("${TOKEN}") && whole(&b.address).contains("${BASE}/mcp?t=${env:TOKEN}")
    );
    assert!(!format!("{found:?}").contains("s3cret"));
    let names = |wants: &BTreeSet<String>| wants.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        (names(&a.wants.variables), names(&a.wants.files)),
        ("MISSING OTHER TOKEN".into(), "${workspaceFolder}/.env".into())
    );
    assert_eq!(names(&b.wants.variables), "BASE TOKEN");
    found.accept(0, &places);
    assert!(found.servers.iter().all(|server| server.pending.is_none()));
    assert!(found.servers[0].address.as_ref().unwrap_err().message().contains(".env is not a file"));
}

#[test]
fn what_was_read_to_be_trusted_is_what_is_used() {
    let machine =
        Machine::linux().with("code/app/.mcp.json", r#"{"mcpServers": {"a": {"command": "read"}}}"#);
    let places = machine.places();
    let mut found = find_in(&places, &Host::ALL);
    Store::of(&places).trust(&found.untrusted[0].content).unwrap();
    let machine = machine.with("code/app/.mcp.json", r#"{"mcpServers": {"a": {"command": "evil"}}}"#);
    found.accept(0, &places);
    assert_eq!(found.servers[0].address.as_ref().unwrap().to_string(), "read");
    let found = find_in(&machine.places(), &Host::ALL);
    assert_eq!(found.untrusted[0].verdict, Verdict::Changed);
    let machine = machine.with("code/app/.mcp.json", r#"{"mcpServers": {"a": {"command": "read"}}}"#);
    let found = find_in(&machine.places(), &Host::ALL);
    assert!(found.untrusted.is_empty(), "it says again what was trusted");
    assert_eq!(found.trusted.len(), 1);
}

#[test]
fn a_link_into_the_home_is_the_project_s_word() {
    // What the user has for one host, offered by the project as the settings of another.
    let machine =
        Machine::linux().with(".gemini/settings.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    let home = machine.folder.path().join("home");
    fs::create_dir_all(home.join("code/app/.cursor")).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(
            home.join(".gemini/settings.json"),
            home.join("code/app/.cursor/mcp.json"),
        )
        .unwrap();
        let found = find_in(&machine.places(), &Host::ALL);
        let seen: Vec<_> =
            found.servers.iter().map(|server| (server.host, server.pending.is_some())).collect();
        assert_eq!(seen, [(Host::Gemini, false), (Host::Cursor, true)]);
    }
}

#[test]
fn a_project_takes_no_name_away_from_the_user() {
    let server = |command: &str| format!(r#"{{"mcpServers": {{"db": {{"command": "{command}"}}}}}}"#);
    let machine = Machine::linux()
        .with(".gemini/settings.json", &server("mine"))
        .with("code/app/.mcp.json", &server("project"))
        .with("code/app/.gemini/settings.json", &server("the other"));
    let found = machine.find();
    let command = |name: &str| found.named(name).map(|server| server.address.as_ref().unwrap().to_string());
    assert_eq!(command("db").as_deref(), Some("mine"));
    assert_eq!(command("gemini:db").as_deref(), Some("mine"));
    assert_eq!(command("project:db").as_deref(), Some("project"));
    let file = machine.folder.path().join("home/code/app/.gemini/settings.json");
    assert_eq!(command(&format!("{}:db", file.display())).as_deref(), Some("'the other'"));
}

#[test]
fn what_a_host_has_switched_off_stays_off() {
    let machine = Machine::linux();
    let project = machine.folder.path().join("home/code/app").display().to_string();
    let own = serde_json::json!({
        "mcpServers": { "u1": { "command": "x" }, "u2": { "command": "x" } },
        "projects": { project: { "disabledMcpjsonServers": ["m1"], "disabledMcpServers": ["u1"] } },
    });
    let machine = machine
        .with(".claude.json", &own.to_string())
        .with(".claude/settings.json", r#"{"disabledMcpjsonServers": ["m2"], "deniedMcpServers": [{"serverName": "u3"}]}"#)
        .with("code/app/.claude/settings.local.json", r#"{"disabledMcpjsonServers": ["m3"], "enableAllProjectMcpServers": true}"#)
        .with("code/app/.mcp.json", r#"{"mcpServers": {"m1": {"command": "x"}, "m2": {"command": "x"}, "m3": {"command": "x"},
            "m4": {"command": "x"}, "u3": {"command": "x"}}}"#)
        .with(".gemini/settings.json", r#"{"mcp": {"excluded": ["G1"], "allowed": ["g1", "g2", "g3"]},
            "mcpServers": {"g1": {"command": "x"}, "g2": {"command": "x"}, "g3": {"command": "x"}, "g4": {"command": "x"}}}"#)
        .with(".gemini/mcp-server-enablement.json", r#"{"g2": {"enabled": false}}"#)
        .with(".cursor/mcp.json", r#"{"mcpServers": {"m1": {"command": "x"}}}"#);
    let found = machine.find();
    let on: Vec<_> =
        found.servers.iter().filter(|server| !server.disabled).map(|server| server.name.as_str()).collect();
    assert_eq!(on, ["u2", "m1", "g3", "m4"], "and Cursor's m1 is another");
    let failure = names::choose(&found, "g1").unwrap_err();
    assert!(failure.advice().unwrap().starts_with("gemini:g1 uses it"), "{failure:?}");
    assert!(names::choose(&found, "gemini:g1").is_ok());
    let machine = machine.with(".claude/settings.json", "{");
    assert!(machine.find().broken.iter().any(|failure| failure.message().contains(".claude/settings.json")));
}
