//! Replacing a file so that at every moment either the old or the new one is there, whole.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::Change;
use crate::{
    config::{Places, file},
    failure::{Code, Explain, Failure, Result},
    private_file,
};

/// How many old files are kept beside a file.
const MAX_BACKUPS: u32 = 1000;

/// Writes the new text and keeps the old file under another name, which is returned.
pub(super) fn replace(change: &Change) -> Result<Option<PathBuf>> {
    let path = private_file::real(&change.file);
    let written = write(&path, change);
    written.context(format!("{} stays as it was", change.file.display()))
}

fn write(path: &Path, change: &Change) -> Result<Option<PathBuf>> {
    let (old, new) = change.bytes();
    // Hosts write their files too, and somebody may have thought for long about the question.
    if file::read(path)? != change.old {
        return Err(Failure::new(Code::Io, "somebody else has changed it just now").hint("try again"));
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    // Whoever has no home does not want one made by us.
    if let Some(home) = Places::here().home("").filter(|home| folder.starts_with(home) && !home.is_dir()) {
        let text = format!("the home directory {} does not exist", home.display());
        return Err(Failure::new(Code::Io, text).hint("set HOME to one that does"));
    }
    fs::create_dir_all(folder).context(folder.display())?;
    let put = || private_file::replace(path, &new).context(path.display());
    let Some(old) = old else {
        put()?;
        return Ok(None);
    };
    let writable = fs::metadata(path).map_or(true, |metadata| !metadata.permissions().readonly());
    if !writable {
        return Err(Failure::new(Code::Io, "it is write-protected").hint("allow writing to it first"));
    }
    let backup = keep(path, &old)?;
    put().inspect_err(|_| {
        // It is a copy of what is still there.
        let _ = fs::remove_file(&backup);
    })?;
    Ok(Some(backup))
}

/// Writes the old bytes beside the file under the first free name.
fn keep(path: &Path, old: &[u8]) -> Result<PathBuf> {
    for number in 0..MAX_BACKUPS {
        let end = if number == 0 { ".bak".to_owned() } else { format!(".bak{number}") };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(end);
        let backup = path.with_file_name(name);
        match private_file::write_new(&backup, old) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(backup.display()),
        }
    }
    Err(Failure::new(Code::Io, format!("there are {MAX_BACKUPS} old files beside it already"))
        .hint("remove some"))
}
