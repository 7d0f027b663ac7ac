//! Pages in a real browser against our server: refused by default, and served when their origin is allowed.
//!
//! The programs are in `browser/`, which also says what they do. The browser is Debian's Chromium, which is
//! installed when there is none; everything else is installed, pinned, under the target folder.

use std::path::PathBuf;
use std::time::Duration;

use crate::debian;
use crate::interop::{install_node, judge};
use crate::output::say;
use crate::process::Program;
use crate::programs;
use crate::steps::Outcome;
use crate::workspace::{Workspace, root};

/// The checks take about ten seconds; they give up by themselves after 150.
const RUN_LIMIT: Duration = Duration::from_mins(3);

/// Installs what drives the browser, and returns where it is.
fn install() -> Result<PathBuf, String> {
    let place = Workspace::read(&root())?.target.join("browser");
    install_node(&root().join("browser"), &place)?;
    Ok(place)
}

/// Installs the browser as well.
pub(crate) fn prepare() -> Result<(), String> {
    install()?;
    debian::prepare("chromium")
}

pub(crate) fn run() -> Outcome {
    let place = install()?;
    let browser = debian::program("chromium")?;
    let server = programs::build()?.join("examples/interop_server");
    let pages = Program::new("node", RUN_LIMIT).args([&place.join("run.mjs"), &browser, &server]);
    let checks = judge(pages)?;
    say!("ok    pages in {}: {checks} checks", browser.display());
    Ok(())
}
