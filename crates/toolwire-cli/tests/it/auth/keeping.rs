//! How logins are kept, and what is never shown of them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use super::world::World;

fn credentials(world: &World) -> PathBuf {
    let folder = fs::read_dir(world.home.path(".local/share/toolwire/auth/credentials")).unwrap();
    let mut files = folder.map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap()
}

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_are_for_their_owner_alone_and_others_are_refused() {
    let world = World::new();
    assert!(world.log_in(&[]).status.success());
    let file = credentials(&world);
    let auth = world.home.path(".local/share/toolwire/auth");
    let settings: Vec<PathBuf> =
        fs::read_dir(auth.join("settings")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(settings.len(), 1);
    assert_eq!((mode(&file), mode(&settings[0])), (0o600, 0o600));
    for folder in [auth.clone(), auth.join("credentials"), auth.join("settings")] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    refused(&world, "can be read by others");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(world.run(&["tools", &world.server]).status.success());

    let elsewhere = world.home.path("elsewhere.json");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    refused(&world, "is a symbolic link");
}

fn refused(world: &World, why: &str) {
    for words in
        [&["tools", &world.server][..], &["auth", "status", &world.server], &["logout", &world.server]]
    {
        let ended = world.run(words);
        assert_eq!(ended.status.code(), Some(3), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("error[credentials-exposed]"), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{words:?}: {}", ended.stderr);
    }
    let ended = world.log_in(&[]);
    assert_eq!(ended.status.code(), Some(3), "it is not written over: {ended:?}");
    let ended = world.run(&["auth", "status"]);
    assert!(ended.stderr.contains("is not used") && ended.stderr.contains(why), "{ended:?}");
    let ended = world.run(&["doctor", &world.server, "--json"]);
    assert!(ended.stdout.contains("\"credentials-exposed\""), "{ended:?}");
}

#[test]
fn nothing_that_is_printed_or_recorded_has_a_piece_of_a_token() {
    let world = World::new();
    world.state().lasts = 0;
    assert!(world.log_in(&["-v"]).status.success());
    let (server, trace) = (world.server.as_str(), world.home.path("talk.jsonl"));
    let file = trace.display().to_string();
    for words in [
        &["auth", "status", "-v"][..],
        &["auth", "status", "--json", "-v"],
        &["auth", "explain", server, "-v"],
        &["auth", "explain", server, "--json"],
        &["tools", server, "-v", "--trace", &file],
        &["call", server, "whoami", "--json", "-v", "--trace", &file],
        &["call", server, "write", "-v", "--trace", &file],
        &["call", server, "write", "--json", "--trace", &file],
        &["trace", "show", "--long", &file],
        &["trace", "show", "--json", &file],
        &["doctor", server, "-v"],
        &["doctor", server, "--json"],
        &["probe", server],
        &["logout", server, "-v", "--json"],
    ] {
        // Each of them checks what it prints.
        world.run(words);
        if let Ok(recorded) = fs::read_to_string(&trace) {
            world.assert_clean(&recorded, "the trace");
        }
    }
    // The test can see what it looks for: tokens were given out and used.
    let state = world.state();
    assert!(state.secrets.len() > 4 && state.count("refresh_token") > 1, "{:?}", state.seen);
    assert_eq!(state.count("revoked access_token"), 1);
}
