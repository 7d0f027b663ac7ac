//! How a child ended, in a form that a person understands.

use std::fmt;
use std::process::ExitStatus;

/// How a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It returned this exit code.
    Code(i32),
    /// It was ended by the signal with this number.
    Signal(i32),
    /// The system did not tell.
    Unknown,
}

/// What is known about a child process that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitReport {
    /// The command with its arguments, as it was started.
    pub command: String,
    /// The exit code or signal.
    pub ending: Ending,
    /// The last lines that it wrote to standard error.
    pub stderr_tail: Vec<String>,
}

impl Ending {
    pub(super) fn of(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(signal);
        }
        status.code().map_or(Self::Unknown, Self::Code)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was ended by signal {signal} ({name})"),
                None => write!(f, "was ended by signal {signal}"),
            },
            Self::Unknown => f.write_str("ended, the system does not say how"),
        }
    }
}

/// The signals that servers die of and that have the same number on every Unix.
const fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.command, self.ending)?;
        write_stderr(f, &self.stderr_tail)
    }
}

/// Adds the last lines of standard error to a sentence about a child.
pub(super) fn write_stderr(f: &mut impl fmt::Write, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return f.write_str("; it wrote nothing to standard error");
    }
    f.write_str("; its last lines on standard error:")?;
    lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ending: Ending, stderr_tail: &[&str]) -> String {
        let stderr_tail = stderr_tail.iter().map(ToString::to_string).collect();
        ExitReport { command: "npx server --fast".into(), ending, stderr_tail }.to_string()
    }

    #[test]
    fn the_report_reads_well() {
        assert_eq!(
            report(Ending::Code(1), &["no such module", "bye"]),
            "`npx server --fast` ended with exit code 1; its last lines on standard error:\n  no such module\n  bye"
        );
        assert_eq!(
            report(Ending::Signal(9), &[]),
            "`npx server --fast` was ended by signal 9 (SIGKILL); it wrote nothing to standard error"
        );
        assert!(report(Ending::Signal(64), &[]).contains("by signal 64;"));
        assert!(report(Ending::Unknown, &[]).contains("does not say how"));
    }
}
