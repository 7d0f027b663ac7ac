//! How the program ends: exit codes, and errors for people and for scripts.
//!
//! 0 is success; the others are in [`Code`]. An output that nobody reads any more is a success: whoever closed
//! it has seen enough.

mod client;
mod code;

use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::auth::client::AuthError;

pub(crate) use code::Code;

use crate::{redact, session::Signal, terminal};

/// What the commands return.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A failed command: what happened, by a stable code and in words, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
    /// What scripts may want to know besides, such as the error object of a server.
    data: Option<Value>,
    /// Why there is no credential, if that is what went wrong.
    auth: Option<Box<AuthError>>,
    /// It has been told already, as a command does that prints what it found.
    told: bool,
    /// The reader of standard output has left.
    broken_pipe: bool,
    /// What it was ended by.
    signal: Option<Signal>,
}

impl Failure {
    /// A failure with a sentence that says what happened, and where.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let message = redact::sentence(&message.into());
        Self {
            code,
            message,
            hint: None,
            data: None,
            auth: None,
            told: false,
            broken_pipe: false,
            signal: None,
        }
    }

    /// A failure of which everything has been printed: only the exit code is left.
    pub(crate) fn told(code: Code) -> Self {
        Self { told: true, ..Self::new(code, "") }
    }

    /// Says what to do next; the outermost hint is the one that is shown.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(redact::sentence(&hint.into()));
        self
    }

    /// Says where it happened, in front of what happened.
    pub(crate) fn context(mut self, place: impl fmt::Display) -> Self {
        self.message = redact::sentence(&format!("{place}: {}", self.message));
        self
    }

    /// Says more behind what happened.
    pub(crate) fn and(mut self, more: impl fmt::Display) -> Self {
        self.message = redact::sentence(&format!("{}{more}", self.message));
        self
    }

    /// Says which signal has ended it.
    pub(crate) const fn signal(mut self, signal: Signal) -> Self {
        self.signal = Some(signal);
        self
    }

    /// What the program ends with.
    fn exit_code(&self) -> u8 {
        self.signal.map_or_else(|| self.code.exit(), Signal::exit)
    }

    /// Adds what scripts may want to know besides.
    pub(crate) fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Says why there is no credential.
    pub(crate) fn unauthorized(mut self, why: AuthError) -> Self {
        self.auth = Some(Box::new(why));
        self
    }

    /// Why there is no credential, if that is what went wrong.
    pub(crate) fn auth(&self) -> Option<&AuthError> {
        self.auth.as_deref()
    }

    /// What went wrong.
    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    /// What happened, in words.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do next.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Tells it on standard error, and gives the exit code.
    pub(crate) fn exit(&self, json: bool) -> ExitCode {
        if self.broken_pipe {
            return ExitCode::SUCCESS;
        }
        if !self.told {
            // When standard error is gone as well, there is nobody left to tell.
            let _ = self.tell(&mut anstream::stderr(), json);
        }
        ExitCode::from(self.exit_code())
    }

    fn tell(&self, to: &mut impl Write, json: bool) -> io::Result<()> {
        if json {
            return writeln!(to, "{}", terminal::json(&self.to_json().to_string()));
        }
        let code = self.code.name();
        let message = terminal::plain(&self.message);
        writeln!(to, "{}{} {message}", "error".red().bold(), format!("[{code}]:").red().bold())?;
        if let Some(hint) = &self.hint {
            writeln!(to, "{} {}", " hint:".cyan().bold(), terminal::plain(hint))?;
        }
        // Everybody knows what a usage error is, and that it was Ctrl-C.
        if !matches!(self.code, Code::Other | Code::Usage | Code::Interrupted) {
            writeln!(to, "{} toolwire explain {code}", " more:".dimmed())?;
        }
        Ok(())
    }

    /// The error as scripts get it.
    pub(crate) fn to_json(&self) -> Value {
        let mut error =
            json!({ "code": self.code.name(), "exit": self.exit_code(), "message": self.message });
        if let Some(hint) = &self.hint {
            // Lines below each other are a layout for people.
            error["hint"] = json!(hint.lines().map(str::trim).collect::<Vec<_>>().join("; "));
        }
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({ "error": error })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::new(Code::Io, error.to_string()) }
    }
}

/// Adds to the failure of a result.
pub(crate) trait Explain<T> {
    /// Says what to do when this fails.
    fn hint(self, hint: impl Into<String>) -> Result<T>;

    /// Says where it happened.
    fn context(self, place: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Failure>> Explain<T> for std::result::Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> Result<T> {
        self.map_err(|error| error.into().hint(hint))
    }

    fn context(self, place: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(failure: &Failure, json: bool) -> String {
        let mut text = anstream::StripStream::new(Vec::new());
        failure.tell(&mut text, json).unwrap();
        String::from_utf8(text.into_inner()).unwrap()
    }

    #[test]
    fn an_error_tells_where_and_what_and_what_to_do() {
        let failure = Err::<(), _>(io::Error::other("no such thing"))
            .context("the sofa")
            .hint("look under it")
            .unwrap_err();
        let expected =
            "error[io]: the sofa: no such thing\n hint: look under it\n more: toolwire explain io\n";
        assert_eq!(told(&failure, false), expected);
        let expected =
            r#"{"error":{"code":"io","exit":1,"hint":"look under it","message":"the sofa: no such thing"}}"#;
        assert_eq!(told(&failure, true), format!("{expected}\n"));
    }

    #[test]
    fn scripts_get_a_hint_of_several_lines_on_one() {
        let failure = Failure::new(Code::Io, "x").hint("go on: a\n       end it: b");
        assert_eq!(failure.to_json()["error"]["hint"], "go on: a; end it: b");
        assert!(told(&failure, false).contains("go on: a\n       end it: b"));
    }

    #[test]
    fn only_a_reader_that_left_is_no_failure() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::from(broken()).hint("x").broken_pipe);
        assert!(Failure::from(broken()).context("while printing").broken_pipe);
        assert!(!Failure::from(io::Error::other("disk on fire")).broken_pipe);
    }
}
