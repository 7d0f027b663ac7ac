//! Our own programs, as the steps that run them need them.
//!
//! All steps build with the same features and the same profile as the tests do: cargo then finds every crate built
//! already. A program built for itself would have other features in its dependencies, and so would be built from
//! the ground up.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::process::Program;
use crate::workspace::{Workspace, root};

/// What selects the one set of features that everything in `target/debug` is built with. It wants an example or a
/// test in the same command: only then do the features of dev-dependencies count.
pub(crate) const SHARED: [&str; 3] = ["--locked", "--workspace", "--all-features"];

/// A first build may be slow.
const LIMIT: Duration = Duration::from_mins(45);

/// Builds every program and every example of ours, once per run, and says where they are.
pub(crate) fn build() -> Result<PathBuf, String> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(place) = &*built {
        return Ok(place.clone());
    }
    let workspace = Workspace::read(&root())?;
    let mut command = Program::cargo(&root(), LIMIT).args(["build"]).args(SHARED).args(["--examples"]);
    // Without the program that is running: cargo would put another build of it in its place. Excluding its crate
    // would take the features that it asks of its dependencies from the others.
    for program in workspace.packages.iter().filter(|it| it.name != "xtask").flat_map(|it| &it.programs) {
        command = command.args(["--bin", &program.name]);
    }
    command.run()?;
    let place = workspace.target.join("debug");
    *built = Some(place.clone());
    Ok(place)
}
