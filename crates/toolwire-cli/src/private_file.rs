//! Files that only their owner may read, because there may be secrets in them.
//!
//! They are created so, not changed afterwards: between the two, somebody else could have opened them. A file
//! that is there already is replaced in one step, by a new one beside it, so that at every moment either the old
//! or the new one is there, whole.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// How many names are tried for the new file before it takes the place of the old one.
const MAX_TRIES: u32 = 100;
/// The largest file that is read.
const MAX_READ_BYTES: u64 = 1024 * 1024;
/// How many links are followed from one to the next, when the last leads to nothing.
const MAX_LINKS: usize = 16;

/// Creates a file that is not there yet.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a file with these bytes. If that fails half-way, nothing is left of it.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_new(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

/// Puts a file with these bytes into a place, whether there is one already or not.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, |file| file.write_all(bytes).and_then(|()| file.sync_all())).map(|_| ())
}

/// Puts a new file into a place, with what `begin` writes into it; it can be written to further.
pub(crate) fn place(path: &Path, begin: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let (mut file, new) = beside(path)?;
    let placed = begin(&mut file).and_then(|()| fs::rename(&new, path));
    placed.map(|()| file).inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}

/// A new file beside another one, under a name that nobody else uses, be it this process or another.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    for _ in 0..MAX_TRIES {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut new = name.to_owned();
        new.push(format!(".toolwire-{}-{number}.tmp", std::process::id()));
        let new = path.with_file_name(new);
        match create_new(&new) {
            Ok(file) => return Ok((file, new)),
            // Left behind by a process of the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Reads a file that nobody but its owner can have written; an error says in words what else there is. A link is not
/// followed, not even one that was put there a moment ago.
#[cfg(unix)]
pub(crate) fn read_own(path: &Path) -> io::Result<Result<Vec<u8>, &'static str>> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

    let mut options = OpenOptions::new();
    options.read(true).custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0));
    let file = match options.open(path) {
        Ok(file) => file,
        Err(_) if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) => {
            return Ok(Err("is a symbolic link"));
        }
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Err("is not a file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(Err("belongs to somebody else"));
    }
    if metadata.mode() & 0o022 != 0 {
        return Ok(Err("can be changed by others"));
    }
    read_all(file).map(Ok)
}

/// The folders of a user are private already.
#[cfg(not(unix))]
pub(crate) fn read_own(path: &Path) -> io::Result<Result<Vec<u8>, &'static str>> {
    read_all(File::open(path)?).map(Ok)
}

fn read_all(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_READ_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Creates a folder that only its owner may look into; those above it are created as usual.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match private_folder().create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        done => done,
    }
}

#[cfg(unix)]
fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// The folders of a user are private already.
#[cfg(not(unix))]
fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

/// The file that is meant, where links lead.
pub(crate) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or_else(|| Path::new("")).join(target);
    }
    path
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_private_and_so_is_one_that_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        replace(&file, b"one").unwrap();
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"two".to_vec(), 0o600));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert!(write_new(&file, b"three").is_err());
        create_folder(&folder.path().join("a/b")).unwrap();
        assert_eq!(mode(&folder.path().join("a/b")), 0o700);
        create_folder(&folder.path().join("a/b")).unwrap();
    }

    #[test]
    fn only_a_file_that_nobody_else_can_have_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("x"), folder.path().join("y"));
        replace(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_own(&file).unwrap(), Ok(b"one".to_vec()));
        assert_eq!(read_own(&link).unwrap(), Err("is a symbolic link"));
        assert_eq!(read_own(folder.path()).unwrap(), Err("is not a file"));
        assert_eq!(read_own(&folder.path().join("z")).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o620)).unwrap();
        assert_eq!(read_own(&file).unwrap(), Err("can be changed by others"));
        fs::write(&file, vec![b' '; 1024 * 1024 + 1]).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(read_own(&file).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_file_that_cannot_be_begun_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        replace(&file, b"one").unwrap();
        let failed = place(&file, |_| Err(io::Error::from(io::ErrorKind::StorageFull)));
        assert!(failed.is_err());
        assert_eq!(fs::read(&file).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
