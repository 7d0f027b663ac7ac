//! A clock that a test moves by hand.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use toolwire_client::Clock;

/// A [`Clock`] that stands still until it is told to go on. Clones are the same clock. Stores in memory can go by it, too.
///
/// ```
/// use std::time::Duration;
/// use toolwire_client::Clock;
/// use toolwire_testkit::FakeClock;
///
/// let clock = FakeClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now() - before, Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct FakeClock {
    start: Instant,
    passed: Arc<Mutex<Duration>>,
}

impl FakeClock {
    /// A clock that stands still.
    pub fn new() -> Self {
        Self { start: Instant::now(), passed: Arc::default() }
    }

    /// Lets this much time pass.
    pub fn advance(&self, time: Duration) {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        *passed = passed.saturating_add(time);
    }
}

impl Default for FakeClock {
    fn default() -> Self {
        Self::new()
    }
}

/// What a [`FakeClock`] shows to stores when it is new: a moment in 2027.
const BEGAN_MS: u64 = 1_800_000_000_000;

impl toolwire_store::memory::Clock for FakeClock {
    fn now_ms(&self) -> u64 {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner).as_millis();
        BEGAN_MS.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Instant {
        self.start + *self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
