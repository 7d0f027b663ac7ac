//! Why a socket cannot be used, with what a person needs to put it right.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A unix socket that could not be connected to or listened at.
#[derive(Debug)]
pub struct UnixError {
    path: PathBuf,
    cause: Cause,
    source: io::Error,
}

#[derive(Debug)]
enum Cause {
    NoSuchFile,
    NobodyListens,
    NotAllowed,
    Overrun,
    Taken,
    NotASocket,
    NoDirectory,
    MayNotMake,
    Other,
}

impl UnixError {
    pub(super) fn connecting(path: &Path, source: io::Error) -> Self {
        let cause = match source.kind() {
            io::ErrorKind::NotFound => Cause::NoSuchFile,
            io::ErrorKind::ConnectionRefused => Cause::NobodyListens,
            io::ErrorKind::PermissionDenied => Cause::NotAllowed,
            io::ErrorKind::WouldBlock => Cause::Overrun,
            _ => Cause::Other,
        };
        Self { path: path.to_owned(), cause, source }
    }

    pub(super) fn listening(path: &Path, source: io::Error) -> Self {
        let cause = match source.kind() {
            io::ErrorKind::NotFound => Cause::NoDirectory,
            io::ErrorKind::PermissionDenied => Cause::MayNotMake,
            io::ErrorKind::AddrInUse => Cause::Taken,
            _ => Cause::Other,
        };
        Self { path: path.to_owned(), cause, source }
    }

    pub(super) fn taken(path: &Path) -> Self {
        Self { path: path.to_owned(), cause: Cause::Taken, source: io::ErrorKind::AddrInUse.into() }
    }

    pub(super) fn not_a_socket(path: &Path) -> Self {
        Self { path: path.to_owned(), cause: Cause::NotASocket, source: io::ErrorKind::AlreadyExists.into() }
    }
}

impl fmt::Display for UnixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.cause {
            Cause::NoSuchFile => write!(
                f,
                "there is no socket at {path}; hint: start the server first, and check that both use the same path"
            ),
            Cause::NobodyListens => write!(
                f,
                "nobody listens at {path}: the server that made it is gone or just starting; hint: start it again"
            ),
            Cause::NotAllowed => write!(
                f,
                "this user may not connect to {path}; hint: run as the user of the server, or let the server set \
                 another mode for the file"
            ),
            Cause::Overrun => {
                write!(f, "too many clients wait to be accepted at {path}; hint: try again in a moment")
            }
            Cause::Taken => write!(
                f,
                "a server listens at {path} already; hint: stop that one, or choose another path for this one"
            ),
            Cause::NotASocket => write!(
                f,
                "there is a file at {path} that is not a socket, and it is left alone; hint: choose another path, or \
                 remove it yourself"
            ),
            Cause::NoDirectory => {
                write!(f, "the directory of {path} does not exist; hint: make it first")
            }
            Cause::MayNotMake => write!(
                f,
                "this user may not make the socket {path}; hint: choose a directory that this user can write to"
            ),
            Cause::Other => write!(f, "the socket {path} cannot be used: {}", self.source),
        }
    }
}

/// It has no source: what the system says is in its text already, or explained by it.
impl Error for UnixError {}

impl From<UnixError> for io::Error {
    fn from(error: UnixError) -> Self {
        Self::new(error.source.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_is_told_what_would_help() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let path = Path::new("/run/some.sock");
        let text = UnixError::connecting(path, denied()).to_string();
        assert!(text.contains("/run/some.sock") && text.contains("another mode"), "{text}");
        let text = UnixError::listening(path, denied()).to_string();
        assert!(text.contains("can write to"), "{text}");
        let text = UnixError::connecting(path, io::ErrorKind::WouldBlock.into()).to_string();
        assert!(text.contains("try again"), "{text}");
    }
}
