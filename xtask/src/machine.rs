//! Checks of the machine before a run: faults that would otherwise show only after minutes of compiling.

use std::fs;
use std::path::Path;
use std::time::Duration;

use toml::Table;

use crate::process::Program;

/// Both programs only answer a question.
const LIMIT: Duration = Duration::from_mins(1);

/// The disk that builds of a run take in an empty target folder, in kilobytes. It was measured, and rounded up for builds
/// that are incremental.
pub(crate) const SHORT_RUN: u64 = 10 << 20;
pub(crate) const WHOLE_RUN: u64 = 24 << 20;

/// The disk that a run needs however much is built already, in kilobytes.
const LEAST: u64 = 2 << 20;

/// Checks that the compiler is the one that the project pins, and that there is room for a run that takes `space`
/// kilobytes in an empty target folder. A run that takes none may do with any disk.
///
/// # Errors
///
/// Returns an error that says what to change.
pub(crate) fn check(root: &Path, target: &Path, space: u64) -> Result<(), String> {
    let path = root.join("rust-toolchain.toml");
    let pinned = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let version = Program::new("rustc", LIMIT).args(["-V"]).directory(root).successful_output()?;
    compiler(&pinned, &version)?;
    if space == 0 {
        return Ok(());
    }
    // The target folder may be on a disk of its own.
    let place = if target.exists() { target } else { root };
    let df = Program::new("df", LIMIT).args(["-Pk", "."]).directory(place).successful_output();
    // Where `df` is missing, as on Windows, or does not know, a full disk shows itself later.
    match df.ok().and_then(|df| free(&df)) {
        Some(free) => {
            room(free, size(target), space).map_err(|error| format!("{}: {error}", place.display()))
        }
        None => Ok(()),
    }
}

/// Compares what `rustc -V` has said with the text of rust-toolchain.toml.
fn compiler(pinned: &str, version: &str) -> Result<(), String> {
    let file: Table = pinned.parse().map_err(|error| format!("rust-toolchain.toml: {error}"))?;
    let channel = file.get("toolchain").and_then(|it| it.get("channel")?.as_str());
    let channel = channel.ok_or("rust-toolchain.toml names no channel")?;
    let found = version.split_whitespace().nth(1).unwrap_or(version);
    if found == channel {
        return Ok(());
    }
    Err(format!("rustc is {found}, and rust-toolchain.toml pins {channel}: install it, best with rustup"))
}

/// Reads the free kilobytes from the output of `df -Pk`.
fn free(output: &str) -> Option<u64> {
    let words: Vec<&str> = output.lines().nth(1)?.split_whitespace().collect();
    // The name of a file system may contain spaces.
    let capacity = words.iter().position(|word| word.ends_with('%'))?;
    words.get(capacity.checked_sub(1)?)?.parse().ok()
}

/// Returns an error if there is less free than a run needs beside what it finds built.
fn room(free: u64, built: u64, space: u64) -> Result<(), String> {
    let needed = space.saturating_sub(built).max(LEAST);
    if free >= needed {
        return Ok(());
    }
    let in_gb = |kilobytes: u64| kilobytes.div_ceil(1 << 20);
    Err(format!(
        "{} GB of disk are needed, and {} GB are free: remove old target folders, for instance",
        in_gb(needed),
        free >> 20
    ))
}

/// Returns the size of a folder in kilobytes, as far as it can be read.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size_of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => taken(&metadata),
        Err(_) => 0,
    };
    entries.flatten().map(size_of).sum()
}

/// Returns the disk that a file takes in kilobytes. Cargo gives programs several names, so that each has a share.
#[cfg(unix)]
fn taken(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.blocks() / 2 / metadata.nlink().max(1)
}

#[cfg(not(unix))]
fn taken(metadata: &fs::Metadata) -> u64 {
    metadata.len() >> 10
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::check;
    use super::{compiler, free, room, size};
    #[cfg(unix)]
    use crate::workspace::root;

    #[cfg(unix)]
    #[test]
    fn no_disk_is_large_enough_for_everything() {
        let error = check(&root(), &root().join("no such folder"), u64::MAX).unwrap_err();
        assert!(error.contains("GB of disk are needed"), "{error}");
    }

    #[test]
    fn another_compiler_is_an_error() {
        let pinned = "[toolchain]\nchannel = \"1.95.0\"\n";
        assert_eq!(compiler(pinned, "rustc 1.95.0 (59807616e 2026-04-14)\n"), Ok(()));
        let error =
            "rustc is 1.96.0-beta.2, and rust-toolchain.toml pins 1.95.0: install it, best with rustup";
        assert_eq!(compiler(pinned, "rustc 1.96.0-beta.2 (0)"), Err(error.to_owned()));
        assert_eq!(compiler("", ""), Err("rust-toolchain.toml names no channel".to_owned()));
    }

    #[test]
    fn full_disk_is_an_error_unless_most_is_built() {
        let gb = |count: u64| count << 20;
        assert_eq!(room(gb(8), 0, gb(8)), Ok(()));
        assert_eq!(room(gb(3), gb(5), gb(8)), Ok(()));
        let error = |needed, free| {
            format!(
                "{needed} GB of disk are needed, and {free} GB are free: remove old target folders, for instance"
            )
        };
        assert_eq!(room(gb(7), 0, gb(8)), Err(error(8, 7)));
        assert_eq!(room(gb(1), gb(20), gb(8)), Err(error(2, 1)));
    }

    #[test]
    fn output_of_df_is_read() {
        let text = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
                    /dev/vda         263174212 11094400  83886080      12% /\n";
        assert_eq!(free(text), Some(80 << 20));
        assert_eq!(free(&text.replace("/dev/vda ", "C:/Program Files ")), Some(80 << 20));
        assert_eq!(free(&text.replace("83886080", "-")), None);
        assert_eq!(free("df: no such file\n"), None);
    }

    #[test]
    fn folder_is_as_large_as_its_files_without_their_other_names() {
        let folder = std::env::temp_dir().join(format!("xtask-machine-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("below")).unwrap();
        std::fs::write(folder.join("one"), vec![1; 1 << 20]).unwrap();
        std::fs::write(folder.join("below/two"), vec![1; 2 << 20]).unwrap();
        std::fs::hard_link(folder.join("one"), folder.join("below/one")).unwrap();
        let found = size(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let expected = if cfg!(unix) { 3 << 10 } else { 4 << 10 };
        // A file system may keep notes of its own with a file.
        assert!((expected..expected + 100).contains(&found), "{found}");
    }
}
