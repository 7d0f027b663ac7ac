//! How a store is opened.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use toolwire_store::{StoreError, memory::Clock};

/// How a store is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// The file. Two others lie beside it while it is open, and one from when several processes have it open.
    pub path: PathBuf,
    /// Whether what was acknowledged survives a loss of power. Without it commits do not wait for the disk: what was
    /// written last may be lost then, but not when only the process dies. Default true.
    pub power_loss_safe: bool,
    /// Whether an old schema is brought up to date. Default true.
    pub migrate: bool,
    /// How many pages of 4 KiB the file may have; what needs more is [`Full`](StoreError::Full). By default as many as the disk has room for.
    pub max_pages: Option<u32>,
    /// Where the time is taken from. All processes that share a file have to have the same one.
    #[doc(hidden)]
    pub clock: Arc<dyn Clock>,
}

impl SqliteOptions {
    /// The defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            power_loss_safe: true,
            migrate: true,
            max_pages: None,
            clock: Arc::new(WallClock),
        }
    }

    /// Reads `sqlite:PATH`, or `sqlite://PATH`, with the parameters `sync=full|normal` and `migrate=on|off`.
    ///
    /// # Errors
    /// When it is another URL, or has parameters or values that there are not.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let wrong = |what: String| Err(StoreError::unavailable(what));
        let Some(rest) = url.strip_prefix("sqlite:") else {
            return wrong(format!("{url:?} is not the URL of an SQLite file: it has to begin with sqlite:"));
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        if path.is_empty() || path.contains('\0') {
            return wrong(format!("{url:?} names no file: try sqlite:tasks.db"));
        }
        let mut options = Self::new(path);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter {
                "sync=full" => options.power_loss_safe = true,
                "sync=normal" => options.power_loss_safe = false,
                "migrate=on" => options.migrate = true,
                "migrate=off" => options.migrate = false,
                _ => {
                    return wrong(format!(
                        "{parameter:?} is not a parameter of an SQLite store: there are sync=full, sync=normal, \
                         migrate=on and migrate=off"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// The clock of the machine, which all processes share.
#[derive(Clone, Copy, Debug)]
struct WallClock;

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_file_and_how_it_is_written() {
        let options = SqliteOptions::from_url("sqlite:data/tasks.db?sync=normal&migrate=off").unwrap();
        assert_eq!(options.path, PathBuf::from("data/tasks.db"));
        assert!(!options.power_loss_safe && !options.migrate);
        let options = SqliteOptions::from_url("sqlite:///var/tasks.db").unwrap();
        assert_eq!(options.path, PathBuf::from("/var/tasks.db"));
        assert!(options.power_loss_safe && options.migrate);
        for wrong in ["sqlite:", "sqlite:?sync=normal", "redis://x", "sqlite:a?sync=off", "sqlite:a?x=1"] {
            assert!(SqliteOptions::from_url(wrong).is_err(), "{wrong}");
        }
    }
}
