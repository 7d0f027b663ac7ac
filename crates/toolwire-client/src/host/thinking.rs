//! The clock that stands still while somebody thinks.
//!
//! A legacy server that is called may ask a person before it answers. That time is not the server's, so the
//! timeouts of calls leave it out.

use std::{sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::lock::lock;

#[derive(Debug, Default)]
pub(crate) struct Thinking(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many handlers run.
    running: usize,
    /// Since when at least one does.
    since: Option<Instant>,
    /// The time of earlier ones.
    total: Duration,
}

/// Somebody thinks as long as this lives.
#[derive(Debug)]
pub(crate) struct Thought<'a>(&'a Thinking);

impl Thinking {
    pub(crate) fn begin(&self) -> Thought<'_> {
        let mut state = lock(&self.0);
        state.running += 1;
        state.since.get_or_insert_with(Instant::now);
        Thought(self)
    }

    /// For how long somebody has been thinking, all in all.
    pub(crate) fn time(&self) -> Duration {
        let state = lock(&self.0);
        state.total + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for Thought<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.running -= 1;
        if state.running == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn overlapping_thoughts_count_once() {
        let thinking = Thinking::default();
        let second = Duration::from_secs(1);
        advance(second).await;
        let first = thinking.begin();
        advance(second).await;
        let other = thinking.begin();
        advance(second).await;
        drop(first);
        assert_eq!(thinking.time(), 2 * second);
        advance(second).await;
        drop(other);
        advance(second).await;
        assert_eq!(thinking.time(), 3 * second);
    }
}
