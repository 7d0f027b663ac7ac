//! What a store in memory takes the time from.

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

/// The time of a store. Tests and simulations have clocks of their own.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// The clock of the tokio runtime: it stands still where that is paused, and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeClock {
    began: Instant,
    began_ms: u64,
}

impl RuntimeClock {
    /// One that shows the time of the machine now.
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::at(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// One that shows this many milliseconds since 1970 now.
    pub fn at(now_ms: u64) -> Self {
        Self { began: Instant::now(), began_ms: now_ms }
    }
}

impl Default for RuntimeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RuntimeClock {
    fn now_ms(&self) -> u64 {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.began_ms.saturating_add(elapsed)
    }
}
