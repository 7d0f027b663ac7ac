//! How a child comes to its end, and that nothing of it is left.

use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use toolwire_transport::child::Ending;
use toolwire_transport::{Child, Duplex, Sink, Source};

use crate::{PATIENCE, child::shell};

/// A server that starts a process of its own, says both numbers, and ignores what it is told to.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & echo \"[{}, $$, $!]\"; while :; do sleep 1000; done";

/// A server that leaves a process behind.
const LEAVES_A_CHILD: &str = "sleep 1000 & echo \"[{}, $$, $!]\"; cat";

const SHORT: Duration = Duration::from_millis(50);

async fn numbers(source: &mut impl Source) -> Vec<Pid> {
    let line = source.receive().await.unwrap().unwrap();
    let text = std::str::from_utf8(&line).unwrap().trim_matches(['[', ']']);
    text.split(", ").skip(1).map(|number| Pid::from_raw(number.parse().unwrap()).unwrap()).collect()
}

/// A process that has ended but was not yet waited for does not run.
fn runs(process: Pid) -> bool {
    let zombie = fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    test_kill_process(process).is_ok() && !zombie
}

/// Signals are delivered in their own time, so this looks for a while.
fn assert_end(processes: &[Pid]) {
    let deadline = Instant::now() + PATIENCE;
    while processes.iter().any(|process| runs(*process)) {
        assert!(Instant::now() < deadline, "a process survived: {processes:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn started(child: Child) -> (<Child as Duplex>::Source, <Child as Duplex>::Sink, Vec<Pid>) {
    let (mut source, sink) = child.split();
    let processes = numbers(&mut source).await;
    assert_eq!(processes.len(), 2);
    assert!(processes.iter().all(|process| runs(*process)));
    (source, sink, processes)
}

#[tokio::test]
async fn a_killed_child_is_reported_with_its_signal_and_last_lines() {
    let script = "for i in $(seq 1 30); do echo line $i >&2; done; echo \"[{}, $$]\"; sleep 1000";
    let child = shell(script).spawn().unwrap();
    let (handle, diagnostics) = (child.handle(), child.diagnostics().unwrap());
    assert!(child.exit_report().is_none());
    let (mut source, _sink) = child.split();
    let process = numbers(&mut source).await[0];
    kill_process(process, Signal::SEGV).unwrap();
    let report = handle.wait().await;
    assert_eq!(report.ending, Ending::Signal(11));
    assert_eq!(report.stderr_tail, (11..=30).map(|i| format!("line {i}")).collect::<Vec<_>>());
    assert_eq!(handle.exited(), Some(report));
    let why = diagnostics.why_closed().await.unwrap();
    assert!(why.starts_with("`sh -c \"for i in"), "{why}");
    assert!(why.contains("was ended by signal 11 (SIGSEGV)"), "{why}");
    assert!(why.ends_with("line 29\n  line 30"), "{why}");
}

#[tokio::test]
async fn an_exit_code_is_reported() {
    let child = shell("echo 'no such database' >&2; exit 7").spawn().unwrap();
    let why = child.diagnostics().unwrap().why_closed().await.unwrap();
    assert!(
        why.contains("ended with exit code 7; its last lines on standard error:\n  no such database"),
        "{why}"
    );
}

#[tokio::test]
async fn a_child_that_only_closed_its_output_is_said_to_run() {
    let child = shell("echo closing >&2; exec >&-; cat >/dev/null").exit_patience(SHORT).spawn().unwrap();
    let diagnostics = child.diagnostics().unwrap();
    let (mut source, _sink) = child.split();
    assert!(source.receive().await.unwrap().is_none());
    let why = diagnostics.why_closed().await.unwrap();
    assert!(why.contains("closed its standard output but still runs; its last lines"), "{why}");
}

#[tokio::test]
async fn closing_the_input_is_enough_for_a_good_server() {
    let child = shell("cat; echo 'going' >&2").spawn().unwrap();
    let handle = child.handle();
    let (mut source, mut sink) = child.split();
    sink.send(Bytes::from_static(b"{}")).await.unwrap();
    sink.close().await.unwrap();
    assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
    let report = handle.wait().await;
    assert_eq!((report.ending, report.stderr_tail), (Ending::Code(0), vec!["going".to_owned()]));
}

#[tokio::test]
async fn shutdown_needs_no_help_from_the_writer() {
    let child = shell("sleep 1000 & exec cat").stdin_grace(SHORT).spawn().unwrap();
    let handle = child.handle();
    let (_source, mut sink) = child.split();
    // Nobody reads the echo, so this writer gets stuck until it is told that the input was closed.
    let stuck = tokio::spawn(async move {
        loop {
            if let Err(error) = sink.send(Bytes::from(vec![b'x'; 100_000])).await {
                return error.kind();
            }
        }
    });
    tokio::task::yield_now().await;
    handle.shutdown().await;
    assert_eq!(stuck.await.unwrap(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn what_an_ended_server_leaves_behind_is_ended_too() {
    let child = shell(LEAVES_A_CHILD).spawn().unwrap();
    let handle = child.handle();
    let (_source, _sink, processes) = started(child).await;
    let report = handle.shutdown().await;
    assert_eq!(report.ending, Ending::Code(0));
    assert_end(&processes);
}

#[tokio::test]
async fn term_comes_after_the_first_grace() {
    let script = "trap 'echo told >&2; exit 5' TERM; echo '[{}]'; while :; do sleep 0.01; done";
    let child = shell(script).stdin_grace(SHORT).term_grace(PATIENCE).spawn().unwrap();
    let handle = child.handle();
    let (mut source, _sink) = child.split();
    source.receive().await.unwrap().unwrap();
    let report = handle.shutdown().await;
    assert_eq!(report.ending, Ending::Code(5));
    assert!(report.stderr_tail.contains(&"told".to_owned()), "{report}");
}

#[tokio::test]
async fn kill_comes_last() {
    let child = shell(STUBBORN).stdin_grace(SHORT).term_grace(SHORT).spawn().unwrap();
    let handle = child.handle();
    let (_source, _sink, processes) = started(child).await;
    assert_eq!(handle.shutdown().await.ending, Ending::Signal(9));
    assert_end(&processes);
}

#[tokio::test]
async fn a_closed_child_is_ended_even_if_nobody_waits() {
    let child = shell(STUBBORN).stdin_grace(SHORT).term_grace(SHORT).spawn().unwrap();
    let handle = child.handle();
    let (source, mut sink, processes) = started(child).await;
    sink.close().await.unwrap();
    drop((source, sink));
    assert_eq!(handle.wait().await.ending, Ending::Signal(9));
    assert_end(&processes);
}

#[tokio::test]
async fn a_dropped_child_is_killed_with_all_it_started() {
    let child = shell(STUBBORN).spawn().unwrap();
    let handle = child.handle();
    let (source, sink, processes) = started(child).await;
    drop(source);
    assert!(runs(processes[0]), "one half is enough to keep it");
    drop(sink);
    // No task runs in between: dropping alone does it.
    assert_end(&processes);
    assert_eq!(handle.wait().await.ending, Ending::Signal(9));
}

#[test]
fn a_runtime_that_ends_takes_the_child_along() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (handle, halves, processes) = runtime.block_on(async {
        let child = shell(STUBBORN).spawn().unwrap();
        let handle = child.handle();
        let (source, sink, processes) = started(child).await;
        (handle, (source, sink), processes)
    });
    drop(runtime);
    assert_end(&processes);
    assert_eq!(handle.exited().unwrap().ending, Ending::Unknown);
    drop(halves);
}

#[tokio::test]
async fn the_group_is_known_by_the_number_of_the_child() {
    let child = shell(LEAVES_A_CHILD).spawn().unwrap();
    let handle = child.handle();
    let (_source, _sink, processes) = started(child).await;
    let leader = u32::try_from(processes[0].as_raw_pid()).unwrap();
    assert_eq!(handle.group_id(), Some(leader));
    handle.shutdown().await;
    assert_end(&processes);
}
