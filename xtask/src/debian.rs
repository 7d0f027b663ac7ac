//! Packages of Debian that steps of `--all` need. Only `cargo xtask setup` installs them.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::Program;
use crate::steps::Stop;

/// Downloads may be slow.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);

/// A package, and the file or folder in it that a step needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// Returns its path if it is on this machine.
    pub(crate) find: fn() -> Option<PathBuf>,
}

impl Package {
    /// Returns the path of the file, or skips the step that needs it.
    pub(crate) fn require(&self) -> Result<PathBuf, Stop> {
        (self.find)().ok_or_else(|| {
            Stop::skipped(format!("Debian's package {} is missing: cargo xtask setup installs it", self.name))
        })
    }
}

/// Installs packages, which takes root.
pub(crate) fn install(names: &[&str]) -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        let program = Program::new("apt-get", INSTALL_LIMIT).args(arguments);
        program.env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    // The lists of packages may be missing or old, so they are fetched first.
    apt(&["update", "-qq"])?;
    apt(&[&["install", "-y", "-qq", "--no-install-recommends"], names].concat())
}

/// Returns the first program of this name in the path.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
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

    use super::{Package, in_folders};
    use crate::steps::Stop;

    #[test]
    fn missing_package_skips_the_step_and_names_the_command() {
        let there = Package { name: "sh", find: || Some("/bin/sh".into()) };
        assert_eq!(there.require(), Ok("/bin/sh".into()));
        let missing = Package { name: "chromium", find: || None };
        let reason = "Debian's package chromium is missing: cargo xtask setup installs it";
        assert_eq!(missing.require(), Err(Stop::skipped(reason)));
    }

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
