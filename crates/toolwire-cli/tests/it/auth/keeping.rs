//! How logins are kept, and what is never shown of them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::{Command, Stdio},
};

use super::world::World;
use crate::program::{Ended, wait_until};

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

/// Runs the program from a shell that has something to say first.
fn run_after(world: &World, first: &str, args: &[&str]) -> Ended {
    let direct = world.home.toolwire(args);
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(format!("{first}; exec \"$0\" \"$@\""))
        .arg(direct.get_program())
        .args(direct.get_args());
    command.env_clear().current_dir(world.home.path("project"));
    command.envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("BROWSER", world.browser());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    crate::program::run(command)
}

#[test]
fn files_are_for_their_owner_alone_whatever_the_umask_is() {
    let world = World::new();
    let login = ["login", &world.server, "--client", "c", "--redirect", "http://127.0.0.1/callback"];
    let ended = run_after(&world, "umask 000", &login);
    assert!(ended.status.success(), "{ended:?}");
    let mut looked_at = 0;
    let mut folders = vec![world.home.path(".local/share/toolwire/auth")];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                looked_at += 1;
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
    }
    assert!(looked_at >= 3, "a credential, its settings and its lock: {looked_at}");
}

#[test]
fn a_disk_that_is_full_leaves_the_old_login_whole_and_somebody_is_told() {
    let world = World::new();
    world.state().lasts = 0;
    assert!(world.log_in(&[]).status.success());
    world.state().lasts = 3600;
    let file = credentials(&world);
    let before = fs::read(&file).unwrap();
    // Nothing can be written to any file, as on a full disk.
    let ended = run_after(&world, "trap '' XFSZ; ulimit -f 0", &["call", &world.server, "whoami"]);
    assert_eq!((ended.status.code(), ended.stdout.trim()), (Some(0), "alice"), "{ended:?}");
    assert!(ended.stderr.contains("could not be stored"), "{}", ended.stderr);
    assert_eq!(world.state().count("refresh_token"), 1);
    assert_eq!(fs::read(&file).unwrap(), before);
    let left: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_program_that_is_killed_while_it_renews_leaves_the_old_login_whole_and_unlocked() {
    let world = World::new();
    world.state().lasts = 0;
    assert!(world.log_in(&[]).status.success());
    (world.state().lasts, world.state().hangs) = (3600, true);
    let file = credentials(&world);
    let before = fs::read(&file).unwrap();
    let mut child = world.home.toolwire(&["call", &world.server, "whoami"]).spawn().unwrap();
    wait_until("the issuer is asked for a renewal", || {
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        world.state().count("hung") > 0
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read(&file).unwrap(), before);
    world.state().hangs = false;
    let ended = world.run(&["call", &world.server, "whoami"]);
    assert_eq!((ended.status.code(), ended.stdout.trim()), (Some(0), "alice"), "{ended:?}");
}

/// Settings say which issuer and origins are trusted: whoever could write them could send the login elsewhere.
#[test]
fn settings_that_others_could_have_written_are_refused() {
    let world = World::new();
    assert!(world.log_in(&[]).status.success());
    let folder = world.home.path(".local/share/toolwire/auth/settings");
    let settings = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let commands: [&[&str]; 4] = [
        &["tools", &world.server],
        &["logout", &world.server],
        &["auth", "explain", &world.server],
        &["login", &world.server],
    ];
    let refused = |why: &str| {
        for words in commands {
            let ended = world.run(words);
            assert_eq!(ended.status.code(), Some(3), "{words:?}: {ended:?}");
            assert!(ended.stderr.contains("error[credentials-exposed]"), "{words:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(why), "{words:?}: {}", ended.stderr);
        }
    };
    for open in [0o622, 0o602, 0o666] {
        fs::set_permissions(&settings, fs::Permissions::from_mode(open)).unwrap();
        refused("can be changed by others");
    }
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o600)).unwrap();
    let elsewhere = world.home.path("elsewhere.json");
    fs::rename(&settings, &elsewhere).unwrap();
    symlink(&elsewhere, &settings).unwrap();
    refused("is a symbolic link");
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
