//! Servers put into files and taken out again, in every layout that people and programs produce.

use std::{collections::BTreeMap, fs, path::Path};

use clap::Parser;
use serde_json::{Value, json};

use super::{entry::Entry, *};
use crate::args::{Cli, Command};

/// What the options of `toolwire add` are for these words.
fn options(words: &[&str]) -> AddOptions {
    let cli = Cli::try_parse_from(["toolwire", "add"].iter().chain(words)).unwrap();
    match cli.command {
        Some(Command::Add(options)) => options,
        other => panic!("{other:?}"),
    }
}

fn entry(words: &[&str]) -> Entry {
    Entry::new(&options(words)).unwrap()
}

fn added(text: &str) -> String {
    let entry = entry(&["new", "--env", "K=v", "--", "npx", "-y", "it's \"x\""]);
    json::with_server(Path::new("x.json"), text, "mcpServers", "new", &entry, false)
        .unwrap_or_else(|failure| panic!("{failure}: {text}"))
}

fn removed(text: &str, name: &str) -> String {
    json::without_server(Path::new("x.json"), text, &["mcpServers".to_owned()], name)
        .unwrap_or_else(|failure| panic!("{failure}: {text}"))
}

/// Files with at least one server, in many layouts.
const LAYOUTS: [&str; 12] = [
    "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
    "{\n\t\"mcpServers\": {\n\t\t\"a\": { \"command\": \"x\" },\n\t\t\"b\": {}\n\t},\n\t\"theme\": \"dark\"\n}",
    "{\r\n    \"mcpServers\": {\r\n        \"a\": {}\r\n    }\r\n}\r\n",
    "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
    "{\"mcpServers\": {\"a\": {}}, \"x\": [1, 2]}\n",
    "// top\n{\n  // mine\n  \"mcpServers\": {\n    \"a\": {}, // first\n    \"b\": {} // last\n    // end\n  } // done\n}\n",
    "{\n  \"mcpServers\": {\n    \"a\": {},\n    \"b\": {}, // trailing\n  },\n}\n",
    "{\n  \"mcpServers\": {\n    \"a\": {} /* one\n    two */\n  }\n}\n",
    "{\n  \"mcpServers\": { \"a\": {},\n    \"b\": {} }\n}\n",
    "{\n  \"mcpServers\": {\n    \"a\": {}\n    , \"b\": {}\n  }\n}\n",
    "{\n  \"x\": \"}{//\",\n  \"mcpServers\": {\n    \"a,}\": { \"args\": [\"]\", \"\\\"\"] }\n  }\n}\n",
    "{ \"mcpServers\": {\n\"a\": {}\n}\n}",
];

#[test]
fn a_server_can_be_added_to_every_layout_and_taken_out_without_a_trace() {
    for text in LAYOUTS {
        let with = added(text);
        // Values are compared where they are written, so this is about comments.
        for word in text.split_whitespace().map(|word| word.trim_end_matches(',')) {
            assert!(text.lines().count() < 2 || with.contains(word), "{word:?} is lost in {with}");
        }
        assert_eq!(with.contains("\r\n"), text.contains("\r\n"), "{with:?}");
        assert!(!with.contains("\r\n") || !with.replace("\r\n", "").contains('\n'), "{with:?}");
        let without = removed(&with, "new");
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(words(&without), words(text), "after {with}");
        // Only what did not have a line of its own for each server gets other line breaks.
        if ["a\": {}, // first", "a\": {\n", "a\": {}\r\n", "\t\"b\"", "a,}"]
            .iter()
            .any(|part| text.contains(part))
        {
            assert_eq!(without, text, "after {with}");
        }
    }
}

#[test]
fn every_server_can_be_removed_from_every_layout() {
    // That nothing else changes is checked where it is removed.
    for text in LAYOUTS {
        for name in ["a", "b", "a,}"].iter().filter(|name| text.contains(&format!("\"{name}\":"))) {
            removed(text, name);
        }
    }
    assert_eq!(
        removed(LAYOUTS[5], "b"),
        "// top\n{\n  // mine\n  \"mcpServers\": {\n    \"a\": {} // first\n    // end\n  } // done\n}\n"
    );
}

