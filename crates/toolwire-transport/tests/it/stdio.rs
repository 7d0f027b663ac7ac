//! A server on standard input and output, as the `stdio_echo` example of this crate.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use bytes::Bytes;
use toolwire_transport::child::Ending;
use toolwire_transport::{Duplex, Sink, Source};

use crate::{child::patient, receive_many, send_many};

fn echo() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples/stdio_echo");
    assert!(path.exists(), "{} is missing: build the examples first", path.display());
    path
}

#[tokio::test]
async fn printing_does_not_break_the_stream() {
    let child = patient(echo()).spawn().unwrap();
    let handle = child.handle();
    let (mut source, mut sink) = child.split();
    sink.send(Bytes::from_static(b"{\"a\":1}")).await.unwrap();
    sink.flush().await.unwrap();
    assert_eq!(source.receive().await.unwrap().unwrap(), "{\"a\":1}");
    sink.close().await.unwrap();
    assert!(source.receive().await.unwrap().is_none());
    let report = handle.wait().await;
    assert_eq!(report.ending, Ending::Code(0));
    assert_eq!(handle.junk().count, 0);
    assert_eq!(
        report.stderr_tail,
        [
            "begun before the claim, ended after it",
            "the second claim says: standard input and output are already taken: a process can serve only one client on stdio",
            "echoing 7 bytes",
        ]
    );
}

#[tokio::test]
async fn both_ways_at_once() {
    let child = patient(echo()).spawn().unwrap();
    let handle = child.handle();
    let (source, sink) = child.split();
    let sending = tokio::spawn(send_many(sink));
    receive_many(source).await;
    sending.await.unwrap().unwrap();
    assert_eq!(handle.wait().await.ending, Ending::Code(0));
}

#[test]
fn sockets_work_too() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let input = OwnedFd::from(theirs.try_clone().unwrap());
    let mut server = Command::new(echo())
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    ours.write_all(b"{\"a\":1}\n").unwrap();
    let mut line = String::new();
    BufReader::new(ours.try_clone().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "{\"a\":1}\n");
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    ours.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(server.wait().unwrap().success());
}

#[test]
fn files_work_too() {
    let directory = std::env::temp_dir();
    let name = |kind| directory.join(format!("toolwire-stdio-{}-{kind}", std::process::id()));
    let (input, output) = (name("in"), name("out"));
    let messages = "{\"a\":1}\n".repeat(50_000);
    fs::write(&input, &messages).unwrap();
    let status = Command::new(echo())
        .stdin(File::open(&input).unwrap())
        .stdout(File::create(&output).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let written = fs::read_to_string(&output).unwrap();
    fs::remove_file(input).unwrap();
    fs::remove_file(output).unwrap();
    assert!(status.success());
    assert!(written == messages);
}

#[test]
fn an_input_that_has_ended_before_the_start_ends_the_server() {
    let script =
        format!("true | {{ sleep 0.1; {0}; }} && printf '{{}}' | {{ sleep 0.1; {0}; }}", echo().display());
    let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, b"{}\n");
}

#[test]
fn the_same_pipe_for_output_and_errors_is_not_disturbed() {
    let script = format!("echo '{{}}' | {} 2>&1", echo().display());
    let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line == "{}"), "{text}");
}
