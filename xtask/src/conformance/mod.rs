//! The official conformance suite against our fixtures: one server process for every leg, and a client for
//! every scenario.
//!
//! The suite is pinned in `conformance/` and installed under the target folder, where its results go as well.
//! A scenario passes when at least one of its checks succeeded and none failed or warned, whatever the suite
//! itself makes of it. What does not pass must be in `conformance/missing.txt`, and nothing else may be.

mod legs;
mod missing;
mod report;
mod scenarios;
mod suite;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::interop::install_node;
use crate::process::Program;
use crate::programs;
use crate::steps::Outcome;
use crate::workspace::{Workspace, root};
use suite::Suite;

/// How long the server may take to be ready. It lives as long as the legs that call it.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Installs the suite.
pub(crate) fn prepare() -> Result<(), String> {
    install_node(&root().join("conformance"), &place()?)
}

fn place() -> Result<PathBuf, String> {
    Ok(Workspace::read(&root())?.target.join("conformance"))
}

pub(crate) fn run() -> Outcome {
    prepare()?;
    let place = place()?;
    let programs = programs::build()?;
    let results = place.join("results");
    forget(&results)?;

    let start = Instant::now();
    let server = Program::new(programs.join("conformance-server"), START_LIMIT).args(["--port", "0"]);
    let server = server.serve()?;
    let suite = Suite {
        place,
        results,
        url: server.announced().to_owned(),
        client: programs.join("conformance-client"),
    };
    let results = legs::run(&suite)?;
    drop(server);
    results.print(start.elapsed());
    Ok(results.compare(&missing::read(&root().join("conformance/missing.txt"))?)?)
}

/// Results of an earlier run must not be taken for those of this one.
fn forget(results: &Path) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("{}: {error}", results.display());
    if results.exists() {
        fs::remove_dir_all(results).map_err(explain)?;
    }
    fs::create_dir_all(results).map_err(explain)
}
