//! Keeping records in files that only their owner can read.

#[cfg(feature = "keyring")]
use std::sync::Arc;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

#[cfg(feature = "keyring")]
use super::seal::Seal;
use super::{CredentialStore, Key, Kind, Record, StoreError, StoreErrorKind, StoreLock, lock, memory::check};
use crate::fetch::BoxFuture;

/// The largest file that is read.
const MAX_BYTES: u64 = 1024 * 1024;
/// The most records of one kind that are listed.
const MAX_LISTED: usize = 512;

/// A file, and what is in it or why that is not used.
pub type StoredFile = (PathBuf, Result<Record, StoreError>);

/// Keeps records in files below one folder: `credentials`, `clients` and `locks`.
///
/// Folders are made with the rights 0700 and files with 0600. Symbolic links, files of other users, and whatever others
/// can read is refused. A file is replaced in one step, so that a program that is killed leaves the old one or the new
/// one, whole.
#[derive(Clone, Debug)]
pub struct FileStore {
    folder: PathBuf,
    #[cfg(feature = "keyring")]
    seal: Option<Arc<Seal>>,
}

impl FileStore {
    /// The store of an application: the folder `auth` in its data folder, which is where the system has such folders
    /// (`$XDG_DATA_HOME` or `~/.local/share`, `~/Library/Application Support`, `%LOCALAPPDATA%`). The environment
    /// variable `TOOLWIRE_AUTH_DIR` moves all of it.
    ///
    /// # Errors
    /// When there is no such folder, or the name is not one of a folder.
    pub fn of(application: &str) -> Result<Self, StoreError> {
        if let Some(folder) = std::env::var_os("TOOLWIRE_AUTH_DIR").filter(|folder| !folder.is_empty()) {
            return Ok(Self::at(folder));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if application.is_empty() || application.starts_with('.') || !application.chars().all(plain) {
            let text = format!("{application:?} is not a name for a folder; use letters, digits, - and _");
            return Err(StoreError::new(StoreErrorKind::Failed, text));
        }
        let data = data_folder().ok_or_else(|| {
            let text = "no folder for credentials is known; set TOOLWIRE_AUTH_DIR";
            StoreError::new(StoreErrorKind::Failed, text)
        })?;
        Ok(Self::at(data.join(application).join("auth")))
    }

    /// A store in this folder, which is made when it is needed.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            #[cfg(feature = "keyring")]
            seal: None,
        }
    }

    /// Seals what is stored with a key that only the keyring of the system has, under the name of the application. The
    /// key is made when there is none; without it, what is stored is lost, and somebody has to log in again.
    ///
    /// Which keyring that is, is said once by the program: `keyring_core::set_default_store(…)`, or what the crate
    /// `keyring` has for it. Keyrings may ask a person and take long: call this where nobody waits.
    ///
    /// # Errors
    /// When the keyring cannot be used, or has something else under that name.
    #[cfg(feature = "keyring")]
    pub fn sealed_by_keyring(mut self, application: &str) -> Result<Self, StoreError> {
        self.make_folder("locks")?;
        // Of two programs that begin at once, the second finds the key of the first.
        let lock = open_private(&self.folder.join("locks").join("keyring"))?;
        if let Err(error) = lock.lock() {
            tracing::warn!(%error, "the file system of the credentials has no locks; programs that make a key at once may disturb each other");
        }
        self.seal = Some(Arc::new(Seal::of(application)?));
        Ok(self)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All credentials that are stored, or the first few hundred of them: each with its file, and what is in it or why
    /// that is not used.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn credentials(&self) -> Result<Vec<StoredFile>, StoreError> {
        let mut files: Vec<StoredFile> = self
            .files(Kind::Credential)?
            .into_iter()
            .filter_map(|path| {
                let record = self.read_file(&path).transpose()?;
                Some((path, record))
            })
            .collect();
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(files)
    }

    /// The file that has the record of this key, whether it is there or not.
    pub fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(folder_of(key.kind())).join(format!("{}.json", key.digest()))
    }

    fn lock_path(&self, key: &Key) -> PathBuf {
        // An issuer and a server may have the same address.
        self.folder.join("locks").join(format!("{}-{}", folder_of(key.kind()), key.digest()))
    }

    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.read_file(&self.path(key))
    }

    #[cfg_attr(not(feature = "keyring"), expect(clippy::unused_self, reason = "with a keyring it is needed"))]
    fn read_file(&self, path: &Path) -> Result<Option<Record>, StoreError> {
        let Some(text) = read(path)? else { return Ok(None) };
        #[cfg(feature = "keyring")]
        let text = match &self.seal {
            Some(seal) => seal.open(path, &text)?,
            None => text,
        };
        let record = Record::from_json(&text)
            .map_err(|error| StoreError::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Some(record))
    }

    #[cfg(feature = "keyring")]
    fn text_of(&self, path: &Path, record: &Record) -> Result<zeroize::Zeroizing<String>, StoreError> {
        let text = zeroize::Zeroizing::new(record.to_json());
        match &self.seal {
            Some(seal) => seal.close(path, &text).map(zeroize::Zeroizing::new),
            None => Ok(text),
        }
    }

    #[cfg(not(feature = "keyring"))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "with a keyring it can fail")]
    fn text_of(&self, _: &Path, record: &Record) -> Result<zeroize::Zeroizing<String>, StoreError> {
        Ok(zeroize::Zeroizing::new(record.to_json()))
    }

    fn write(&self, key: &Key, record: &Record, expected: u64) -> Result<(), StoreError> {
        let path = self.path(key);
        self.make_folder(folder_of(key.kind()))?;
        check(self.read_file(&path)?.as_ref(), expected)?;
        replace(&path, self.text_of(&path, record)?.as_bytes())
            .map_err(|error| StoreError::io(format!("{} cannot be written", path.display()), error))
    }

    fn delete(&self, key: &Key, expected: u64) -> Result<(), StoreError> {
        let path = self.path(key);
        check(self.read_file(&path)?.as_ref(), expected)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(format!("{} cannot be removed", path.display()), error))
            }
            _ => Ok(()),
        }
    }

    /// The files of one kind.
    fn files(&self, kind: Kind) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.folder.join(folder_of(kind));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io(format!("{} cannot be read", folder.display()), error)),
        };
        let files = entries.flatten().map(|entry| entry.path());
        let records = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        Ok(records.take(MAX_LISTED).collect())
    }

    fn list(&self) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        for path in self.files(Kind::Client)? {
            match self.read_file(&path) {
                Ok(record) => records.extend(record),
                // One client that cannot be read is one that is registered anew.
                Err(error) => tracing::warn!(%error, "a registered client is passed over"),
            }
        }
        Ok(records)
    }

    fn open_lock(&self, key: &Key) -> Result<File, StoreError> {
        self.make_folder("locks")?;
        open_private(&self.lock_path(key))
    }

    /// Makes a folder below that of the store, and that one, if they are not there.
    fn make_folder(&self, name: &str) -> Result<(), StoreError> {
        for folder in [self.folder.clone(), self.folder.join(name)] {
            let mut builder = DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder
                .create(&folder)
                .map_err(|error| StoreError::io(format!("{} cannot be made", folder.display()), error))?;
            examine_folder(&folder)?;
        }
        Ok(())
    }
}

