//! Replacing a file so that at every moment either the old or the new one is there, whole.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::Change;
use crate::{
    config::file::{self, Encoding},
    failure::{Code, Explain, Failure, Result},
};

/// How many old files are kept beside a file.
const MAX_BACKUPS: u32 = 1000;
/// How many links are followed from one to the next, when the last leads to nothing.
const MAX_LINKS: usize = 16;

/// Writes the new text and keeps the old file under another name, which is returned.
pub(super) fn replace(change: &Change) -> Result<Option<PathBuf>> {
    let path = real(&change.file);
    let written = write(&path, change);
    written.context(format!("{} stays as it was", change.file.display()))
}

fn write(path: &Path, change: &Change) -> Result<Option<PathBuf>> {
    let mark = change.old.as_ref().is_some_and(|old| old.encoding == Encoding::Utf8WithMark);
    let encoded = |text: &str| if mark { format!("\u{feff}{text}") } else { text.to_owned() };
    // Hosts write their files too, and somebody may have thought for long about the question.
    if file::read(path)? != change.old {
        return Err(Failure::new(Code::Io, "somebody else has changed it just now").hint("try again"));
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder).context(folder.display())?;
    let permissions = fs::metadata(path).ok().map(|metadata| metadata.permissions());
    let Some(old) = &change.old else {
        put(path, &encoded(&change.new), None)?;
        return Ok(None);
    };
    let writable = permissions.as_ref().is_none_or(|permissions| !permissions.readonly());
    if !writable {
        return Err(Failure::new(Code::Io, "it is write-protected").hint("allow writing to it first"));
    }
    let backup = keep(path, &encoded(&old.text), permissions.as_ref())?;
    let put = put(path, &encoded(&change.new), permissions.as_ref());
    put.inspect_err(|_| {
        // It is a copy of what is still there.
        let _ = fs::remove_file(&backup);
    })?;
    Ok(Some(backup))
}

/// The file that is meant, where links lead.
fn real(path: &Path) -> PathBuf {
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

/// Writes the text beside the file under the first free name.
fn keep(path: &Path, text: &str, permissions: Option<&Permissions>) -> Result<PathBuf> {
    for number in 0..MAX_BACKUPS {
        let end = if number == 0 { ".bak".to_owned() } else { format!(".bak{number}") };
        let backup = beside(path, &end);
        match create(&backup, text, permissions) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(backup.display()),
        }
    }
    Err(Failure::new(Code::Io, format!("there are {MAX_BACKUPS} old files beside it already"))
        .hint("remove some"))
}

/// Puts a file with this text into the place of another in one step.
fn put(path: &Path, text: &str, permissions: Option<&Permissions>) -> Result<()> {
    let new = beside(path, &format!(".toolwire-{}.tmp", std::process::id()));
    let done = create(&new, text, permissions).and_then(|()| {
        fs::rename(&new, path).inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    });
    done.context(path.display())
}

/// Creates a file that is not there yet. If that fails half-way, nothing is left of it.
fn create(path: &Path, text: &str, permissions: Option<&Permissions>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if permissions.is_some() {
        // Nobody else may look into it before it has the permissions of the old one.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| {
        permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions.clone()))?;
        file.sync_all()
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}
