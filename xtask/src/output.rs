//! Where the words of a step go: to the terminal, or to a log while another step has the terminal.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

thread_local! {
    /// The log of the step that runs on this thread, if it has one.
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Prints a line as `println!` does, to wherever this thread's words go.
macro_rules! say {
    ($($word:tt)*) => { $crate::output::line(&format!($($word)*)) };
}
pub(crate) use say;

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes one line.
#[expect(clippy::print_stdout, reason = "a command line program talks to its user")]
pub(crate) fn line(text: &str) {
    LOG.with_borrow_mut(|log| match log {
        // A log that cannot be written to is found out by whoever wants to show it.
        Some(log) => drop(writeln!(log, "{text}")),
        None => println!("{text}"),
    });
}

/// Does `work` with this thread's words, and those of the programs it runs, going to `log`.
pub(crate) fn logged<T>(log: File, work: impl FnOnce() -> T) -> T {
    LOG.set(Some(log));
    let done = work();
    LOG.set(None);
    done
}

/// Returns whether this thread's words go to a log, because another step has the terminal.
pub(crate) fn is_logged() -> bool {
    LOG.with_borrow(Option::is_some)
}

/// Does several things at once, with the words of all going where this thread's go.
pub(crate) fn at_once<T: Sync, R: Send>(
    things: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<thread::Result<R>> {
    thread::scope(|scope| {
        let work = &work;
        let start = |thing| {
            let log = log();
            scope.spawn(move || match log {
                Some(log) => logged(log, || work(thing)),
                None => work(thing),
            })
        };
        let running: Vec<_> = things.iter().map(start).collect();
        running.into_iter().map(thread::ScopedJoinHandle::join).collect()
    })
}

fn log() -> Option<File> {
    LOG.with_borrow(|log| log.as_ref().and_then(|log| log.try_clone().ok()))
}

/// Sends what a program says to this thread's log, if there is one: all of it, or only its errors.
pub(crate) fn redirect(command: &mut Command, all: bool) {
    if let Some(log) = log() {
        if all && let Ok(copy) = log.try_clone() {
            command.stdout(Stdio::from(copy));
        }
        command.stderr(Stdio::from(log));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::Duration;

    use super::{at_once, logged};
    use crate::process::Program;

    #[test]
    fn threads_write_to_the_log_of_the_one_that_starts_them() {
        let path = std::env::temp_dir().join(format!("xtask-at-once-{}", std::process::id()));
        let done = logged(File::create(&path).unwrap(), || {
            at_once(&[1, 2, 3], |number| {
                say!("{number}");
                number * 2
            })
        });
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(done.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [2, 4, 6]);
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn words_of_a_step_and_of_its_programs_go_to_its_log_in_order() {
        let path = std::env::temp_dir().join(format!("xtask-output-{}", std::process::id()));
        let outcome = logged(File::create(&path).unwrap(), || {
            say!("first {}", 1);
            Program::new("sh", Duration::from_mins(1)).args(["-c", "echo out; echo err >&2"]).run()
        });
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((outcome, text.as_str()), (Ok(()), "first 1\n$ sh -c echo out; echo err >&2\nout\nerr\n"));
    }
}
