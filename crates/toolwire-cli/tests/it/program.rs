//! Runs the program, and lets nothing it started live on.

use std::{
    io::Read,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// How long the program may take before a test gives up; a healthy run ends long before.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program with these arguments, and without whatever the environment says about colours and the like.
pub(crate) fn toolwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwire"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "XDG_STATE_HOME", "TOOLWIRE_DEPTH"] {
        command.env_remove(variable);
    }
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
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.map_or_else(String::new, |reader| reader.join().unwrap())
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

fn collect(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    })
}
