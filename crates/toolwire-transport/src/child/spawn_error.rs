//! Why a child could not be started, with what a person needs to put it right.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A command that could not be started.
#[derive(Debug)]
pub struct SpawnError {
    command: String,
    cause: Cause,
    source: io::Error,
}

#[derive(Debug)]
enum Cause {
    NoDirectory(PathBuf),
    NoInterpreter,
    NoSuchFile,
    NotOnPath(OsString),
    Other,
}

impl SpawnError {
    pub(super) fn new(
        command: String,
        program: &Path,
        directory: Option<&Path>,
        path: OsString,
        source: io::Error,
    ) -> Self {
        let cause = Cause::find(program, directory, path, &source);
        Self { command, cause, source }
    }
}

impl Cause {
    /// "Not found" can be about the directory, the interpreter of a script or the program.
    fn find(program: &Path, directory: Option<&Path>, path: OsString, source: &io::Error) -> Self {
        if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
            return Self::NoDirectory(directory.to_owned());
        }
        if source.kind() != io::ErrorKind::NotFound {
            return Self::Other;
        }
        if program.components().count() < 2 {
            return Self::NotOnPath(path);
        }
        let program = directory.unwrap_or_else(|| Path::new("")).join(program);
        if program.exists() { Self::NoInterpreter } else { Self::NoSuchFile }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start `{}`: ", self.command)?;
        match &self.cause {
            Cause::NoDirectory(directory) => {
                write!(f, "its working directory {} does not exist", directory.display())
            }
            Cause::NoInterpreter => f.write_str(
                "the file is there, but the interpreter named in its first line is not, or it is built for \
                 another system",
            ),
            Cause::NoSuchFile => f.write_str("there is no such file; hint: check the path"),
            Cause::NotOnPath(path) => {
                write!(f, "not found in PATH={}; hint: install it, or give its full path", path.display())?;
                if cfg!(windows) {
                    f.write_str(" (scripts need their extension, as in npx.cmd)")?;
                }
                Ok(())
            }
            Cause::Other => self.source.fmt(f),
        }
    }
}

/// It has no source: what the system says is in its text already, or explained by it.
impl Error for SpawnError {}

impl From<SpawnError> for io::Error {
    fn from(error: SpawnError) -> Self {
        Self::new(error.source.kind(), error)
    }
}
