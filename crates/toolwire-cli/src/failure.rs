//! How the program ends: exit codes, and errors for people.
//!
//! 0 is success, 1 a failure, 2 a command line that makes no sense, which clap reports by itself. An output
//! that nobody reads any more is a success: whoever closed it has seen enough.

use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Error, Result};
use owo_colors::OwoColorize;

/// An error with an advice: what to do about it.
#[derive(Debug)]
struct Hinted {
    error: Error,
    hint: &'static str,
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl std::error::Error for Hinted {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.chain().nth(1)
    }
}

/// Adds an advice to the error of a result.
pub(crate) trait Hint<T> {
    /// Says what to do when this fails. The outermost hint is the one that is shown.
    fn hint(self, hint: &'static str) -> Result<T>;
}

impl<T, E: Into<Error>> Hint<T> for Result<T, E> {
    fn hint(self, hint: &'static str) -> Result<T> {
        self.map_err(|error| Error::new(Hinted { error: error.into(), hint }))
    }
}

/// The exit code for the outcome of a command, after its error has been told on standard error.
pub(crate) fn exit_code(outcome: Result<()>) -> ExitCode {
    match outcome {
        Err(error) if !is_broken_pipe(&error) => {
            // When standard error is gone as well, there is nobody left to tell.
            let _ = tell(&mut anstream::stderr(), &error);
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    if let Some(Hinted { error, .. }) = error.downcast_ref() {
        return is_broken_pipe(error);
    }
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(broken)
}

fn tell(to: &mut impl Write, error: &Error) -> io::Result<()> {
    writeln!(to, "{} {error:#}", "error:".red().bold())?;
    if let Some(Hinted { hint, .. }) = error.downcast_ref() {
        writeln!(to, "\n{} {hint}", "hint:".cyan().bold())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    fn told(error: &Error) -> String {
        let mut text = anstream::StripStream::new(Vec::new());
        tell(&mut text, error).unwrap();
        String::from_utf8(text.into_inner()).unwrap()
    }

    #[test]
    fn an_error_tells_its_causes_and_then_what_to_do() {
        let error = Err::<(), _>(io::Error::other("no such thing"))
            .context("the tour stopped")
            .hint("look under the sofa")
            .unwrap_err();
        assert_eq!(told(&error), "error: the tour stopped: no such thing\n\nhint: look under the sofa\n");
        assert_eq!(told(&anyhow::anyhow!("lost")), "error: lost\n");
    }

    #[test]
    fn only_a_reader_that_left_is_no_failure() {
        let broken = || Error::new(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_broken_pipe(&broken()));
        assert!(is_broken_pipe(&broken().context("while printing")));
        assert!(is_broken_pipe(&Err::<(), _>(broken()).hint("x").unwrap_err()));
        assert!(is_broken_pipe(&Err::<(), _>(broken().context("while printing")).hint("x").unwrap_err()));
        assert!(!is_broken_pipe(&Error::new(io::Error::other("disk on fire"))));
    }
}
