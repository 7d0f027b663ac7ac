//! A socket to a host: its addresses are tried in turn, and the first that answers is taken.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time::sleep,
};
use url::Host;

use super::error::{Kind, NetError, connecting};

/// How often a quiet connection is asked whether it is still there. One that died without a word must not keep a
/// stream waiting for ever.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How long one address has to answer before the next one is tried beside it (RFC 8305, section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// How many addresses of one host are tried.
const MAX_ADDRESSES: usize = 16;

/// Says which addresses may be reached.
#[derive(Clone, Default)]
pub(crate) struct AddressFilter(Option<Arc<dyn Fn(IpAddr) -> bool + Send + Sync>>);

impl AddressFilter {
    pub(crate) fn new(allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(allowed)))
    }

    fn allows(&self, address: IpAddr) -> bool {
        // An IPv4 address that is written as an IPv6 one is the same place.
        self.0.as_ref().is_none_or(|allowed| allowed(address.to_canonical()))
    }
}

impl fmt::Debug for AddressFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some" } else { "All" })
    }
}

/// Connects to a host, at an address that the filter lets pass.
pub(super) async fn connect(
    host: &Host<String>,
    port: u16,
    filter: &AddressFilter,
) -> Result<TcpStream, NetError> {
    connect_by(resolve, host, port, filter).await
}

/// Connects to a host whose name is looked up like this, once.
async fn connect_by(
    resolve: impl AsyncFnOnce(&str, u16) -> Result<Vec<SocketAddr>, NetError>,
    host: &Host<String>,
    port: u16,
    filter: &AddressFilter,
) -> Result<TcpStream, NetError> {
    let addresses = match host {
        Host::Ipv4(address) => vec![SocketAddr::from((*address, port))],
        Host::Ipv6(address) => vec![SocketAddr::from((*address, port))],
        Host::Domain(name) => resolve(name, port).await?,
    };
    // What was looked up is what is connected to: a second look-up could say something else.
    let allowed: Vec<_> = addresses.into_iter().filter(|address| filter.allows(address.ip())).collect();
    if allowed.is_empty() {
        return Err(NetError::unsent(
            Kind::Forbidden,
            format!("{host} is at no address that may be reached"),
        ));
    }
    let stream = first_of(in_turns(allowed)).await?;
    settle(&stream);
    Ok(stream)
}

async fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, NetError> {
    let unknown = |why: String| NetError::unsent(Kind::Dns, format!("the host {name} is not known{why}"));
    let found = lookup_host((name, port)).await.map_err(|error| unknown(format!(": {error}")))?;
    let addresses: Vec<_> = found.take(MAX_ADDRESSES).collect();
    if addresses.is_empty() { Err(unknown(String::new())) } else { Ok(addresses) }
}

/// The two families in turns, beginning with the one that the system prefers.
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut turns = Vec::with_capacity(first.len() + second.len());
    loop {
        match (first.next(), second.next()) {
            (None, None) => return turns,
            pair => turns.extend([pair.0, pair.1].into_iter().flatten()),
        }
    }
}

/// Tries the next address when one fails, and beside it when it takes its time.
async fn first_of(addresses: Vec<SocketAddr>) -> Result<TcpStream, NetError> {
    let mut waiting = addresses.into_iter();
    // Those that are still trying end with this.
    let mut trying = JoinSet::new();
    let mut failed = None;
    loop {
        match waiting.next() {
            Some(address) => {
                trying.spawn(TcpStream::connect(address));
            }
            None if trying.is_empty() => {
                let error = failed.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
                return Err(NetError::unsent(connecting(&error), error.to_string()));
            }
            None => {}
        }
        tokio::select! {
            Some(done) = trying.join_next() => match done {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failed = Some(error),
                Err(error) => failed = Some(error.into()),
            },
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

fn settle(stream: &TcpStream) {
    // A system that knows neither is slower, and nothing else.
    let _ = stream.set_nodelay(true);
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keep_alive);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    fn all(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns() {
        let mixed = all(&["[::1]:1", "[::2]:1", "[::3]:1", "127.0.0.1:1", "127.0.0.2:1"]);
        let expected = all(&["[::1]:1", "127.0.0.1:1", "[::2]:1", "127.0.0.2:1", "[::3]:1"]);
        assert_eq!(in_turns(mixed), expected);
        assert_eq!(in_turns(Vec::new()), Vec::new());
    }

    #[tokio::test]
    async fn an_address_that_refuses_is_followed_by_the_next() {
        // It is bound and does not listen.
        let refusing = TcpSocket::new_v4().unwrap();
        refusing.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = vec![refusing.local_addr().unwrap(), there.local_addr().unwrap()];
        let stream = first_of(addresses.clone()).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there.local_addr().unwrap());
        let error = first_of(addresses[..1].to_vec()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
    }

    #[tokio::test]
    async fn only_what_the_filter_lets_pass_is_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let public = AddressFilter::new(|address| !address.is_loopback());
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
            let host = Host::parse(host).unwrap();
            let error = connect(&host, port, &public).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Forbidden, "{host}");
        }
        connect(&Host::parse("127.0.0.1").unwrap(), port, &AddressFilter::default()).await.unwrap();
    }

    /// DNS rebinding: the name is that of an allowed address when it is looked up first, and of another afterwards.
    #[tokio::test]
    async fn a_name_that_changes_between_look_ups_leads_to_no_address_that_the_filter_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fine = listener.local_addr().unwrap();
        let inside = SocketAddr::from(([127, 0, 0, 2], fine.port()));
        let filter = AddressFilter::new(move |address| address == fine.ip());
        let host = Host::parse("rebound.example").unwrap();
        let look_ups =
            [(vec![fine], true), (vec![inside], false), (vec![inside, fine], true), (vec![], false)];
        for (addresses, reached) in look_ups {
            let asked = AtomicUsize::new(0);
            let resolve = async |name: &str, _| {
                assert_eq!((name, asked.fetch_add(1, Ordering::Relaxed)), ("rebound.example", 0));
                Ok(addresses.clone())
            };
            match connect_by(resolve, &host, fine.port(), &filter).await {
                Ok(stream) => assert!(reached && stream.peer_addr().unwrap() == fine, "{addresses:?}"),
                Err(error) => assert!(!reached && error.kind() == Kind::Forbidden, "{addresses:?}"),
            }
            assert_eq!(asked.into_inner(), 1, "what is checked and what is connected to is one answer");
        }
    }
}
