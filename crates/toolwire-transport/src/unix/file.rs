//! The file of a socket: made with the right permissions, and gone when its server is.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use super::fault::UnixError;

/// The file of a socket that is ours. Dropping it removes the file, unless somebody has put another in its place.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    /// Takes over a file that was just made.
    pub(super) fn made(path: &Path, mode: u32) -> io::Result<Self> {
        let mut file = Self { path: path.to_owned(), identity: None };
        file.identity = Some(identity(&fs::symlink_metadata(path)?));
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Ok(found) = fs::symlink_metadata(&self.path) else { return };
        if self.identity == Some(identity(&found))
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::debug!(%error, path = %self.path.display(), "the file of a socket could not be removed");
        }
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Removes the socket that a dead server has left at `path`, and nothing else.
pub(super) async fn clear(path: &Path) -> io::Result<()> {
    let failed = |error| io::Error::from(UnixError::listening(path, error));
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(UnixError::not_a_socket(path).into()),
        Ok(_) => {}
        // Whoever it belonged to has just removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::debug!(path = %path.display(), "a socket that nobody listens at is replaced");
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Whatever else is the matter, somebody may be there.
        Ok(_) | Err(_) => Err(UnixError::taken(path).into()),
    }
}
