//! Ctrl-C and other ways of being asked to leave: at once, and with nothing left behind.

use std::{
    path::Path,
    process::{Child, Command},
};

use crate::program::{finish, toolwire, wait_until};

/// A server that says nothing and does not want to end; it writes down which process it is.
const STUBBORN: &str =
    "trap '' TERM HUP INT; echo $$ > \"$1.new\"; mv \"$1.new\" \"$1\"; while :; do sleep 1; done";

#[test]
fn every_command_that_waits_can_be_left_and_takes_its_server_along() {
    for command in ["tools", "probe", "doctor", "bench", "watch"] {
        for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1), ("-QUIT", 3)] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("pid");
            let mut program = toolwire(&[command, "--timeout", "60", "--", "sh", "-c", STUBBORN, "sh"]);
            program.arg(&file).env("HOME", folder.path());
            let child = program.spawn().unwrap();
            let server = started(&file);
            send(signal, &child);
            let ended = finish(child);
            // Being left is how watching ends.
            let expected = if command == "watch" { 0 } else { 128 + number };
            assert_eq!(ended.status.code(), Some(expected), "{command} {signal}: {ended:?}");
            let told = ended.stderr.contains("error[interrupted]");
            assert_eq!(told, command != "watch", "{command} {signal}: {ended:?}");
            wait_until(&format!("{command} {signal}: process {server} has ended"), || !runs(&server));
        }
    }
}

#[test]
fn a_server_does_not_outlive_a_program_that_is_killed() {
    for command in ["tools", "probe"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut program = toolwire(&[command, "--timeout", "60", "--", "sh", "-c", STUBBORN, "sh"]);
        program.arg(&file).env("HOME", folder.path());
        let child = program.spawn().unwrap();
        let server = started(&file);
        send("-KILL", &child);
        assert_eq!(finish(child).status.code(), None);
        wait_until(&format!("{command}: process {server} has ended"), || !runs(&server));
    }
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits for the server, and returns which process it is.
fn started(file: &Path) -> String {
    wait_until("the server is started", || file.exists());
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

fn runs(process: &str) -> bool {
    Command::new("kill").args(["-0", process]).output().unwrap().status.success()
}
