//! Measures how long handlers of this client have been running.
//!
//! A server that is called may ask a person before it answers. That time is not the server's, so the
//! timeouts of calls leave it out.

use std::{sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::lock::lock;

#[derive(Debug, Default)]
pub(crate) struct HandlerClock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many handlers run.
    running: usize,
    /// Since when at least one does.
    since: Option<Instant>,
    /// The time of earlier ones.
    total: Duration,
}

/// A handler runs as long as this lives.
#[derive(Debug)]
pub(crate) struct HandlerRunning<'a>(&'a HandlerClock);

impl HandlerClock {
    pub(crate) fn begin(&self) -> HandlerRunning<'_> {
        self.start();
        HandlerRunning(self)
    }

    /// Something begins that has to be ended by [`end`](Self::end).
    pub(crate) fn start(&self) {
        let mut state = lock(&self.0);
        state.running += 1;
        state.since.get_or_insert_with(Instant::now);
    }

    pub(crate) fn end(&self) {
        let mut state = lock(&self.0);
        state.running -= 1;
        if state.running == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
        }
    }

    /// For how long at least one handler has been running, all in all.
    pub(crate) fn time(&self) -> Duration {
        let state = lock(&self.0);
        state.total + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for HandlerRunning<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn overlapping_handlers_count_once() {
        let clock = HandlerClock::default();
        let second = Duration::from_secs(1);
        advance(second).await;
        let first = clock.begin();
        advance(second).await;
        let other = clock.begin();
        advance(second).await;
        drop(first);
        assert_eq!(clock.time(), 2 * second);
        advance(second).await;
        drop(other);
        advance(second).await;
        assert_eq!(clock.time(), 3 * second);
    }
}
