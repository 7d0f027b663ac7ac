//! How a child process is described and started.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::runtime::Handle;
use toolwire_protocol::framing::DEFAULT_MAX_MESSAGE_BYTES;

use super::Child;
use super::group::Group;
use super::handle::{EXIT_PATIENCE, KillOnDrop, Shared};
use super::spawn_error::SpawnError;
use super::stderr::{Listener, follow};
use super::stdin::ChildInput;
use super::supervisor::{Grace, supervise};
use crate::lines::Lines;

/// How long a child may take to end after its standard input was closed.
pub const DEFAULT_STDIN_GRACE: Duration = Duration::from_secs(2);

/// How long a process group may take to end after a TERM signal.
pub const DEFAULT_TERM_GRACE: Duration = Duration::from_secs(2);

/// A child process to be started.
///
/// ```no_run
/// use toolwire_transport::ChildProcess;
///
/// # async fn example() -> std::io::Result<()> {
/// let child = ChildProcess::command("npx")
///     .args(["-y", "some-server"])
///     .env("API_KEY", "secret")
///     .on_stderr(|line| eprintln!("server: {line}"))
///     .spawn()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ChildProcess {
    command: Command,
    listener: Option<Listener>,
    grace: Grace,
    exit_patience: Duration,
    max_message_bytes: usize,
}

impl ChildProcess {
    /// Describes a process that runs `program`, which is looked up in `PATH`.
    pub fn command(program: impl AsRef<OsStr>) -> Self {
        Self {
            command: Command::new(program),
            listener: None,
            grace: Grace { stdin: DEFAULT_STDIN_GRACE, term: DEFAULT_TERM_GRACE },
            exit_patience: EXIT_PATIENCE,
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
        }
    }

    /// Adds an argument. Arguments appear in errors, so secrets belong in the environment.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable, beside those the child inherits.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Sets several environment variables.
    #[must_use]
    pub fn envs(mut self, vars: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        self.command.envs(vars);
        self
    }

    /// Lets the child inherit no environment variables; those set afterwards count.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Calls `listener` with each line on standard error, cut to [`STDERR_LINE_BYTES`](super::STDERR_LINE_BYTES).
    ///
    /// It runs inside a task and must not block.
    #[must_use]
    pub fn on_stderr(mut self, listener: impl FnMut(&str) + Send + 'static) -> Self {
        self.listener = Some(Listener::new(listener));
        self
    }

    /// Sets how long the child may take to end after its input was closed; [`DEFAULT_STDIN_GRACE`] otherwise.
    #[must_use]
    pub const fn stdin_grace(mut self, grace: Duration) -> Self {
        self.grace.stdin = grace;
        self
    }

    /// Sets how long the group may take to end after a TERM signal; [`DEFAULT_TERM_GRACE`] otherwise.
    #[must_use]
    pub const fn term_grace(mut self, grace: Duration) -> Self {
        self.grace.term = grace;
        self
    }

    /// Sets how long to wait for the end of the child after its output has ended, before saying that it still runs; one
    /// second otherwise.
    ///
    /// For tests: it does not matter to a child that ends.
    #[doc(hidden)]
    #[must_use]
    pub const fn exit_patience(mut self, patience: Duration) -> Self {
        self.exit_patience = patience;
        self
    }

    /// Sets the longest message that is received.
    ///
    /// In the worst case the read buffer takes about twice as much memory.
    #[must_use]
    pub const fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Starts the process.
    ///
    /// # Errors
    ///
    /// A [`SpawnError`] inside the [`io::Error`] when the command cannot be started, and a plain one when
    /// this is called outside of a Tokio runtime.
    pub fn spawn(&mut self) -> io::Result<Child> {
        let runtime = Handle::try_current()
            .map_err(|_| io::Error::other("a child process can only be started inside a Tokio runtime"))?;
        let command = self.words();
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        self.command.process_group(0);
        let mut process = self.command.spawn().map_err(|error| self.explain(command.clone(), error))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::Error::other("the child process came without its pipes"));
        };
        let input = ChildInput::new(stdin);
        let shared =
            Arc::new(Shared::new(command, Group::of(process.id()), input.clone(), self.exit_patience));
        let lines = Lines::new(stdout, input).max_message_bytes(self.max_message_bytes);
        let listening = Arc::clone(&shared);
        let listener = self.listener.clone();
        let follower = runtime.spawn(async move { follow(stderr, &listening, listener).await });
        runtime.spawn(supervise(process, Arc::clone(&shared), follower, self.grace));
        Ok(Child { lines, kill_on_drop: Arc::new(KillOnDrop::new(shared)) })
    }

    /// The command as one would type it.
    fn words(&self) -> String {
        let command = self.command.as_std();
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(quoted).collect::<Vec<_>>().join(" ")
    }

    fn explain(&self, words: String, error: io::Error) -> SpawnError {
        let command = self.command.as_std();
        let own = command.get_envs().find(|(key, _)| *key == "PATH").map(|(_, value)| value);
        let path = match own {
            Some(value) => value.map(OsStr::to_owned),
            None => std::env::var_os("PATH"),
        };
        let program = PathBuf::from(command.get_program());
        SpawnError::new(words, &program, command.get_current_dir(), path.unwrap_or_default(), error)
    }
}

fn quoted(word: &OsStr) -> Cow<'_, str> {
    let word = word.to_string_lossy();
    if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'') {
        Cow::Owned(format!("{word:?}"))
    } else {
        word
    }
}
