//! Pages in a real browser against our server: refused by default, and served when their origin is allowed.
//!
//! The programs are in `browser/`, which also says what they do. The browser is Debian's Chromium, which is
//! installed when there is none; everything else is installed, pinned, under the target folder.

use std::time::Duration;

use crate::debian;
use crate::interop::{build, install_node, judge};
use crate::process::Program;
use crate::workspace::{Workspace, root};

/// The checks take about ten seconds; they give up by themselves after 150.
const RUN_LIMIT: Duration = Duration::from_mins(3);

pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let target = Workspace::read(&root)?.target;
    let place = target.join("browser");
    install_node(&root.join("browser"), &place)?;
    build(&root, &["--example", "interop_server"])?;
    let browser = debian::program("chromium")?;
    let server = target.join("debug/examples/interop_server");
    let pages = Program::new("node", RUN_LIMIT).args([&place.join("run.mjs"), &browser, &server]);
    let checks = judge(pages)?;
    println!("ok    pages in {}: {checks} checks", browser.display());
    Ok(())
}
