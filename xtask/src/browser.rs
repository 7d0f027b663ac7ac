//! Pages in a real browser against our server: refused by default, and served when their origin is allowed.
//!
//! The programs are in `browser/`, which also says what they do. The browser is Debian's Chromium; everything else is
//! installed, pinned, under the target folder.

use std::path::PathBuf;
use std::time::Duration;

use crate::debian::{self, Package};
use crate::interop::{install_node, judge};
use crate::output::say;
use crate::process::Program;
use crate::programs;
use crate::steps::{Outcome, Stop};
use crate::workspace::{Workspace, root};

/// The checks take about ten seconds; they give up by themselves after 150.
const RUN_LIMIT: Duration = Duration::from_mins(3);

pub(crate) const CHROMIUM: Package = Package { name: "chromium", find: || debian::in_path("chromium") };

/// Installs what drives the browser, and returns where it is.
fn install() -> Result<PathBuf, String> {
    let place = Workspace::read(&root())?.target.join("browser");
    install_node(&root().join("browser"), &place)?;
    Ok(place)
}

pub(crate) fn prepare() -> Result<(), String> {
    CHROMIUM.require().map_err(Stop::into_reason)?;
    install().map(drop)
}

pub(crate) fn run() -> Outcome {
    let browser = CHROMIUM.require()?;
    let place = install().map_err(Stop::skipped)?;
    let server = programs::build()?.join("examples/interop_server");
    let pages = Program::new("node", RUN_LIMIT).args([&place.join("run.mjs"), &browser, &server]);
    let checks = judge(pages)?;
    say!("ok    pages in {}: {checks} checks", browser.display());
    Ok(())
}
