//! `toolwire new`: a project that works from the first minute.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::program::{Ended, run, toolwire};

/// The checkout that this test is part of.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn new(folder: &Path, args: &[&str]) -> Ended {
    let mut command = toolwire(&[&["new"], args].concat());
    command.current_dir(folder).env("HOME", folder);
    run(command)
}

/// Returns whether the program is inside of a checkout, which need not be the one of this test.
fn is_in_checkout(program: &Path) -> bool {
    let has_package = |folder: &Path| {
        ["Cargo.toml", "crates/toolwire/Cargo.toml"].iter().any(|manifest| {
            let manifest = fs::read_to_string(folder.join(manifest)).unwrap_or_default();
            manifest.lines().any(|line| line.trim() == "name = \"toolwire\"")
        })
    };
    program.ancestors().skip(1).any(has_package)
}

/// It is built in the target folder of this test, with the versions that are locked there, so that it needs neither
/// the network nor much time.
#[test]
fn the_project_compiles_and_passes_its_tests() {
    let place = tempfile::tempdir().unwrap();
    let made = new(place.path(), &["weather-station", "--toolwire-path", CHECKOUT]);
    assert_eq!((made.status.code(), made.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(made.stdout);

    let project = place.path().join("weather-station");
    fs::copy(format!("{CHECKOUT}/Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let tested = Command::new(&cargo)
        .args(["test", "--offline", "--quiet"])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", target)
        // As the workspace has it, so that what is built for it can be used.
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&tested.stdout) + String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{text}");
    assert!(text.contains("4 passed") && !text.contains("warning"), "{text}");
    let neat = Command::new(&cargo).args(["fmt", "--check"]).current_dir(&project).output().unwrap();
    assert!(neat.status.success(), "{}", String::from_utf8_lossy(&neat.stdout));
}

#[test]
fn without_a_path_the_checkout_of_the_program_or_else_the_published_version_is_used() {
    let place = tempfile::tempdir().unwrap();
    let made = new(place.path(), &["weather", "--json"]);
    assert_eq!((made.status.code(), made.stderr.as_str()), (Some(0), ""));
    let document: Value = serde_json::from_str(&made.stdout).unwrap();
    let created = serde_json::to_string_pretty(&document).unwrap();
    insta::assert_snapshot!("without_a_path_the_published_version_is_used", created);
    let manifest = fs::read_to_string(place.path().join("weather/Cargo.toml")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_toolwire")).canonicalize().unwrap();
    let dependency = if is_in_checkout(&program) {
        "toolwire = { path = "
    } else {
        concat!("toolwire = \"", env!("CARGO_PKG_VERSION"), "\"")
    };
    assert!(manifest.contains(dependency), "{manifest}");
    let config = fs::read_to_string(place.path().join("weather/.mcp.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["mcpServers"]["weather"]["command"], "cargo");

    let again = new(place.path(), &["weather"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}

#[cfg(unix)]
#[test]
fn a_program_outside_of_a_checkout_uses_the_published_version_and_says_how_to_use_another() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("toolwire");
    let built = env!("CARGO_BIN_EXE_toolwire");
    if fs::hard_link(built, &program).is_err() {
        // Another process copies it: a file that this one has open for writing may be inherited, and cannot be run.
        assert!(Command::new("cp").arg(built).arg(&program).status().unwrap().success());
    }
    let made = Command::new(&program)
        .args(["new", "weather"])
        .current_dir(place.path())
        .env("HOME", place.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).unwrap();
    assert!(text.contains("remove weather, then: toolwire new weather --toolwire-path FOLDER"), "{text}");
    let manifest = fs::read_to_string(place.path().join("weather/Cargo.toml")).unwrap();
    assert!(manifest.contains(concat!("toolwire = \"", env!("CARGO_PKG_VERSION"), "\"")), "{manifest}");
}

#[test]
fn a_name_that_cannot_be_is_answered_with_one_that_can() {
    let place = tempfile::tempdir().unwrap();
    for (name, offered) in [("My Server", "toolwire new my-server"), ("match", "toolwire new match-server")] {
        let refused = new(place.path(), &[name]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(refused.stderr.contains(offered), "{}", refused.stderr);
    }
    let refused = new(place.path(), &["weather", "--toolwire-path", "nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("is not where Toolwire is"), "{}", refused.stderr);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
