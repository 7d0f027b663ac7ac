//! The terminal tests: tmux, installed when it is missing, and the tests that need it.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::Program;
use crate::workspace::root;

/// Enough for a slow mirror.
const INSTALL_LIMIT: Duration = Duration::from_mins(10);

/// Enough for a first build; the tests themselves take seconds.
const TEST_LIMIT: Duration = Duration::from_mins(30);

/// Makes sure of tmux, then runs the tests.
pub(crate) fn run() -> Result<(), String> {
    if !has_tmux() {
        install()?;
    }
    Program::cargo(&root(), TEST_LIMIT).args(["test", "-p", "toolwire-cli", "--test", "terminal"]).run()
}

fn has_tmux() -> bool {
    let mut tmux = Command::new("tmux");
    tmux.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    tmux.status().is_ok_and(|status| status.success())
}

/// Debian's package. The lists of packages may be missing or old, so they are fetched first.
fn install() -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        Program::new("apt-get", INSTALL_LIMIT).args(arguments).env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    let installed =
        apt(&["update", "-q"]).and_then(|()| apt(&["install", "-qy", "--no-install-recommends", "tmux"]));
    installed
        .map_err(|error| format!("tmux is needed and could not be installed; please install it\n{error}"))
}