#[test]
fn files_without_servers_get_the_first_one() {
    let texts = [
        "",
        " \n",
        "{}",
        "{\n}\n",
        "{\"mcpServers\": {}}",
        "{\n  \"mcpServers\": {}\n}\n",
        "{\n    \"theme\": \"x\" // mine\n}\n",
        "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
        "// only a comment\n{ /* and one more */ }\n",
        "{\"a\": 1}",
    ];
    let told: Vec<_> = texts.iter().map(|text| format!("{text}\n=>\n{}", added(text))).collect();
    insta::assert_snapshot!(told.join("\n----\n"));
}

#[test]
fn a_name_is_replaced_only_by_force() {
    let entry = entry(&["a", "--", "new"]);
    let put =
        |text: &str, force| json::with_server(Path::new("x.json"), text, "mcpServers", "a", &entry, force);
    let failure = put(LAYOUTS[0], false).unwrap_err();
    assert_eq!(failure.code(), Code::Usage);
    assert!(failure.advice().unwrap().contains("--force"));
    for text in LAYOUTS.iter().filter(|text| text.contains("\"a\":")) {
        let new = put(text, true).unwrap();
        assert!(new.contains("\"new\""), "{new}");
    }
}

#[test]
fn what_is_broken_is_not_edited() {
    let entry = entry(&["a", "--", "new"]);
    for text in ["{", "[]", "{\"mcpServers\": 3}", "{} {}", "{ /* ", "null"] {
        let failure =
            json::with_server(Path::new("x.json"), text, "mcpServers", "a", &entry, true).unwrap_err();
        assert_eq!(failure.code(), Code::ConfigBroken, "{text}");
    }
    let failure =
        toml::with_server(Path::new("x"), "mcp_servers = 3", "mcp_servers", "a", &entry, true).unwrap_err();
    assert!(failure.message().contains("not a table"), "{failure}");
    assert!(toml::with_server(Path::new("x"), "= 3", "mcp_servers", "a", &entry, true).is_err());
}

#[test]
fn toml_keeps_its_comments() {
    let text =
        "# mine\nmodel = \"x\" # the best\n\n# first\n[mcp_servers.a]\ncommand = \"x\"\n\n[other]\nx = 1\n";
    let entry = entry(&["b c", "--to", "codex", "--env", "K=v", "--", "npx", "-y", "s"]);
    let put =
        |text: &str, name, force| toml::with_server(Path::new("x"), text, "mcp_servers", name, &entry, force);
    let new = put(text, "b c", false).unwrap();
    insta::assert_snapshot!(new);
    let keys = ["mcp_servers".to_owned()];
    assert_eq!(toml::without_server(Path::new("x"), &new, &keys, "b c").unwrap(), text);
    assert!(put(text, "a", false).is_err());
    let replaced = put(text, "a", true).unwrap();
    assert!(replaced.contains("# first\n[mcp_servers.a]\ncommand = \"npx\""), "{replaced}");
    assert_eq!(
        put("", "a", false).unwrap(),
        "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"s\"]\nenv = { K = \"v\" }\n"
    );
    assert!(put("mcp_servers = { x = { command = 'y' } }\n", "a", false).unwrap().contains("a = {"));
}

#[test]
fn every_host_is_told_in_its_own_words_and_understands_them() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().display().to_string();
    let variables: BTreeMap<_, _> = [("HOME", &home), ("USERPROFILE", &home)]
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .into();
    let places = Places::new(crate::config::System::Linux, variables, folder.path().join("p"));
    fs::create_dir_all(folder.path().join("p")).unwrap();
    let mut told = Vec::new();
    for host in Host::ALL {
        for words in [&["--", "npx", "-y", "s"][..], &["https://x/mcp", "--header", "A: b"]] {
            let mut line = vec!["s", "--to", host.name(), "--force"];
            line.extend(words);
            match adding(&options(&line), &places) {
                Ok(change) => {
                    write::replace(&change).unwrap();
                    let mut found = crate::config::find_in(&places, &[host]);
                    found.accept(0, &places);
                    assert_eq!(found.broken.len(), 0, "{found:?}");
                    let [server] = &found.servers[..] else { panic!("{found:?}") };
                    let address = server.address.as_ref().unwrap().to_string();
                    assert_eq!(
                        address,
                        if words.len() == 4 && words[0] == "--" { "npx -y s" } else { "https://x/mcp" }
                    );
                    let file = change.file.strip_prefix(folder.path()).unwrap().display();
                    told.push(format!("== {host} {file}\n{}", change.new));
                }
                Err(failure) => told.push(format!("== {host} ! {failure}\n")),
            }
        }
    }
    insta::assert_snapshot!(told.concat());
}

