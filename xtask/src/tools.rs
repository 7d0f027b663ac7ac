//! Programs of other makers that cargo can bring: pinned, installed once below `target/tools`.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::process::Program;
use crate::workspace::{Workspace, root};

/// Building one may be slow.
const LIMIT: Duration = Duration::from_mins(45);

/// A program that `cargo install` can build.
#[derive(Debug)]
pub(crate) struct Tool<'a> {
    pub(crate) package: &'a str,
    pub(crate) program: &'a str,
    pub(crate) version: &'a str,
    /// More options for `cargo install`.
    pub(crate) options: &'a [&'a str],
}

/// Looks at the crates in use: licences, bans, sources, advisories.
pub(crate) const DENY: Tool<'_> =
    Tool { package: "cargo-deny", program: "cargo-deny", version: "0.20.2", options: &[] };

/// Builds and runs fuzz targets.
pub(crate) const FUZZ: Tool<'_> =
    Tool { package: "cargo-fuzz", program: "cargo-fuzz", version: "0.13.2", options: &[] };

/// Changes the code in small ways, to find out whether a test notices.
pub(crate) const MUTANTS: Tool<'_> =
    Tool { package: "cargo-mutants", program: "cargo-mutants", version: "27.1.0", options: &[] };

impl Tool<'_> {
    /// Where the program is, once it is installed.
    pub(crate) fn install(&self) -> Result<PathBuf, String> {
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _turn = INSTALLING.lock();
        let place = Workspace::read(&root())?.target.join("tools");
        let place = place.join(format!("{}-{}", self.package, self.version));
        let program = place.join("bin").join(format!("{}{}", self.program, std::env::consts::EXE_SUFFIX));
        if program.exists() {
            return Ok(program);
        }
        let exact = format!("={}", self.version);
        Program::cargo(&root(), LIMIT)
            .args(["install", "--quiet", "--locked", self.package, "--version", &exact])
            // Building these takes longer than they ever run, so they are not optimised.
            .args(["--profile", "dev", "--no-track"])
            .args(self.options)
            .args(["--root".as_ref(), place.as_os_str()])
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0")
            .run()?;
        Ok(program)
    }
}
