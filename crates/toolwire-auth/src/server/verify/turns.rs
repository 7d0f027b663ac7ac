//! Turns for what can be done only so often at once, with a share for each place that requests come from.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use toolwire_server::CallerKey;

/// Turns, and those that each place has of them. A place has no entry unless it has a turn or waits for one.
pub(super) struct Turns {
    all: Semaphore,
    of_peer: usize,
    peers: Mutex<HashMap<CallerKey, Share>>,
}

/// The turns of a place, and the number of those that have one or wait for one.
struct Share {
    turns: Arc<Semaphore>,
    users: usize,
}

/// A turn, until it is dropped.
pub(super) struct Turn<'a> {
    _of_all: SemaphorePermit<'a>,
    _of_peer: Option<OfPeer<'a>>,
}

/// The share of one place, from when it begins to wait.
struct OfPeer<'a> {
    turns: &'a Turns,
    peer: &'a CallerKey,
    share: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// So many at once, and so many of them for one place.
    pub(super) fn new(at_once: usize, of_peer: usize) -> Self {
        Self { all: Semaphore::new(at_once), of_peer, peers: Mutex::default() }
    }

    /// Waits for a turn. Whoever comes from a place that has its share already waits behind that place alone. `None` is
    /// never given.
    pub(super) async fn take<'a>(&'a self, peer: Option<&'a CallerKey>) -> Option<Turn<'a>> {
        let of_peer = match peer {
            Some(peer) => Some(self.share_of(peer).wait().await?),
            None => None,
        };
        Some(Turn { _of_all: self.all.acquire().await.ok()?, _of_peer: of_peer })
    }

    fn share_of<'a>(&'a self, peer: &'a CallerKey) -> OfPeer<'a> {
        let new = || Share { turns: Arc::new(Semaphore::new(self.of_peer)), users: 0 };
        let mut peers = self.lock();
        let share = peers.entry(peer.clone()).or_insert_with(new);
        share.users += 1;
        OfPeer { turns: self, peer, share: Arc::clone(&share.turns), permit: None }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallerKey, Share>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OfPeer<'_> {
    async fn wait(mut self) -> Option<Self> {
        self.permit = Some(Arc::clone(&self.share).acquire_owned().await.ok()?);
        Some(self)
    }
}

impl Drop for OfPeer<'_> {
    fn drop(&mut self) {
        // Given back first: no place has more than its share when the entry goes.
        drop(self.permit.take());
        let mut peers = self.turns.lock();
        let Some(share) = peers.get_mut(self.peer) else { return };
        share.users -= 1;
        if share.users == 0 {
            peers.remove(self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_has_its_share_and_no_more_and_is_forgotten() {
        let (turns, [eve, ada]) = (
            Turns::new(3, 2),
            ["192.0.2.1", "192.0.2.2"].map(|address| CallerKey::address(address.parse().unwrap())),
        );
        let now = async |peer| {
            tokio::select! {
                biased;
                turn = turns.take(peer) => turn,
                () = std::future::ready(()) => None,
            }
        };
        let hers = (now(Some(&eve)).await.unwrap(), now(Some(&eve)).await.unwrap());
        assert!(now(Some(&eve)).await.is_none());
        let other = now(Some(&ada)).await.unwrap();
        assert!(now(None).await.is_none(), "all are taken");
        assert_eq!(turns.lock().len(), 2);
        drop(hers.0);
        assert!(now(None).await.is_some());
        assert!(now(Some(&eve)).await.is_some());
        drop((hers.1, other));
        assert!(turns.lock().is_empty());
    }
}
