//! Locks between processes.

use std::{
    fs::{File, TryLockError},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{LOCK_TIMEOUT, StoreError, StoreErrorKind, StoreLock};

/// How often a lock is tried. Waiting for one has no time limit of its own.
const INTERVAL: Duration = Duration::from_millis(50);

/// Waits until nobody else has the lock; `None` if the file system has none.
pub(super) async fn acquire(file: File) -> Result<Option<StoreLock>, StoreError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(StoreLock::new(file))),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Err(busy()),
            Err(TryLockError::WouldBlock) => sleep(INTERVAL).await,
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, "the file system of the credentials has no locks; programs that renew at once may disturb each other");
                return Ok(None);
            }
        }
    }
}

pub(super) fn busy() -> StoreError {
    let text =
        format!("another program has been changing the credential for {} seconds", LOCK_TIMEOUT.as_secs());
    StoreError::new(StoreErrorKind::Busy, text)
}
