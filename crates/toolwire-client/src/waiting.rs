//! The bytes that wait in a client: what a server has sent and nobody has taken yet.
//!
//! They are counted for each connection, so that a server cannot have more by spreading what it sends over many requests,
//! listeners and questions.
//!
//! This is not the waiting of `toolwire-transport`, by which servers refuse what is too much for a caller or the process. A
//! client has asked for what it gets: an answer that is alone is never refused, whatever its size, what can be told in
//! fewer words gives way to it, and whoever reads waits until there is room.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// The name of the limit, for errors.
pub(crate) const WAITING_BYTES: &str = "waiting_bytes";

/// What everything that waits costs beside its text.
const OVERHEAD: usize = 128;

/// Counts the bytes that wait, and refuses what would be too many.
#[derive(Debug)]
pub(crate) struct WaitingBytes {
    used: AtomicUsize,
    limit: usize,
    /// Told when less than half of the limit is in use again.
    room: Notify,
}

/// How much of the limit something may use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Share {
    /// All of it: an answer that somebody waits for.
    All,
    /// A quarter: what can be left out, refused or told in fewer words.
    Quarter,
}

impl WaitingBytes {
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: AtomicUsize::new(0), limit, room: Notify::new() }
    }

    /// How many bytes wait.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Takes `text` bytes into account, if they fit, and gives what has to be [released](Self::release) later.
    ///
    /// When nothing else waits, one message of any size fits.
    pub(crate) fn charge(&self, text: usize, share: Share) -> Option<usize> {
        let bytes = text.saturating_add(OVERHEAD);
        let limit = match share {
            Share::All => self.limit,
            Share::Quarter => self.limit / 4,
        };
        let fits = |used: usize| {
            used.checked_add(bytes).filter(|sum| *sum <= limit || (used == 0 && matches!(share, Share::All)))
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok().map(|_| bytes)
    }

    /// The same with a guard that releases them.
    pub(crate) fn guard(self: &Arc<Self>, text: usize, share: Share) -> Option<Charge> {
        let bytes = self.charge(text, share)?;
        Some(Charge { waiting: Arc::clone(self), bytes })
    }

    /// Gives back what [`charge`](Self::charge) gave.
    pub(crate) fn release(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        if before >= self.limit / 2 {
            self.room.notify_waiters();
        }
    }

    /// Whether so much waits that no more should be read for now.
    pub(crate) fn is_crowded(&self) -> bool {
        self.used() > self.limit / 2
    }

    /// Waits until it is no longer [crowded](Self::is_crowded).
    pub(crate) async fn room(&self) {
        loop {
            let mut released = std::pin::pin!(self.room.notified());
            // Listen before looking, or a release between the two would go unnoticed.
            released.as_mut().enable();
            if !self.is_crowded() {
                return;
            }
            released.await;
        }
    }
}

/// Bytes that are accounted for as long as this lives.
#[derive(Debug)]
pub(crate) struct Charge {
    waiting: Arc<WaitingBytes>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.waiting.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_left_out_leaves_room_for_answers() {
        let waiting = Arc::new(WaitingBytes::new(4000));
        let first = waiting.guard(900 - OVERHEAD, Share::Quarter).unwrap();
        assert!(waiting.guard(200, Share::Quarter).is_none());
        let answer = waiting.guard(3100 - OVERHEAD, Share::All).unwrap();
        assert_eq!(waiting.used(), 4000);
        assert!(waiting.is_crowded());
        assert!(waiting.guard(0, Share::All).is_none());
        drop((first, answer));
        assert_eq!(waiting.used(), 0);
    }

    #[test]
    fn one_answer_of_any_size_fits_when_nothing_else_waits() {
        let waiting = Arc::new(WaitingBytes::new(1000));
        assert!(waiting.guard(5000, Share::Quarter).is_none());
        let large = waiting.guard(5000, Share::All).unwrap();
        assert!(waiting.guard(1, Share::All).is_none());
        assert!(Arc::new(WaitingBytes::new(10)).guard(usize::MAX, Share::All).is_some());
        drop(large);
        assert_eq!(waiting.used(), 0);
    }

    #[tokio::test]
    async fn whoever_reads_waits_until_something_was_taken() {
        let waiting = Arc::new(WaitingBytes::new(1000));
        let half = waiting.guard(600, Share::All).unwrap();
        let reader = tokio::spawn({
            let waiting = Arc::clone(&waiting);
            async move { waiting.room().await }
        });
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        assert!(!reader.is_finished());
        drop(half);
        reader.await.unwrap();
    }
}
