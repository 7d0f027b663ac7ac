//! A program of this name inside of another: how deep that may go.
//!
//! A server can be configured whose command is this very program. If it connected to all servers in its turn, it would
//! start itself again, and so on. So every child learns how deep it is, and what is too deep does nothing.

use std::io;

use crate::failure::{Code, Failure, Result};

/// The variable that says how many programs of this name are above one.
pub(crate) const VARIABLE: &str = "TOOLWIRE_DEPTH";

/// How many programs of this name may be above one: a server that is one, behind a gateway that is one.
const MAX_DEPTH: u32 = 2;

/// How many programs of this name are above this one. What cannot be read is taken for too many.
fn depth() -> u32 {
    match std::env::var_os(VARIABLE) {
        None => 0,
        Some(text) => text.to_str().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX),
    }
}

/// What the variable is for those that this program starts.
pub(crate) fn below() -> String {
    depth().saturating_add(1).to_string()
}

/// Refuses to do anything when this is too deep.
pub(crate) fn check() -> Result<()> {
    if depth() <= MAX_DEPTH {
        return Ok(());
    }
    let text =
        format!("this toolwire was started by another, and that by another, more than {MAX_DEPTH} deep");
    Err(Failure::new(Code::TooDeep, text).hint(HINT))
}

/// Refuses to connect to everything inside of another program of this name.
pub(crate) fn check_all() -> Result<()> {
    if depth() == 0 {
        return Ok(());
    }
    let text = "this toolwire was started by another, and does not connect to all servers in its turn";
    Err(Failure::new(Code::TooDeep, text).hint(HINT))
}

const HINT: &str = "is toolwire itself configured as a server? toolwire demo --stdio is one; \
                    if it is meant: env -u TOOLWIRE_DEPTH toolwire …";

/// Whether somebody has started this program who speaks to it, as a host does with its servers, and is no shell.
pub(crate) fn is_child() -> bool {
    depth() > 0 || (is_pipe(io::stdin()) && is_pipe(io::stdout()))
}

#[cfg(unix)]
fn is_pipe(stream: impl std::os::fd::AsFd) -> bool {
    use std::os::unix::fs::FileTypeExt;

    let Ok(stream) = stream.as_fd().try_clone_to_owned() else { return false };
    let kind = std::fs::File::from(stream).metadata().map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Elsewhere only the variable tells.
#[cfg(not(unix))]
fn is_pipe<T>(_: T) -> bool {
    false
}
