//! Talking to a child process.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use toolwire_transport::child::{Ending, JUNK_LINES, SpawnError};
use toolwire_transport::{ChildProcess, Duplex, ReceiveError, Sink, Source};

use crate::{PATIENCE, receive_many, send_many};

/// A child with time to end by itself.
pub(crate) fn patient(program: impl AsRef<OsStr>) -> ChildProcess {
    ChildProcess::command(program).stdin_grace(PATIENCE).exit_patience(PATIENCE)
}

pub(crate) fn shell(script: &str) -> ChildProcess {
    patient("sh").arg("-c").arg(script)
}

#[tokio::test]
async fn both_ways_at_once() {
    let child = patient("cat").spawn().unwrap();
    let handle = child.handle();
    let (source, sink) = child.split();
    let sending = tokio::spawn(send_many(sink));
    receive_many(source).await;
    sending.await.unwrap().unwrap();
    assert_eq!(handle.wait().await.ending, Ending::Code(0));
}

#[tokio::test]
async fn junk_is_skipped_counted_and_kept() {
    let script = "echo Starting; echo '[info] ready'; echo '{\"a\":1}'; for i in 1 2 3 4 5 6; do echo no $i; done; echo '[{}]'";
    let child = shell(script).spawn().unwrap();
    let (handle, diagnostics) = (child.handle(), child.diagnostics().unwrap());
    let (mut source, _sink) = child.split();
    assert_eq!(source.receive().await.unwrap().unwrap(), "{\"a\":1}");
    assert_eq!(handle.junk().lines, ["Starting", "[info] ready"]);
    assert_eq!(source.receive().await.unwrap().unwrap(), "[{}]");
    assert!(source.receive().await.unwrap().is_none());
    let junk = handle.junk();
    assert_eq!(junk.count, 8);
    assert_eq!(junk.lines.len(), JUNK_LINES);
    assert_eq!(junk.lines.back().unwrap(), "no 6");
    let why = diagnostics.why_closed().await.unwrap();
    assert!(why.contains("ended with exit code 0"), "{why}");
    assert!(why.contains("8 lines on standard output were not messages, the last:\n  no 2\n"), "{why}");
}

#[tokio::test]
async fn an_over_long_line_is_survived() {
    let script = "head -c 5000 /dev/zero | tr '\\0' x; echo; echo '{}'";
    let (mut source, _sink) = shell(script).max_message_bytes(1000).spawn().unwrap().split();
    let error = source.receive().await.unwrap_err();
    assert!(matches!(error, ReceiveError::TooLong { limit: 1000, .. }), "{error:?}");
    assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
}

#[tokio::test]
async fn the_environment_and_the_directory_are_those_asked_for() {
    let directory = std::env::temp_dir().canonicalize().unwrap();
    let child = ChildProcess::command("/bin/sh")
        .args(["-c", "echo \"{$ONE $TWO $HOME}\"; echo \"{$(pwd -P)}\""])
        .env("HOME", "gone")
        .env_clear()
        .env("ONE", "1")
        .envs([("TWO", "2")])
        .current_dir(&directory)
        .spawn()
        .unwrap();
    let (mut source, _sink) = child.split();
    assert_eq!(source.receive().await.unwrap().unwrap(), "{1 2 }");
    assert_eq!(source.receive().await.unwrap().unwrap(), format!("{{{}}}", directory.display()));
}

#[tokio::test]
async fn standard_error_can_be_followed() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&seen);
    let child = shell("echo one >&2; echo two >&2")
        .on_stderr(move |line| {
            lines.lock().unwrap().push(line.to_owned());
            assert_ne!(line, "two", "a listener that panics harms nobody");
        })
        .spawn()
        .unwrap();
    assert_eq!(child.handle().wait().await.stderr_tail, ["one", "two"]);
    assert_eq!(*seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner), ["one", "two"]);
}

#[tokio::test]
async fn writing_to_a_dead_child_is_an_error() {
    let child = shell("exit 3").spawn().unwrap();
    let handle = child.handle();
    let (_source, mut sink) = child.split();
    handle.wait().await;
    let sent = async {
        sink.send(Bytes::from_static(b"{}")).await?;
        sink.flush().await
    };
    assert_eq!(sent.await.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

fn spawn_error(mut process: ChildProcess) -> String {
    let error = process.spawn().unwrap_err();
    assert!(error.get_ref().unwrap().is::<SpawnError>());
    error.to_string()
}

#[tokio::test]
async fn a_command_that_is_missing_is_named() {
    assert_eq!(
        spawn_error(ChildProcess::command("no-such-server").arg("two words").env("PATH", "/a:/b")),
        "cannot start `no-such-server \"two words\"`: not found in PATH=/a:/b; hint: install it, or give its full path"
    );
    assert_eq!(
        spawn_error(ChildProcess::command("/no/such/server")),
        "cannot start `/no/such/server`: there is no such file; hint: check the path"
    );
    assert_eq!(
        spawn_error(ChildProcess::command("cat").current_dir("/no/such/place")),
        "cannot start `cat`: its working directory /no/such/place does not exist"
    );
    let denied = spawn_error(ChildProcess::command("/dev/null"));
    assert!(denied.starts_with("cannot start `/dev/null`: Permission denied"), "{denied}");
}

#[test]
fn outside_of_a_runtime_nothing_is_started() {
    let error = ChildProcess::command("cat").spawn().unwrap_err();
    assert!(error.to_string().contains("inside a Tokio runtime"), "{error}");
}
