//! Installing what other makers publish, pinned, under the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::process::Program;
use crate::workspace::root;

/// Downloads may be slow.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);

/// Installs the packages that `source` pins, with what is beside them and what counts checks, in `place`.
pub(crate) fn install_node(source: &Path, place: &Path) -> Result<(), String> {
    copy(source, place, &["json", "mjs"])?;
    let shared = root().join("interop/node/checks.mjs");
    let copied = fs::copy(&shared, place.join("checks.mjs"));
    copied.map_err(|error| format!("copying {}: {error}", shared.display()))?;
    install_once(&place.join("package-lock.json"), &place.join("installed"), || {
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        Program::new("npm", INSTALL_LIMIT).args(arguments).directory(place).run()
    })
}

pub(crate) fn install_python(source: &Path, place: &Path) -> Result<(), String> {
    copy(source, place, &["txt", "py"])?;
    let pins = place.join("requirements.txt");
    install_once(&pins, &place.join("installed"), || {
        let venv = Program::new("python3", INSTALL_LIMIT).args(["-m", "venv", "--clear", "venv"]);
        venv.directory(place).run()?;
        let install =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        Program::new(venv_python(place), INSTALL_LIMIT).args(install).directory(place).run()
    })
}

pub(crate) fn venv_python(place: &Path) -> PathBuf {
    place.join(if cfg!(windows) { "venv/Scripts/python.exe" } else { "venv/bin/python" })
}

/// Installs unless that was done for exactly these pins before. The mark is written last, so an installation
/// that was interrupted is made again.
pub(crate) fn install_once(
    pins: &Path,
    mark: &Path,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    // A step and whoever prepares it may come at the same time.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _turn = INSTALLING.lock();
    let wanted = fs::read(pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    if fs::read(mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    // A mark of older pins must not outlive a failed installation of newer ones.
    let _ = fs::remove_file(mark);
    install()?;
    fs::write(mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))
}

/// Copies the files with these extensions: node looks for packages beside the program that imports them.
fn copy(source: &Path, place: &Path, extensions: &[&str]) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("copying {}: {error}", source.display());
    fs::create_dir_all(place).map_err(explain)?;
    for entry in fs::read_dir(source).map_err(explain)? {
        let path = entry.map_err(explain)?.path();
        let wanted =
            path.extension().is_some_and(|found| extensions.iter().any(|extension| found == *extension));
        if let (true, Some(name)) = (wanted, path.file_name()) {
            fs::copy(&path, place.join(name)).map_err(explain)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::install_once;

    #[test]
    fn an_installation_is_made_once_for_the_same_pins() {
        let folder = std::env::temp_dir().join(format!("xtask-install-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (pins, mark) = (folder.join("pins"), folder.join("mark"));
        let installs = Cell::new(0);
        let mut outcomes = Vec::new();
        for (text, works) in [("one", true), ("one", true), ("two", false), ("one", true), ("two", true)] {
            fs::write(&pins, text).unwrap();
            let outcome = install_once(&pins, &mark, || {
                installs.set(installs.get() + 1);
                if works { Ok(()) } else { Err("no network".to_owned()) }
            });
            outcomes.push((outcome.is_ok(), installs.get()));
        }
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(outcomes, [(true, 1), (true, 1), (false, 2), (true, 3), (true, 4)]);
    }
}