const fn folder_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Credential => "credentials",
        Kind::Client => "clients",
    }
}

fn data_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return set("LOCALAPPDATA");
    }
    if cfg!(target_os = "macos") {
        return set("HOME").map(|home| home.join("Library/Application Support"));
    }
    set("XDG_DATA_HOME")
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".local/share")))
}

/// Opens a file for its owner alone, which is made if it is not there.
fn open_private(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    private(&mut options);
    options.open(path).map_err(|error| StoreError::io(format!("{} cannot be opened", path.display()), error))
}

/// Reads a file that nobody else can have read or written.
fn read(path: &Path) -> Result<Option<zeroize::Zeroizing<Vec<u8>>>, StoreError> {
    let failed = |error| StoreError::io(format!("{} cannot be read", path.display()), error);
    let mut options = OpenOptions::new();
    options.read(true);
    // A link is not followed, not even one that was put there a moment ago.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0),
    );
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) => {
            return Err(exposed(path, "is a symbolic link"));
        }
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(exposed(path, "is not a file"));
    }
    examine(path, &metadata, 0o077)?;
    let mut text = zeroize::Zeroizing::new(Vec::new());
    file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        let text = format!("{} is larger than {MAX_BYTES} bytes", path.display());
        return Err(StoreError::new(StoreErrorKind::Unreadable, text));
    }
    Ok(Some(text))
}

fn examine_folder(folder: &Path) -> Result<(), StoreError> {
    let metadata = fs::metadata(folder)
        .map_err(|error| StoreError::io(format!("{} cannot be examined", folder.display()), error))?;
    // Others may look at the names, which are digests; they must not put files there.
    examine(folder, &metadata, 0o022)
}

/// Whether a file is ours, and others have none of the `forbidden` rights.
#[cfg(unix)]
fn examine(path: &Path, metadata: &fs::Metadata, forbidden: u32) -> Result<(), StoreError> {
    examine_as(rustix::process::geteuid().as_raw(), path, metadata, forbidden)
}

/// Refuses a file of another user than this one, which may be root, and one of which others have some of the `forbidden` rights.
#[cfg(unix)]
fn examine_as(user: u32, path: &Path, metadata: &fs::Metadata, forbidden: u32) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;

    if metadata.uid() != user {
        return Err(exposed(path, "belongs to another user"));
    }
    if metadata.mode() & forbidden != 0 {
        let what = if forbidden == 0o077 {
            "can be read by others; run: chmod 600"
        } else {
            "can be changed by others; run: chmod 700"
        };
        return Err(exposed(path, what));
    }
    Ok(())
}

/// The rights of the user's profile decide.
#[cfg(not(unix))]
fn examine(_path: &Path, _metadata: &fs::Metadata, _forbidden: u32) -> Result<(), StoreError> {
    Ok(())
}

fn exposed(path: &Path, what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Exposed, format!("{} {what}", path.display()))
}

fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Puts a file into the place of another in one step.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |file| file.write_all(bytes))
}

/// Puts a file that this writes into the place of another in one step.
fn replace_by(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let new = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
    // What a program with the same number has left behind.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private(&mut options);
    let mut file = options.open(&new)?;
    let placed = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, path));
    placed.inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })?;
    sync_folder(path)
}

/// A name that is not written down is gone after a power failure.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Files are slow: not on a thread that others wait for.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, StoreError> + Send + 'static,
) -> Result<R, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(StoreError::new(StoreErrorKind::Failed, "the store of credentials has panicked"))
    })
}

impl CredentialStore for FileStore {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(blocking(move || store.read(&key)))
    }

    fn clients(&self) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        let store = self.clone();
        Box::pin(blocking(move || store.list()))
    }

    fn save<'a>(
        &'a self,
        key: &'a Key,
        record: Record,
        expected: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(blocking(move || store.write(&key, &record, expected)))
    }

    fn remove<'a>(&'a self, key: &'a Key, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(blocking(move || store.delete(&key, expected)))
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<StoreLock>, StoreError>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(async move { lock::acquire(blocking(move || store.open_lock(&key)).await?).await })
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
