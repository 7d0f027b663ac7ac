//! Programs that the checks need and cargo cannot bring: from Debian's packages, where they are not there yet.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::process::Program;
use crate::steps::{Outcome, Stop};

/// Downloads may be slow.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);

/// Where a program is. If it is nowhere, the package of the same name is installed, which takes root; where that
/// cannot be, the step that asks is skipped.
pub(crate) fn program(name: &str) -> Result<PathBuf, Stop> {
    if let Some(program) = found(name) {
        return Ok(program);
    }
    install(&[name])?;
    found(name).ok_or_else(|| format!("{name} was installed, but is not in the path").into())
}

/// The same before the steps: what keeps it from being installed is told, and the step that needs it decides.
pub(crate) fn prepare(name: &str) -> Result<(), String> {
    program(name).map(drop).map_err(|stop| stop.reason().to_owned())
}

/// Installs packages, or skips the step that asks.
pub(crate) fn install(packages: &[&str]) -> Outcome {
    // Two of them would wait for each other's lock, and the second gives up.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _turn = INSTALLING.lock();
    let apt = |arguments: &[&str]| {
        let program = Program::new("apt-get", INSTALL_LIMIT).args(arguments);
        program.env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    // The lists of packages may be missing or old, so they are fetched first.
    apt(&["update", "-qq"])
        .and_then(|()| apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages].concat()))
        .map_err(|error| {
            let packages = packages.join(", ");
            Stop::skipped(format!(
                "{packages} could not be installed here: install it, or run this as root\n{error}"
            ))
        })
}

/// Where a program is, if it is in the path.
pub(crate) fn found(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    in_folders(env::split_paths(&path), name)
}

fn in_folders(mut folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let file = |folder: &Path| Some(folder.join(name)).filter(|file| file.is_file());
    folders.find_map(|folder| file(&folder))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::in_folders;

    #[test]
    fn a_program_is_found_in_the_first_folder_that_has_it() {
        let place = std::env::temp_dir().join(format!("xtask-debian-{}", std::process::id()));
        let folders: Vec<PathBuf> = ["a", "b", "c"].map(|name| place.join(name)).to_vec();
        // A folder of that name is no program.
        fs::create_dir_all(folders[0].join("chromium")).unwrap();
        for folder in &folders[1..] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("chromium"), "").unwrap();
        }
        let found = in_folders(folders.iter().cloned(), "chromium");
        let none = in_folders(folders.iter().cloned(), "firefox");
        fs::remove_dir_all(&place).unwrap();
        assert_eq!((found, none), (Some(folders[1].join("chromium")), None));
    }
}
