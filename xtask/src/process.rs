//! Running other programs so that none of them can hang or outlive the run.
//!
//! Every program gets its own process group and a time limit. A small watchdog holds the other end of a pipe;
//! when the pipe closes (the limit passed, the program ended, or this process died) it kills what is left
//! of the group.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::output::{self, redirect, say};

/// How often a running program is looked at. Short beside any program run here.
const POLL: Duration = Duration::from_millis(20);

/// How long the last output may take to arrive once the program has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(30);

/// A program to run, with the limits that keep it in check.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
    shown: String,
    limit: Duration,
}

impl Program {
    pub(crate) fn new(name: impl AsRef<OsStr>, limit: Duration) -> Self {
        let name = name.as_ref();
        let shown = Path::new(name).file_name().unwrap_or(name).to_string_lossy().into_owned();
        // The steps of the main lane have tests that measure time, and the processors belong to them.
        let mut command = if cfg!(unix) && output::is_logged() {
            let mut nice = Command::new("nice");
            nice.args(["-n", "19"]).arg(name);
            nice
        } else {
            Command::new(name)
        };
        command.stdin(Stdio::null());
        for (variable, _) in std::env::vars_os().filter(|(variable, _)| is_of_package(variable)) {
            command.env_remove(variable);
        }
        Self { command, shown, limit }
    }

    /// The cargo that runs us, in the root of the workspace.
    pub(crate) fn cargo(root: &Path, limit: Duration) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self::new(cargo, limit).directory(root)
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for arg in args {
            self.shown.push(' ');
            self.shown.push_str(&arg.as_ref().to_string_lossy());
            self.command.arg(arg);
        }
        self
    }

    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the program with its output going where ours goes, and fails unless it succeeds.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let status = self.watched()?;
        self.judge(status)
    }

    /// Runs the program with its output going where ours goes, and returns how it ended.
    pub(crate) fn status(mut self) -> Result<ExitStatus, String> {
        self.watched()
    }

    fn watched(&mut self) -> Result<ExitStatus, String> {
        say!("$ {}", self.shown);
        redirect(&mut self.command, true);
        let mut running = self.start()?;
        self.wait(&mut running)
    }

    /// Runs the program and returns what it wrote to stdout; its stderr goes where ours goes.
    pub(crate) fn output(mut self) -> Result<(ExitStatus, String), String> {
        redirect(&mut self.command, false);
        self.command.stdout(Stdio::piped());
        let mut running = self.start()?;
        let (sender, receiver) = mpsc::channel();
        if let Some(mut stdout) = running.child.stdout.take() {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
                // Nobody listens any more when the program was stopped at its limit.
                let _ = sender.send(read);
            });
        }
        let status = self.wait(&mut running)?;
        drop(running);
        let bytes = receiver
            .recv_timeout(LAST_OUTPUT)
            .map_err(|_| format!("`{}` ended but something still holds its output open", self.shown))?
            .map_err(|error| format!("reading from `{}`: {error}", self.shown))?;
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Like [`Program::output`], but a program that fails is an error.
    pub(crate) fn successful_output(self) -> Result<String, String> {
        let shown = self.shown.clone();
        let (status, output) = self.output()?;
        if status.success() { Ok(output) } else { Err(format!("`{shown}` failed: {status}")) }
    }

    /// Runs the program with all of its output going to `log`, and returns how it ended.
    pub(crate) fn logged(mut self, log: &File) -> Result<ExitStatus, String> {
        self.log_to(log)?;
        let mut running = self.start()?;
        self.wait(&mut running)
    }

    /// Starts a program that goes on until it is dropped, and waits for the first line it writes to stdout.
    pub(crate) fn serve(mut self) -> Result<Service, String> {
        redirect(&mut self.command, false);
        self.command.stdout(Stdio::piped());
        let mut running = self.start()?;
        let (sender, receiver) = mpsc::channel();
        if let Some(stdout) = running.child.stdout.take() {
            thread::spawn(move || {
                let mut stdout = BufReader::new(stdout);
                let mut line = String::new();
                let read = stdout.read_line(&mut line).map(|_| line);
                // Nobody listens any more when the line came too late.
                let _ = sender.send(read);
                // A program whose output is not read may be stopped by it.
                let _ = std::io::copy(&mut stdout, &mut std::io::sink());
            });
        }
        let line = receiver
            .recv_timeout(self.limit)
            .map_err(|_| format!("`{}` said nothing within {:?}", self.shown, self.limit))?
            .map_err(|error| format!("reading from `{}`: {error}", self.shown))?;
        let announced = line.trim().to_owned();
        if announced.is_empty() {
            return Err(format!("`{}` ended before it was ready", self.shown));
        }
        Ok(Service { running, announced })
    }

    /// Starts a program that goes on until it is dropped and says nothing when it is ready, with all of its output
    /// going to `log`.
    pub(crate) fn background(mut self, log: &File) -> Result<Background, String> {
        self.log_to(log)?;
        Ok(Background { running: self.start()? })
    }

    fn log_to(&mut self, log: &File) -> Result<(), String> {
        let copy = || log.try_clone().map_err(|error| format!("the log of `{}`: {error}", self.shown));
        let (stdout, stderr) = (copy()?, copy()?);
        self.command.stdout(stdout).stderr(stderr);
        Ok(())
    }

    fn start(&mut self) -> Result<Running, String> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut self.command, 0);
        let child =
            self.command.spawn().map_err(|error| format!("cannot start `{}`: {error}", self.shown))?;
        let watchdog = watch(child.id());
        Ok(Running { child, watchdog })
    }

    fn wait(&self, running: &mut Running) -> Result<ExitStatus, String> {
        let deadline = Instant::now() + self.limit;
        loop {
            match running.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(POLL),
                Ok(None) => return Err(format!("`{}` was stopped after {:?}", self.shown, self.limit)),
                Err(error) => return Err(format!("waiting for `{}`: {error}", self.shown)),
            }
        }
    }

    fn judge(&self, status: ExitStatus) -> Result<(), String> {
        if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", self.shown)) }
    }
}

