//! How long the program takes to start, and how much it adds to the start of a server.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::LIMIT;
use crate::process::Program;
use crate::workspace::Workspace;

/// How often each command is run; the median is told.
const RUNS: usize = 21;

/// A first message for a server, to find out how long it takes to start by itself.
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    "\n"
);

/// Measures the released program and tells what it found, a line each.
pub(super) fn table(root: &Path) -> Result<String, String> {
    Program::cargo(root, LIMIT).args(["build", "--release", "-p", "toolwire-cli"]).run()?;
    let toolwire = Workspace::read(root)?.target.join("release/toolwire");
    let explain = |error: std::io::Error| format!("{}: {error}", toolwire.display());
    let size = std::fs::metadata(&toolwire).map_err(explain)?.len();
    let help = median(|| run(Command::new(&toolwire).arg("--help"), "")).map_err(explain)?;
    let server =
        median(|| run(Command::new(&toolwire).args(["demo", "--stdio"]), INITIALIZE)).map_err(explain)?;
    let tools = median(|| {
        run(Command::new(&toolwire).args(["tools", "--"]).arg(&toolwire).args(["demo", "--stdio"]), "")
    });
    let tools = tools.map_err(explain)?;
    let milliseconds = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    Ok([
        format!("program: {} KB", size / 1000),
        format!("toolwire --help: {}", milliseconds(help)),
        format!("the demonstration server, from its start to its end: {}", milliseconds(server)),
        format!("toolwire tools -- that server: {}", milliseconds(tools)),
    ]
    .join("\n"))
}

fn median(mut measure: impl FnMut() -> std::io::Result<Duration>) -> std::io::Result<Duration> {
    let mut times = (0..RUNS).map(|_| measure()).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times[RUNS / 2])
}

/// From the start of a program to its end, with this input.
fn run(command: &mut Command, input: &str) -> std::io::Result<Duration> {
    let started = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        std::io::Write::write_all(&mut stdin, input.as_bytes())?;
    }
    child.wait()?;
    Ok(started.elapsed())
}
