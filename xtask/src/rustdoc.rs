//! The documentation of the crates: as pages, which have to build without a warning, and as data, which the step `api`
//! compares.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::process::Program;
use crate::programs::SHARED;
use crate::steps::Outcome;
use crate::workspace::{Workspace, root};

/// Generous even for a first build on a slow machine.
const LIMIT: Duration = Duration::from_mins(45);

/// Set for the processes that cargo starts as rustdoc, and that are this program.
const AS_DATA: &str = "XTASK_RUSTDOC_AS_DATA";

/// Builds the pages; a warning is an error.
pub(crate) fn pages() -> Outcome {
    let mut build = documentation();
    for program in Workspace::read(&root())?.packages.iter().flat_map(|package| &package.programs) {
        if program.documented {
            build = build.args(["--bin", &program.name]);
        }
    }
    Ok(build.env("RUSTDOCFLAGS", "-D warnings").run()?)
}

/// Writes the documentation as data, and returns the folder with a file for each library.
///
/// The form is not stable, so rustdoc writes it only with `RUSTC_BOOTSTRAP`. Cargo must not see that variable: build
/// scripts ask for it, and everything would be built anew. So cargo runs this program, which runs rustdoc.
pub(crate) fn data() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    // Cargo takes documentation with other flags as another one: what it finds built is data, not pages.
    documentation()
        .env("RUSTDOCFLAGS", "--cap-lints allow")
        .env("RUSTDOC", &this.to_string_lossy())
        .env(AS_DATA, "1")
        .run()?;
    Ok(Workspace::read(&root())?.target.join("doc"))
}

fn documentation() -> Program {
    // The example is there for the features it brings (see `programs`): without it, half of the dependencies would
    // be checked again. With it programs have to be named, because `--bins` would not leave out any.
    let build = Program::cargo(&root(), LIMIT).args(["doc"]).args(SHARED);
    build.args(["--no-deps", "--lib", "--example", "booking"])
}

/// Runs rustdoc with the arguments of this process if cargo has started it for [`data`].
pub(crate) fn stand_in() -> Option<ExitCode> {
    std::env::var_os(AS_DATA)?;
    let status = Command::new("rustdoc")
        .args(std::env::args_os().skip(1))
        .args(["-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .status();
    Some(if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
