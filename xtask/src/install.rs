//! The program installs as its users install it, and is small.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::output::say;
use crate::process::Program;
use crate::steps::Outcome;
use crate::workspace::{Workspace, root};

/// Generous even for a first build on a slow machine.
const LIMIT: Duration = Duration::from_mins(45);

/// The size that the program may have, in bytes.
const LARGEST: u64 = 24 << 20;

/// The file with the size that the program had when it was last looked at.
const KNOWN: &str = "benchmarks/size.txt";

/// Installs the program below the target folder, and compares its size.
pub(crate) fn run() -> Outcome {
    let known = known(&root())?;
    let place = Workspace::read(&root())?.target.join("installed");
    let shown = place.display().to_string();
    let install = ["install", "--path", "crates/toolwire-cli", "--locked", "--force", "--root", &shown];
    Program::cargo(&root(), LIMIT).args(install).run()?;
    let program = place.join("bin").join(format!("toolwire{}", std::env::consts::EXE_SUFFIX));
    let version = Program::new(&program, LIMIT).args(["--version"]).successful_output()?;
    let bytes = fs::metadata(&program).map_err(|error| format!("{shown}: {error}"))?.len();
    say!("{}: {}", version.trim(), compared(bytes, known));
    if bytes <= LARGEST { Ok(()) } else { Err(format!("{bytes} bytes are more than {LARGEST}").into()) }
}

fn known(root: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(root.join(KNOWN)).map_err(|error| format!("{KNOWN}: {error}"))?;
    text.trim().parse().map_err(|_| format!("{KNOWN}: not a number of bytes: {text:?}"))
}

fn compared(bytes: u64, known: u64) -> String {
    let (difference, word) = if bytes < known { (known - bytes, "less") } else { (bytes - known, "more") };
    if difference == 0 {
        return format!("{bytes} bytes, as in {KNOWN}");
    }
    format!("{bytes} bytes, {difference} {word} than in {KNOWN}; write the new number there if that is meant")
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, compared, known};
    use crate::workspace::root;

    #[test]
    fn size_is_compared_with_the_one_that_is_known() {
        let meant = format!("than in {KNOWN}; write the new number there if that is meant");
        assert_eq!(compared(7, 7), format!("7 bytes, as in {KNOWN}"));
        assert_eq!(compared(9, 7), format!("9 bytes, 2 more {meant}"));
        assert_eq!(compared(4, 7), format!("4 bytes, 3 less {meant}"));
    }

    #[test]
    fn size_that_is_known_is_read() {
        assert!(known(&root()).unwrap() > 1 << 20);
        assert!(known(&root().join("docs")).unwrap_err().starts_with(KNOWN));
    }
}