/// Returns whether this is a variable in which cargo describes the package of the program that it runs, here xtask.
///
/// Some build scripts ask for them: a cargo that sees other values than one started in a shell builds those crates, and
/// all that depend on them, anew.
fn is_of_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// A program that serves; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Service {
    running: Running,
    announced: String,
}

impl Service {
    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.running.child.id()
    }

    /// The first line it wrote.
    pub(crate) fn announced(&self) -> &str {
        &self.announced
    }
}

/// A program that somebody else finds out to be ready; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Background {
    running: Running,
}

impl Background {
    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.running.child.try_wait().map_err(|error| format!("looking after a program: {error}"))
    }
}

/// A program under way; dropping it ends it and everything it started in its group.
#[derive(Debug)]
struct Running {
    child: Child,
    watchdog: Option<Child>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(watchdog) = &mut self.watchdog {
            drop(watchdog.stdin.take());
            let _ = watchdog.wait();
        }
        // Where there are no process groups this ends at least the program itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the process that ends the group of `leader` as soon as our end of its stdin closes.
#[cfg(unix)]
fn watch(leader: u32) -> Option<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", "read -r _; kill -s KILL -- \"-$1\" 2>/dev/null", "watchdog", &leader.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own, so that the Ctrl-C which ends us does not end the one who cleans up after us.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().ok()
}

#[cfg(not(unix))]
fn watch(_leader: u32) -> Option<Child> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::Program;
    use crate::output::logged;

    /// A test that waits longer than this has failed. What should have ended goes on for longer.
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn variables_of_the_package_of_xtask_are_not_handed_on() {
        let output = |program: Program| program.successful_output().unwrap();
        let show = || {
            Program::new("sh", LONG).args(["-c", "echo ${CARGO_PKG_NAME-none} ${CARGO_MANIFEST_DIR-none}"])
        };
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "cargo runs this test");
        assert_eq!(output(show()), "none none\n");
        assert_eq!(output(show().env("CARGO_PKG_NAME", "a")), "a none\n");
    }

    #[test]
    fn program_of_a_step_beside_the_others_runs_when_nothing_else_wants_to() {
        let nice = || Program::new("nice", LONG).successful_output().unwrap().trim().parse::<i32>().unwrap();
        let (before, log) = (nice(), std::fs::File::options().write(true).open("/dev/null").unwrap());
        assert_eq!((logged(log, nice), nice()), (19, before));
    }

    #[test]
    fn output_and_status_come_back() {
        let (status, output) = Program::new("sh", LONG).args(["-c", "echo out; exit 3"]).output().unwrap();
        assert_eq!((status.code(), output.as_str()), (Some(3), "out\n"));
    }

    #[test]
    fn a_failure_names_the_command() {
        let error = Program::new("sh", LONG).args(["-c", "exit 4"]).run().unwrap_err();
        assert!(error.contains("`sh -c exit 4` failed") && error.contains('4'), "{error}");
        let error = Program::new("no-such-program-anywhere", LONG).run().unwrap_err();
        assert!(error.starts_with("cannot start `no-such-program-anywhere`"), "{error}");
    }

    #[test]
    fn a_program_past_its_limit_is_stopped_with_its_children() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut program =
            Program::new("sh", Duration::from_millis(200)).args(["-c", "sleep 600 & sleep 600"]);
        program.command.stdout(writer);
        let error = program.run().unwrap_err();
        assert!(error.contains("was stopped after 200ms"), "{error}");
        // Every process of the group holds the pipe open, so its end is the end of them all.
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(reader.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(receiver.recv_timeout(LONG), Ok(true));
    }

    #[test]
    fn a_service_announces_itself_and_ends_when_dropped() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut program = Program::new("sh", LONG).args(["-c", "echo ready; exec sleep 600"]);
        program.command.stderr(writer);
        let service = program.serve().unwrap();
        assert_eq!(service.announced(), "ready");
        drop(service);
        // The pipe is held open by the service alone.
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(reader.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(receiver.recv_timeout(LONG), Ok(true));
    }

    #[test]
    fn a_program_in_the_background_writes_to_its_log_and_ends_when_dropped() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let log = std::os::fd::OwnedFd::from(writer).into();
        let program = Program::new("sh", LONG).args(["-c", "echo begun; exec sleep 600"]);
        let mut background = program.background(&log).unwrap();
        drop(log);
        let mut said = [0; 6];
        reader.read_exact(&mut said).unwrap();
        assert_eq!((&said, background.ended()), (b"begun\n", Ok(None)));
        drop(background);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(reader.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(receiver.recv_timeout(LONG), Ok(true));
    }

    #[test]
    fn a_service_that_says_nothing_is_an_error() {
        let error = Program::new("sh", LONG).args(["-c", "exit 0"]).serve().unwrap_err();
        assert!(error.contains("ended before it was ready"), "{error}");
        let silent = Program::new("sh", Duration::from_millis(100)).args(["-c", "sleep 60"]);
        assert!(silent.serve().unwrap_err().contains("said nothing within"));
    }

    #[test]
    fn what_a_program_leaves_behind_is_stopped() {
        // Had the background process survived, it would hold the output open past the limit for that.
        let (status, output) = Program::new("sh", LONG).args(["-c", "sleep 60 & echo $!"]).output().unwrap();
        assert!(status.success());
        assert!(output.trim().parse::<u32>().is_ok(), "{output}");
    }
}
