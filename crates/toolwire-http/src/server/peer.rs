//! Where requests come from, and how many connections may come from one place.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The address that a request came from, among the extensions of the request.
///
/// [`HttpService::serve`](super::HttpService::serve) puts it there, unless the endpoint is
/// [behind a proxy](super::HttpBuilder::behind_proxy): then all requests would come from the same place. Whoever serves
/// connections otherwise, or knows the client's address from a header of a trusted proxy, puts it there in a layer:
///
/// ```
/// use std::net::SocketAddr;
///
/// use axum::extract::{ConnectInfo, Request};
/// use toolwire_http::server::PeerAddr;
///
/// fn note_peer(mut request: Request) -> Request {
///     if let Some(&ConnectInfo(address)) = request.extensions().get::<ConnectInfo<SocketAddr>>() {
///         request.extensions_mut().insert(PeerAddr(address));
///     }
///     request
/// }
/// # let _ = note_peer;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "an address with a name")]
pub struct PeerAddr(pub SocketAddr);

impl PeerAddr {
    /// What tells one client from another: the whole address of IPv4, and the first half of one of IPv6, since whoever
    /// has one of those has all that begin with it.
    pub fn network(self) -> IpAddr {
        match self.0.ip().to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address @ IpAddr::V4(_) => address,
        }
    }
}

/// How much of something each place has taken. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct AddressShares {
    limit: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One of those, until it is dropped.
#[derive(Debug)]
pub(crate) struct AddressShare {
    shares: AddressShares,
    network: IpAddr,
}

impl AddressShares {
    /// No place takes more than `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: Arc::default() }
    }

    /// Takes one more for the place of `peer`, if it has not taken its share already.
    pub(crate) fn take(&self, peer: PeerAddr) -> Option<AddressShare> {
        let network = peer.network();
        let mut taken = self.lock();
        let count = taken.get(&network).copied().unwrap_or(0);
        if count >= self.limit {
            return None;
        }
        taken.insert(network, count + 1);
        Some(AddressShare { shares: self.clone(), network })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        match taken.get_mut(&self.network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(&self.network);
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
    fn a_place_is_an_address_or_the_half_of_one() {
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("::1", "127.0.0.1", false),
        ] {
            assert_eq!(peer(one).network() == peer(other).network(), same, "{one} {other}");
        }
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
