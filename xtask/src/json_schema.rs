//! The official test suite of JSON Schema, and our validator's verdicts on it.
//!
//! The suite has no package of its own, but the source archive of a Python implementation contains it. The test is a
//! target that the ordinary run leaves out, because without the suite it could only fail or say nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::interop::install_once;
use crate::process::Program;
use crate::programs::SHARED;
use crate::steps::Outcome;
use crate::workspace::{Workspace, root};

/// The target of the test.
pub(crate) const TARGET: [&str; 2] = ["--test", "json_schema"];

/// The variable in which the test finds the suite.
const VARIABLE: &str = "TOOLWIRE_JSON_SCHEMA";

/// The release that the suite is taken from, pinned with its digest.
const PINS: &str = "conformance/json-schema.txt";

/// Downloads may be slow.
const DOWNLOAD_LIMIT: Duration = Duration::from_mins(15);
/// Enough for a first build; the test takes less than a second.
const TEST_LIMIT: Duration = Duration::from_mins(45);

/// Downloads the suite.
pub(crate) fn prepare() -> Result<(), String> {
    suite().map(|_| ())
}

/// Compares the verdicts.
pub(crate) fn run() -> Outcome {
    let test = Program::cargo(&root(), TEST_LIMIT).args(["test"]).args(SHARED).args(TARGET);
    Ok(test.env(VARIABLE, &suite()?.display().to_string()).run()?)
}

/// Returns the folder of the suite, which is downloaded once for the same pins.
fn suite() -> Result<PathBuf, String> {
    let place = Workspace::read(&root())?.target.join("json-schema");
    let pins = root().join(PINS);
    install_once(&pins, &place.join("installed"), || download(&pins, &place))?;
    Ok(place.join("archive/json"))
}

/// Downloads and unpacks the archive.
fn download(pins: &Path, place: &Path) -> Result<(), String> {
    let archive = place.join("archive");
    match std::fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", place.display()));
        }
        _ => {}
    }
    std::fs::create_dir_all(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    let options = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let source = ["--no-binary", ":all:", "--dest", "download", "--requirement"];
    let pip = Program::new("python3", DOWNLOAD_LIMIT).args(options).args(source);
    pip.args([pins]).directory(place).run()?;
    let unpack = ["-c", UNPACK, "download", "archive"];
    Program::new("python3", DOWNLOAD_LIMIT).args(unpack).directory(place).run()
}

/// Unpacks the one archive in a folder, without the folder that all its files are in.
const UNPACK: &str = "
import pathlib, sys, tarfile
(archive,) = pathlib.Path(sys.argv[1]).glob('*.tar.gz')
with tarfile.open(archive) as files:
    for member in files.getmembers():
        _, _, member.name = member.name.partition('/')
        if member.isfile() and member.name.startswith('json/'):
            files.extract(member, sys.argv[2])
";
