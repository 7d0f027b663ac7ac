//! What time it is, for the response cache.

use std::{fmt, time::Instant};

/// Tells the time. Tests that want to see a cached result grow old bring their own.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present moment; it never goes backwards.
    fn now(&self) -> Instant;
}

/// The clock of the runtime, which stands still where a test has paused it.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to configure")]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}
