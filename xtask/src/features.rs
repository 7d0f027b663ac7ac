//! Combinations of features: the usual ones of the facade for every change, every feature of every crate for a release.

use std::iter;
use std::path::PathBuf;
use std::time::Duration;

use crate::process::Program;
use crate::steps::Outcome;
use crate::workspace::{Workspace, root};

/// Generous even for a first build on a slow machine.
const LIMIT: Duration = Duration::from_mins(45);

/// The crate that users depend on.
const FACADE: &str = "toolwire";

/// Features of the facade that users choose together; all of them are built by the other steps.
const USUAL: [&str; 6] = ["", "default", "server,stdio", "client,child", "http-server", "auth-client"];

/// Builds the facade with features that users choose together.
pub(crate) fn usual() -> Outcome {
    let target = target()?.display().to_string();
    for features in USUAL {
        clippy(FACADE, features, &["--locked", "--target-dir", &target])?;
    }
    Ok(())
}

/// Builds every crate that has features others can choose, with none of them and with each alone.
pub(crate) fn each() -> Outcome {
    let packages = Workspace::read(&root())?.packages;
    for package in packages.iter().filter(|package| package.published && !package.features.is_empty()) {
        let alone = package.features.iter().map(String::as_str);
        for features in iter::once("").chain(alone) {
            clippy(&package.name, features, &[])?;
        }
    }
    Ok(())
}

/// Returns the target folder of builds that run beside the tests and only check that something compiles.
pub(crate) fn target() -> Result<PathBuf, String> {
    Ok(Workspace::read(&root())?.target.join("beside"))
}

fn clippy(package: &str, features: &str, options: &[&str]) -> Result<(), String> {
    // Clippy instead of check: a warning in one combination is as wrong as in the usual one.
    Program::cargo(&root(), LIMIT)
        .args(["clippy", "--quiet", "-p", package, "--no-default-features", "--features", features])
        .args(options)
        .args(["--", "-D", "warnings"])
        .run()
}

#[cfg(test)]
mod tests {
    use super::{FACADE, USUAL};
    use crate::workspace::{Workspace, root};

    #[test]
    fn usual_features_are_those_of_the_facade() {
        let workspace = Workspace::read(&root()).unwrap();
        let offered = &workspace.package(FACADE).unwrap().features;
        for feature in USUAL.iter().flat_map(|features| features.split(',')).filter(|it| !it.is_empty()) {
            assert!(offered.iter().any(|name| name == feature), "{feature}");
        }
    }
}
