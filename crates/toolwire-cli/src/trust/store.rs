//! Which files are trusted, with which content: one small file for each, in a folder of this program.
//!
//! The name of such a file is made of the path and the content that it is about, so looking one up needs no list,
//! and two processes that add to it at once cannot lose what the other has added.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::{
    config::Places,
    failure::{Code, Explain, Failure, Result},
    private_file,
};

/// How many files can be trusted or refused.
const MAX_ENTRIES: usize = 10_000;
/// How much of an entry is read: its first line is all that counts.
const MAX_ENTRY_BYTES: u64 = 64;
/// The first lines of entries.
const TRUSTED: &str = "trusted";
const REFUSED: &str = "refused";

/// A file with a certain content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// Where it is, without links.
    path: PathBuf,
    /// The SHA-256 of its bytes.
    digest: String,
}

impl Content {
    /// The file at a path without links, with these bytes.
    pub(crate) fn new(path: PathBuf, bytes: &[u8]) -> Self {
        Self { path, digest: hex(bytes) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

/// What the user has said about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may be used.
    Trusted,
    /// It may not, and nobody wants to be asked again.
    Refused,
    /// It was trusted or refused when it said something else.
    Changed,
    /// Nothing.
    Unknown,
}

/// What helps where nothing can be kept.
const ONCE: &str = "to trust the file for one command only, give that --trust";

/// Where the verdicts are kept.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// Without a home directory there is none, and nothing is trusted.
    folder: Option<PathBuf>,
}

impl Store {
    /// The verdicts of the user of this machine.
    pub(crate) fn of(places: &Places) -> Self {
        Self { folder: places.state().map(|folder| folder.join("toolwire/trust")) }
    }

    /// What was said about a file with this content. What cannot be read has not been said.
    pub(crate) fn verdict(&self, content: &Content) -> Verdict {
        let Some(folder) = self.folder.as_ref().filter(|folder| is_private(folder)) else {
            return Verdict::Unknown;
        };
        match said(&folder.join(entry_name(content))).as_deref() {
            Some(TRUSTED) => Verdict::Trusted,
            Some(REFUSED) => Verdict::Refused,
            _ if !entries_of(folder, &content.path).is_empty() => Verdict::Changed,
            _ => Verdict::Unknown,
        }
    }

    /// Trusts a file with this content from now on.
    pub(crate) fn trust(&self, content: &Content) -> Result<()> {
        self.note(content, TRUSTED)
    }

    /// Does not trust a file with this content, and does not ask about it.
    pub(crate) fn refuse(&self, content: &Content) -> Result<()> {
        self.note(content, REFUSED)
    }

    /// Forgets all that was said about the file at a path without links, and says how much that was.
    pub(crate) fn forget(&self, path: &Path) -> Result<usize> {
        let Some(folder) = &self.folder else { return Ok(0) };
        let entries = entries_of(folder, path);
        for entry in &entries {
            match fs::remove_file(entry) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).context(entry.display());
                }
                _ => {}
            }
        }
        Ok(entries.len())
    }

    fn note(&self, content: &Content, verdict: &str) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Err(Failure::new(
                Code::Io,
                "what is trusted is kept in the home directory, and there is none",
            )
            .hint("set HOME, or trust the file for one command with --trust"));
        };
        private_file::create_folder(folder).context(folder.display()).hint(ONCE)?;
        if !is_private(folder) {
            let text = format!("{} belongs to somebody else, or others may write to it", folder.display());
            return Err(Failure::new(Code::Io, text).hint("make it yours: chmod 700, chown"));
        }
        if fs::read_dir(folder).context(folder.display())?.count() >= MAX_ENTRIES {
            let text = format!("{} has {MAX_ENTRIES} entries already", folder.display());
            return Err(Failure::new(Code::Io, text).hint("remove those that are not needed any more"));
        }
        let entry = folder.join(entry_name(content));
        let text = format!("{verdict}\n{}\n", content.path.display());
        private_file::replace(&entry, text.as_bytes()).context(entry.display()).hint(ONCE)
    }
}

