//! What is known about a child while it runs and afterwards, shared by everyone who deals with it.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::exit::{Ending, ExitReport, write_stderr};
use super::group::Group;
use super::junk::Junk;
use super::stderr::StderrTail;
use super::stdin::ChildInput;
use crate::duplex::{BoxFuture, Diagnostics};
use crate::lock::lock;

/// How long to wait for the end of a process whose output has ended, before saying that it still runs.
pub(super) const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// What the supervisor is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    Run,
    Close,
    Kill,
}

/// How far a child has come.
#[derive(Clone, Debug)]
pub(super) enum Life {
    Running,
    /// The process has ended; what it has started may still run.
    Exited(ExitReport),
    /// Nothing is left.
    Gone(ExitReport),
}

impl Life {
    fn report(&self) -> Option<&ExitReport> {
        match self {
            Self::Running => None,
            Self::Exited(report) | Self::Gone(report) => Some(report),
        }
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) command: String,
    pub(super) group: Group,
    pub(super) input: ChildInput,
    pub(super) wish: watch::Sender<Wish>,
    pub(super) life: watch::Sender<Life>,
    exit_patience: Duration,
    stderr: Mutex<StderrTail>,
    junk: Mutex<Junk>,
}

impl Shared {
    pub(super) fn new(command: String, group: Group, input: ChildInput, exit_patience: Duration) -> Self {
        Self {
            command,
            group,
            input,
            wish: watch::Sender::new(Wish::Run),
            life: watch::Sender::new(Life::Running),
            exit_patience,
            stderr: Mutex::default(),
            junk: Mutex::default(),
        }
    }

    pub(super) fn add_stderr(&self, line: String) {
        tracing::trace!(target: "toolwire::child", command = self.command, line, "standard error");
        lock(&self.stderr).add(line);
    }

    pub(super) fn stderr_tail(&self) -> Vec<String> {
        lock(&self.stderr).lines()
    }

    pub(super) fn report(&self, ending: Ending) -> ExitReport {
        ExitReport { command: self.command.clone(), ending, stderr_tail: self.stderr_tail() }
    }

    pub(super) fn add_junk(&self, line: &[u8]) {
        tracing::debug!(target: "toolwire::child", command = self.command, "skipped a line that is not a message");
        lock(&self.junk).add(line);
    }

    /// Nothing is left of the child, as far as we will ever know.
    pub(super) fn gone(&self) {
        let unknown = self.report(Ending::Unknown);
        self.life.send_modify(|life| *life = Life::Gone(life.report().cloned().unwrap_or(unknown)));
    }

    pub(super) fn ask_to_close(&self) {
        self.input.close();
        self.ask(Wish::Close);
    }

    /// Wishes only become stronger.
    fn ask(&self, wish: Wish) {
        self.wish.send_if_modified(|current| {
            let stronger = wish > *current;
            if stronger {
                *current = wish;
            }
            stronger
        });
    }
}

/// Ties a child to the connection: when it is dropped and nobody has asked for an orderly end, the child dies.
#[derive(Debug)]
pub(super) struct KillOnDrop(Arc<Shared>);

impl KillOnDrop {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if *self.0.wish.borrow() == Wish::Run {
            // Here and now, because the runtime may never run another task.
            self.0.group.kill();
            self.0.ask(Wish::Kill);
        }
    }
}

/// A handle to a child process; clones are cheap.
///
/// It does not keep the child alive.
#[derive(Clone, Debug)]
pub struct ChildHandle(Arc<Shared>);

impl ChildHandle {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// The command with its arguments, as it was started.
    pub fn command(&self) -> &str {
        &self.0.command
    }

    /// The number of the process group that the child leads, on systems that have groups.
    ///
    /// Once nothing is left of the group, the number may belong to somebody else.
    pub fn group_id(&self) -> Option<u32> {
        self.0.group.id()
    }

    /// How the process ended, if it has.
    pub fn exited(&self) -> Option<ExitReport> {
        self.0.life.borrow().report().cloned()
    }

    /// Waits until the process has ended.
    pub async fn wait(&self) -> ExitReport {
        self.reached(|life| life.report().is_some()).await
    }

    /// Closes standard input, then sends TERM and then KILL to the process group if it takes too long.
    ///
    /// Returns when nothing is left of the group. Messages that were not flushed are lost.
    pub async fn shutdown(&self) -> ExitReport {
        self.0.ask_to_close();
        self.reached(|life| matches!(life, Life::Gone(_))).await
    }

    /// The last lines on standard error so far.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.0.stderr_tail()
    }

    /// The lines on standard output that were skipped because they could not be messages.
    pub fn junk(&self) -> Junk {
        lock(&self.0.junk).clone()
    }

    async fn reached(&self, stage: impl FnMut(&Life) -> bool) -> ExitReport {
        let mut life = self.0.life.subscribe();
        let reached = life.wait_for(stage).await.ok().and_then(|life| life.report().cloned());
        // The sender is ours, so the wait cannot fail, and the stages that are asked for have a report.
        reached.unwrap_or_else(|| self.0.report(Ending::Unknown))
    }

    async fn explain(&self) -> String {
        let mut text = match tokio::time::timeout(self.0.exit_patience, self.wait()).await {
            Ok(report) => report.to_string(),
            Err(_) => self.still_running(),
        };
        let junk = self.junk();
        if junk.count > 0 {
            let were = match junk.count {
                1 => "1 line on standard output was not a message:".to_owned(),
                count => format!("{count} lines on standard output were not messages, the last:"),
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{were}");
            for line in &junk.lines {
                let _ = write!(text, "\n  {line}");
            }
        }
        text
    }

    fn still_running(&self) -> String {
        let mut text = format!("`{}` closed its standard output but still runs", self.0.command);
        // Writing to a string cannot fail.
        let _ = write_stderr(&mut text, &self.stderr_tail());
        text
    }
}

impl Diagnostics for ChildHandle {
    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        let handle = self.clone();
        Box::pin(async move { Some(handle.explain().await) })
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        let handle = self.clone();
        Box::pin(async move {
            Self::shutdown(&handle).await;
        })
    }
}
