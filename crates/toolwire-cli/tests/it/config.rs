//! `toolwire add` and `toolwire remove`.

use std::process::Stdio;

use serde_json::Value;

use crate::{home::Home, program::run};

const CURSOR: &str =
    "{\n  // mine\n  \"mcpServers\": {\n    \"old\": { \"command\": \"x\" } // keep\n  }\n}\n";

#[test]
fn a_server_is_added_and_removed_with_the_change_shown() {
    let home = Home::new().with(".cursor/mcp.json", CURSOR);
    let added = home.run(&["add", "new", "--to", "cursor", "--yes", "--env", "A=b", "--", "npx", "-y", "s"]);
    assert_eq!(added.status.code(), Some(0), "{added:?}");
    insta::assert_snapshot!(format!("{}--- stderr\n{}", added.stdout, added.stderr));
    assert_eq!(home.read(".cursor/mcp.json.bak"), CURSOR);
    let removed = home.run(&["remove", "new", "--from", "cursor", "--yes"]);
    assert_eq!(removed.status.code(), Some(0), "{removed:?}");
    insta::assert_snapshot!(format!("{}--- stderr\n{}", removed.stdout, removed.stderr));
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
}

#[test]
fn what_was_added_works_at_once() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_toolwire");
    let added = home.run(&["add", "demo", "--yes", "--json", "--", program, "demo", "--stdio"]);
    assert_eq!((added.status.code(), added.stderr.as_str()), (Some(0), ""), "{added:?}");
    let json: Value = serde_json::from_str(&added.stdout).unwrap();
    assert_eq!(
        (&json["file"], &json["written"]),
        (&"[home]/.config/toolwire/servers.json".into(), &true.into())
    );
    assert_eq!(json["backup"], Value::Null, "there was nothing to keep");
    let listed: Value = serde_json::from_str(&home.run(&["--json"]).stdout).unwrap();
    assert_eq!(
        (&listed["servers"][0]["name"], &listed["servers"][0]["state"]),
        (&"demo".into(), &"ok".into())
    );
    assert_eq!(listed["servers"][0]["origins"][0]["host"], "toolwire");
}

#[test]
fn nothing_changes_without_consent() {
    let home = Home::new().with(".cursor/mcp.json", CURSOR);
    let words = ["add", "new", "--to", "cursor", "--url", "https://x/mcp"];
    let refused = home.run(&words);
    assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    insta::assert_snapshot!(refused.stderr);
    let dry = home.run(&[&words[..], &["--dry-run"]].concat());
    assert_eq!(dry.status.code(), Some(0), "{dry:?}");
    assert!(dry.stdout.contains("+     \"new\": {") && dry.stderr.contains("nothing was changed"), "{dry:?}");
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert!(!home.path(".cursor/mcp.json.bak").exists());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = Home::new().with(".cursor/mcp.json", CURSOR).with(".codex/config.toml", "= 1\n");
    for (args, code, text) in [
        (&["add", "old", "--to", "cursor", "--yes", "--", "x"][..], 2, "--force"),
        (&["add", "new", "--to", "cursor", "--yes"], 2, "toolwire add new URL"),
        (&["add", "new", "npx", "--to", "cursor", "--yes"], 2, "toolwire add new -- COMMAND"),
        (&["add", "new", "https://x", "--url", "https://y", "--yes"], 2, "cannot be used with"),
        (&["add", "new", "--to", "cursor", "--yes", "--url", "ftp://x"], 2, "http://"),
        (&["add", "new", "--to", "claude-desktop", "--yes", "--url", "https://x"], 2, "mcp-remote"),
        (&["add", "new", "--to", "nowhere", "--yes", "--", "x"], 2, "claude-desktop"),
        (&["add", "", "--yes", "--", "x"], 2, "name"),
        (&["add", "new", "--to", "codex", "--yes", "--", "x"], 1, "config.toml:1:1"),
        (&["remove", "new", "--from", "cursor", "--yes"], 2, "no server `new`"),
    ] {
        let ended = home.run(args);
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args:?}: {ended:?}");
    }
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert_eq!(home.read(".codex/config.toml"), "= 1\n");
}

#[test]
#[cfg(unix)]
fn a_disk_without_room_leaves_the_old_file_and_nothing_else() {
    let home = Home::new().with(".cursor/mcp.json", CURSOR);
    // No file may grow, which is how a full disk feels, and nobody is killed for trying.
    let script = r#"trap '' XFSZ; ulimit -f 0; exec "$0" "$@""#;
    let words = ["add", "new", "--to", "cursor", "--yes", "--", "x"];
    let mut command = home.toolwire(&[]);
    let program = command.get_program().to_owned();
    let mut full = std::process::Command::new("sh");
    full.args(["-c", script]).arg(program).args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    full.current_dir(home.path("project")).env("HOME", home.path(""));
    let ended = run(full);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("stays as it was") && ended.stderr.contains("File too large"), "{ended:?}");
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert_eq!(std::fs::read_dir(home.path(".cursor")).unwrap().count(), 1, "nothing is left behind");
    // With room again, it works.
    assert!(command.args(words).status().unwrap().success());
}
