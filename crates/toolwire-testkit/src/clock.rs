//! A clock that a test moves by hand.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use toolwire_client::Clock;

/// A [`Clock`] that stands still until it is told to go on. Clones are the same clock.
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

impl Clock for FakeClock {
    fn now(&self) -> Instant {
        self.start + *self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