/// The first line of an entry that nobody else can have written.
fn said(entry: &Path) -> Option<String> {
    let file = File::open(entry).ok()?;
    is_own(&file.metadata().ok()?).then_some(())?;
    let mut text = Vec::new();
    file.take(MAX_ENTRY_BYTES).read_to_end(&mut text).ok()?;
    let line = text.split(|byte| *byte == b'\n').next()?;
    String::from_utf8(line.to_vec()).ok()
}

/// The entries about a path, whatever the content.
fn entries_of(folder: &Path, path: &Path) -> Vec<PathBuf> {
    let start = format!("{}-", path_hash(path));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&start)))
        .map(|entry| entry.path())
        .collect()
}

fn entry_name(content: &Content) -> String {
    format!("{}-{}", path_hash(&content.path), content.digest)
}

fn path_hash(path: &Path) -> String {
    hex(path.as_os_str().as_encoded_bytes())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_private(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata))
}

/// Whether it is ours and nobody else may write to it.
#[cfg(unix)]
fn is_own(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// The folders of a user are the user's, as far as this system says.
#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { folder: Some(folder.path().join("state/trust")) };
        (folder, store)
    }

    fn content(path: &str, text: &str) -> Content {
        Content::new(path.into(), text.as_bytes())
    }

    #[test]
    fn trust_is_about_a_path_and_a_content() {
        let (_folder, store) = store();
        let file = content("/a/.mcp.json", "{}");
        assert_eq!(store.verdict(&file), Verdict::Unknown);
        store.trust(&file).unwrap();
        assert_eq!(store.verdict(&file), Verdict::Trusted);
        assert_eq!(store.verdict(&content("/a/.mcp.json", "{ }")), Verdict::Changed);
        assert_eq!(store.verdict(&content("/b/.mcp.json", "{}")), Verdict::Unknown);
        store.refuse(&file).unwrap();
        assert_eq!(store.verdict(&file), Verdict::Refused);
        store.trust(&content("/a/.mcp.json", "{ }")).unwrap();
        assert_eq!(store.forget(Path::new("/a/.mcp.json")).unwrap(), 2);
        assert_eq!(store.verdict(&file), Verdict::Unknown);
    }

    #[test]
    fn without_a_home_nothing_is_trusted_and_that_is_said() {
        let store = Store { folder: None };
        assert_eq!(store.verdict(&content("/a", "")), Verdict::Unknown);
        assert!(store.trust(&content("/a", "")).unwrap_err().advice().unwrap().contains("HOME"));
    }

    #[test]
    #[cfg(unix)]
    fn entries_that_others_could_have_written_do_not_count() {
        use std::os::unix::fs::PermissionsExt;

        let (_folder, store) = store();
        let file = content("/a/.mcp.json", "{}");
        store.trust(&file).unwrap();
        let folder = store.folder.clone().unwrap();
        let entry = folder.join(entry_name(&file));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&entry)), (0o700, 0o600));
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o666)).unwrap();
        assert_ne!(store.verdict(&file), Verdict::Trusted);
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(store.verdict(&file), Verdict::Unknown);
        assert!(store.trust(&file).is_err());
    }

    #[test]
    fn an_entry_that_was_not_written_to_its_end_is_no_trust() {
        let (_folder, store) = store();
        let file = content("/a/.mcp.json", "{}");
        store.trust(&file).unwrap();
        fs::write(store.folder.as_ref().unwrap().join(entry_name(&file)), "trust").unwrap();
        assert_eq!(store.verdict(&file), Verdict::Changed);
    }

    #[test]
    fn many_at_once_lose_nothing() {
        let (_folder, store) = store();
        let files: Vec<_> = (0..64).map(|number| content(&format!("/{number}"), "{}")).collect();
        std::thread::scope(|scope| {
            for file in &files {
                let store = &store;
                scope.spawn(move || store.trust(file).unwrap());
            }
        });
        assert!(files.iter().all(|file| store.verdict(file) == Verdict::Trusted));
    }
}
