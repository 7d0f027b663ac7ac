//! For how long an HTTP/1 connection has waited for a request, or for the rest of its headers.
//!
//! The HTTP implementation has a clock for this as well, but to start it after each response, it goes through the whole
//! connection once more. Here nothing is started and stopped for a request. It is only noted when something was
//! last written, and one alarm looks at that when it rings.

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// What is known of one connection. Clones are about the same one.
#[derive(Clone, Debug)]
pub(crate) struct Idle(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// How many requests have come and are not answered.
    serving: usize,
    /// Whether the peer has to take something before more can be written. That has a clock of its own.
    stalled: bool,
    /// When something was written last, or else when the connection began.
    written: Instant,
}

/// A request that is being served, until this is dropped.
#[derive(Debug)]
pub(crate) struct Serving(Idle);

impl Idle {
    pub(crate) fn new() -> Self {
        let state = State { serving: 0, stalled: false, written: Instant::now() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// A request has come.
    pub(crate) fn serving(&self) -> Serving {
        self.lock().serving += 1;
        Serving(self.clone())
    }

    /// Something was written.
    pub(crate) fn written(&self) {
        let mut state = self.lock();
        state.stalled = false;
        state.written = Instant::now();
    }

    /// Nothing can be written until the peer has taken something.
    pub(crate) fn stalled(&self) {
        self.lock().stalled = true;
    }

    /// Resolves when no request has come for so long after the last one was answered.
    pub(crate) async fn for_long(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let Some(end) = self.since(now).checked_add(limit) else { return pending().await };
            if end <= now {
                return;
            }
            // Whatever happens meanwhile, it does not have to end sooner.
            sleep_until(end).await;
        }
    }

    fn since(&self, now: Instant) -> Instant {
        let state = self.lock();
        if state.serving > 0 || state.stalled { now } else { state.written }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.lock().serving -= 1;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const LONG: Duration = Duration::from_secs(1000);

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_nothing_comes() {
        let start = Instant::now();
        Idle::new().for_long(LIMIT).await;
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn it_begins_again_with_what_is_written() {
        let idle = Idle::new();
        let start = Instant::now();
        let writing = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                idle.written();
            }
        };
        tokio::join!(writing, idle.for_long(LIMIT));
        assert_eq!(start.elapsed().as_secs(), 90);
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_end_while_a_request_is_served_or_the_peer_does_not_read() {
        let idle = Idle::new();
        let serving = idle.serving();
        assert!(timeout(LONG, idle.for_long(LIMIT)).await.is_err());
        idle.stalled();
        drop(serving);
        assert!(timeout(LONG, idle.for_long(LIMIT)).await.is_err());
        idle.written();
        let start = Instant::now();
        advance(Duration::from_secs(10)).await;
        idle.for_long(LIMIT).await;
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_without_an_end_never_ends() {
        assert!(timeout(LONG, Idle::new().for_long(Duration::MAX)).await.is_err());
    }
}
