//! Where requests come from, and how many connections may come from one place.

use std::{
    collections::HashMap,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::request::Parts;
use toolwire_server::CallerKey;

/// The address that a request came from, among the extensions of the request.
///
/// [`HttpService::serve`](super::HttpService::serve) puts it there, unless the endpoint is
/// [behind a proxy](super::HttpBuilder::behind_proxy): then all requests would come from the same place. An endpoint that is
/// served by another HTTP server finds it with [`peer_addr`](super::HttpBuilder::peer_addr), or has it from a layer that puts
/// it there. Requests with neither an address nor a [`Principal`](super::Principal) are refused, unless the endpoint is
/// [without addresses](super::HttpBuilder::without_peer_addresses).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "an address with a name")]
pub struct PeerAddr(pub SocketAddr);

impl PeerAddr {
    /// Whom requests from there are counted against, where they have no principal.
    pub fn caller(self) -> CallerKey {
        CallerKey::address(self.0.ip())
    }
}

/// A function that finds the address of a client in the head of a request.
#[derive(Clone)]
pub(crate) struct FindPeer(Arc<Find>);

type Find = dyn Fn(&Parts) -> Option<SocketAddr> + Send + Sync;

impl FindPeer {
    pub(crate) fn new(find: impl Fn(&Parts) -> Option<SocketAddr> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// Gives a request its [`PeerAddr`], instead of the one that it may have from its connection or from a layer. Returns
    /// `false` if the address cannot be found.
    pub(crate) fn note(&self, parts: &mut Parts) -> bool {
        let found = (self.0)(parts);
        if let Some(address) = found {
            parts.extensions.insert(PeerAddr(address));
        }
        found.is_some()
    }
}

impl fmt::Debug for FindPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FindPeer")
    }
}

/// How much of something each place has taken. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct AddressShares {
    limit: usize,
    taken: Arc<Mutex<HashMap<CallerKey, usize>>>,
}

/// One of those, until it is dropped.
#[derive(Debug)]
pub(crate) struct AddressShare {
    shares: AddressShares,
    caller: CallerKey,
}

impl AddressShares {
    /// No place takes more than `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: Arc::default() }
    }

    /// Takes one more for the place of `peer`, if it has not taken its share already.
    pub(crate) fn take(&self, peer: PeerAddr) -> Option<AddressShare> {
        self.take_for(peer.caller())
    }

    /// The same for whoever else a request is counted against.
    pub(crate) fn take_for(&self, caller: CallerKey) -> Option<AddressShare> {
        let mut taken = self.lock();
        let count = taken.get(&caller).copied().unwrap_or(0);
        if count >= self.limit {
            return None;
        }
        taken.insert(caller.clone(), count + 1);
        Some(AddressShare { shares: self.clone(), caller })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallerKey, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        match taken.get_mut(&self.caller) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> PeerAddr {
        PeerAddr(SocketAddr::new(address.parse().unwrap(), 1))
    }

    #[test]
    fn nobody_takes_more_than_a_share_and_nothing_is_left_of_it() {
        let shares = AddressShares::new(2);
        let first = shares.take(peer("192.0.2.1")).unwrap();
        let second = shares.take(peer("192.0.2.1")).unwrap();
        assert!(shares.take(peer("192.0.2.1")).is_none());
        let other = shares.take(peer("192.0.2.2")).unwrap();
        drop(first);
        let third = shares.take(peer("192.0.2.1")).unwrap();
        assert!(shares.take(peer("192.0.2.1")).is_none());
        drop((second, third, other));
        assert!(shares.lock().is_empty());
        assert!(AddressShares::new(0).take(peer("192.0.2.1")).is_none());
    }
}
