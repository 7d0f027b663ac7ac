//! `cargo xtask setup`: installs the packages of Debian that steps of `--all` need.

use crate::debian::{self, Package};
use crate::output::say;
use crate::{bench, browser, platforms, services};

const PACKAGES: &[&[Package]] =
    &[&[browser::CHROMIUM], &[bench::VALGRIND], &services::PACKAGES, &platforms::PACKAGES];

/// Installs the packages that are missing.
///
/// # Errors
///
/// Returns an error that names the packages if they cannot be installed here.
pub(crate) fn run() -> Result<bool, String> {
    let missing = missing();
    if missing.is_empty() {
        say!("every package that the steps of --all need is installed");
        return Ok(true);
    }
    let names = missing.join(" ");
    if let Err(error) = debian::install(&missing) {
        say!("{error}");
        // One that this system does not have keeps the others from being installed.
        for name in &missing {
            if let Err(error) = debian::install(&[name]) {
                say!("{error}");
            }
        }
    }
    let still = self::missing();
    if still.is_empty() {
        say!("installed: {names}");
        return Ok(true);
    }
    let still = still.join(" ");
    Err(format!(
        "missing still: {still}; as root, apt-get install {still}, or do without the steps that need them"
    ))
}

/// Returns the names of the packages that are not on this machine.
fn missing() -> Vec<&'static str> {
    packages().filter(|package| (package.find)().is_none()).map(|package| package.name).collect()
}

/// Returns the names of all packages that steps need.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    packages().map(|package| package.name)
}

fn packages() -> impl Iterator<Item = &'static Package> {
    PACKAGES.iter().copied().flatten()
}
