//! Runs the program, and lets nothing it started live on.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

/// How long the program may take before a test gives up; a healthy run ends long before.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The variable that makes waits inside of the program longer, so that none is in vain because the machine is busy.
pub(crate) const WAITS: (&str, &str) = ("__TOOLWIRE_TEST_WAITS", "20");

/// The program with these arguments, and without whatever the environment says about colours and the like.
pub(crate) fn toolwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwire"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "XDG_STATE_HOME", "TOOLWIRE_DEPTH"] {
        command.env_remove(variable);
    }
    command.env(WAITS.0, WAITS.1);
    command
}

/// How a run ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command) -> Ended {
    finish(command.spawn().unwrap())
}

/// Waits until a process has ended, and kills it when it does not.
pub(crate) fn finish(mut child: Child) -> Ended {
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    let status = ended(&mut child);
    let text = |output: Option<Receiver<String>>| match output.map(|output| output.recv_timeout(PATIENCE)) {
        None => String::new(),
        Some(Ok(text)) => text,
        Some(Err(RecvTimeoutError::Disconnected)) => panic!("the output is no text"),
        Some(Err(RecvTimeoutError::Timeout)) => {
            panic!("the program has ended, and its output was still open after {PATIENCE:?}")
        }
    };
    Ended { status, stdout: text(stdout), stderr: text(stderr) }
}

/// Waits for the end of a process, so that no test leaves one behind.
fn ended(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the program was still running after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn collect(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        // The test may have given up.
        let _ = sender.send(text);
    });
    receiver
}

/// Returns the lines that a process writes, each of which has to come in time. All of them are read, wanted or not.
pub(crate) fn lines(from: impl Read + Send + 'static) -> impl Iterator<Item = String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            // The test may want no more of them.
            let _ = sender.send(line.unwrap());
        }
    });
    std::iter::from_fn(move || match receiver.recv_timeout(PATIENCE) {
        Ok(line) => Some(line),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("no line was written within {PATIENCE:?}"),
    })
}

/// Returns the fields of a form with more of them than can be checked.
pub(crate) fn many_fields() -> String {
    let fields: Vec<String> = (0..12_000).map(|n| format!(r#""f{n}":{{"type":"string"}}"#)).collect();
    fields.join(",")
}

/// Waits until `holds` returns true.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes a file that can be run.
///
/// A process of its own does it. While this process has a file open for writing, another test may start a process that
/// inherits the open file for a moment, and what is open for writing cannot be run.
#[cfg(unix)]
pub(crate) fn write_executable(file: &std::path::Path, text: &str) {
    let script = r#"printf %s "$2" > "$1" && chmod 755 "$1""#;
    let written = Command::new("sh").args(["-c", script, "sh"]).arg(file).arg(text).status().unwrap();
    assert!(written.success(), "{} cannot be written", file.display());
}
