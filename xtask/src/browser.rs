//! Pages in a real browser against our server: refused by default, and served when their origin is allowed.
//!
//! The programs are in `browser/`, which also says what they do. The browser is Debian's Chromium, which is
//! installed when there is none; everything else is installed, pinned, under the target folder.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::interop::{build, install_node, judge};
use crate::process::Program;
use crate::workspace::{Workspace, root};

/// A browser with everything it needs is a large download.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);
/// The checks take about ten seconds; they give up by themselves after 150.
const RUN_LIMIT: Duration = Duration::from_mins(3);

const NAME: &str = "chromium";

pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let target = Workspace::read(&root)?.target;
    let place = target.join("browser");
    install_node(&root.join("browser"), &place)?;
    build(&root, &["--example", "interop_server"])?;
    let browser = browser()?;
    let server = target.join("debug/examples/interop_server");
    let pages = Program::new("node", RUN_LIMIT).args([&place.join("run.mjs"), &browser, &server]);
    let checks = judge(pages)?;
    println!("ok    pages in {}: {checks} checks", browser.display());
    Ok(())
}

/// Where the browser is, once there is one.
fn browser() -> Result<PathBuf, String> {
    if let Some(browser) = found() {
        return Ok(browser);
    }
    let apt = |arguments: &[&str]| {
        let program = Program::new("apt-get", INSTALL_LIMIT).args(arguments);
        program.env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    apt(&["update", "-qq"])
        .and_then(|()| apt(&["install", "-y", "-qq", "--no-install-recommends", NAME]))
        .map_err(|error| format!("there is no {NAME}, and it cannot be installed: {error}"))?;
    found().ok_or_else(|| format!("{NAME} was installed, but is not in the path"))
}

fn found() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    in_folders(env::split_paths(&path), NAME)
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
        let place = std::env::temp_dir().join(format!("xtask-browser-{}", std::process::id()));
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