#[test]
fn the_old_file_is_kept_links_stay_and_nobody_else_can_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("real.json");
    fs::write(&file, "\u{feff}{}").unwrap();
    let link = folder.path().join("link.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real.json", &link).unwrap();
    }
    #[cfg(not(unix))]
    let link = file.clone();
    let change = |new: &str| Change {
        file: link.clone(),
        old: readable(&link).unwrap(),
        new: new.to_owned(),
        scope: Scope::User,
    };
    let first = write::replace(&change("{\"a\": 1}")).unwrap().unwrap();
    let second = write::replace(&change("{\"b\": 1}")).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "\u{feff}{\"b\": 1}");
    assert_eq!(fs::read_to_string(&first).unwrap(), "\u{feff}{}");
    assert_eq!(fs::read_to_string(&second).unwrap(), "\u{feff}{\"a\": 1}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert!(link.is_symlink());
        for file in [&file, &first] {
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), if cfg!(unix) { 4 } else { 3 });
}

#[test]
fn what_changed_in_the_meantime_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    let change = Change { file: file.clone(), old: None, new: "{}".to_owned(), scope: Scope::User };
    fs::write(&file, "{\"theirs\": 1}").unwrap();
    let failure = write::replace(&change).unwrap_err();
    assert!(failure.message().contains("somebody else"), "{failure}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"theirs\": 1}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
#[cfg(unix)]
fn a_full_disk_or_a_protected_file_leaves_the_old_one() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    fs::write(&file, "{}").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let change = Change {
        file: file.clone(),
        old: readable(&file).unwrap(),
        new: "{\"a\": 1}".to_owned(),
        scope: Scope::User,
    };
    let failure = write::replace(&change).unwrap_err();
    assert!(failure.message().contains("stays as it was: it is write-protected"), "{failure}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no half-written file is left");
    // Nothing can be created below this, whoever asks.
    let file = Path::new("/dev/null/x.json");
    let change = Change { file: file.to_owned(), old: None, new: "{}".to_owned(), scope: Scope::User };
    let failure = write::replace(&change).unwrap_err();
    assert!(failure.message().starts_with("/dev/null/x.json stays as it was: /dev/null: "), "{failure}");
}

#[test]
fn a_server_is_removed_from_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let project = home.join("p");
    fs::create_dir_all(&project).unwrap();
    let places = Places::new(crate::config::System::Linux, variables, project.clone());
    let project_key = project.display().to_string();
    let text =
        json!({ "mcpServers": { "u": {} }, "projects": { project_key: { "mcpServers": { "p": {} } } } });
    fs::write(home.join(".claude.json"), serde_json::to_string_pretty(&text).unwrap()).unwrap();
    let remove = |name: &str| {
        let consent = Consent { yes: true, dry_run: false };
        removing(&RemoveOptions { name: name.to_owned(), from: Host::ClaudeCode, consent }, &places)
    };
    let value: Value = serde_json::from_str(&remove("p").unwrap().new).unwrap();
    assert_eq!(value["projects"][&project.display().to_string()]["mcpServers"], json!({}));
    assert_eq!(value["mcpServers"], json!({ "u": {} }));
    let failure = remove("zzz").unwrap_err();
    assert_eq!(failure.code(), Code::UnknownServer);
    fs::write(home.join(".claude.json"), "{").unwrap();
    assert_eq!(remove("u").unwrap_err().code(), Code::ConfigBroken);
}

#[test]
fn no_half_of_a_file_makes_the_editor_stumble() {
    let entry = entry(&["new", "--", "x"]);
    for text in LAYOUTS {
        for (end, _) in text.char_indices() {
            let half = text.get(..end).unwrap_or_default();
            let path = Path::new("x.json");
            let new = json::with_server(path, half, "mcpServers", "new", &entry, false);
            // Only what is nothing, or nothing but a comment, can be half of a file and be whole.
            assert!(new.is_err() || half.trim().is_empty() || half.trim().ends_with(['}', '/']), "{half}");
            assert!(json::without_server(path, half, &["mcpServers".to_owned()], "none").is_err());
        }
    }
}

#[test]
fn a_file_in_utf_16_is_read_but_not_edited() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    fs::write(&file, [0xff, 0xfe, b'{', 0, b'}', 0]).unwrap();
    let failure = readable(&file).unwrap_err();
    assert!(failure.message().contains("save it as UTF-8"), "{failure}");
}
