//! Which addresses may be reached.
//!
//! A server on the internet has no business naming addresses inside the network of its client: the client can reach
//! them, the server cannot, and that is all an attacker needs. So what a server names may not lie further inside than
//! the server itself.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

use url::{Host, Origin, Url};

/// How far inside an address lies; what is greater is further inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Zone {
    /// On the internet.
    Public,
    /// In a private network.
    Private,
    /// On the same wire: among others, what clouds tell their machines (`169.254.169.254`).
    LinkLocal,
    /// On this machine.
    Loopback,
}

impl Zone {
    /// Where an address lies; `None` for those that nobody is at, such as multicast and reserved ones.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Option<Self> {
        match address.octets() {
            // 0.0.0.0 is this machine, too, for many systems.
            [0 | 127, ..] => Some(Self::Loopback),
            [169, 254, ..]
            // What Azure, Alibaba and Oracle tell their machines.
            | [168, 63, 129, 16]
            | [100, 100, 100, 200]
            | [192, 0, 0, 192] => Some(Self::LinkLocal),
            [10, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            // Between providers and their customers, and for tests of networks.
            | [100, 64..=127, ..]
            | [198, 18 | 19, ..]
            // For protocols and documents; whoever has something there has it inside.
            | [192, 0, 0 | 2, _]
            | [198, 51, 100, _]
            | [203, 0, 113, _] => Some(Self::Private),
            // Multicast, reserved, broadcast.
            [224..=255, ..] => None,
            _ => Some(Self::Public),
        }
    }

    fn of_v6(address: Ipv6Addr) -> Option<Self> {
        let segments = address.segments();
        match segments {
            // Unspecified and loopback.
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some(Self::Loopback),
            // IPv4 in IPv6: compatible, mapped, translated, and by NAT64.
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
            | [0, 0, 0, 0, 0xffff, 0, high, low]
            | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            // 6to4.
            | [0x2002, high, low, ..] => Self::of_v4(embedded(high, low)),
            [0xfe80..=0xfebf, ..]
            // What Amazon and Google tell their machines.
            | [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
            | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => Some(Self::LinkLocal),
            // NAT64 of one's own network, and tunnels: where they lead cannot be seen. Then those for documents, and
            // unique local and, as they were once called, site local ones.
            [0x64, 0xff9b, 1, ..]
            | [0x2001, 0 | 0xdb8, ..]
            | [0x3fff, 0..=0xfff, ..]
            | [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Some(Self::Private),
            [0x2000..=0x3fff, ..] => Some(Self::Public),
            _ => None,
        }
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

/// How far inside a server is, and so how far inside what it names may lie. Clones share what they have learnt.
///
/// A name says nothing about where it leads: whoever owns it can change that between two look-ups. So a server with a
/// name counts as public until a connection to it was made elsewhere, and whoever was once met outside stays outside.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The server's own origin, if it is known.
    origin: Option<Origin>,
    known: Arc<Mutex<Known>>,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    /// It has a name, and nobody has been there.
    Nothing,
    At(Zone),
}

impl Reach {
    /// As far as the server at this URL may lead, for all that the URL says.
    pub fn of(server: &Url) -> Self {
        let known = match server.host() {
            Some(Host::Ipv4(address)) => Zone::of(address.into()).map_or(Known::Nothing, Known::At),
            Some(Host::Ipv6(address)) => Zone::of(address.into()).map_or(Known::Nothing, Known::At),
            Some(Host::Domain(name)) if is_localhost(name) => Known::At(Zone::Loopback),
            Some(Host::Domain(_)) | None => Known::Nothing,
        };
        Self { origin: Some(server.origin()), known: Arc::new(Mutex::new(known)) }
    }

    /// The same if nothing could be seen in the URL.
    #[cfg(test)]
    pub(super) fn of_name(server: &Url) -> Self {
        Self { origin: Some(server.origin()), known: Arc::new(Mutex::new(Known::Nothing)) }
    }

    /// As far as a server in this zone may lead.
    pub fn within(zone: Zone) -> Self {
        Self { origin: None, known: Arc::new(Mutex::new(Known::At(zone))) }
    }

    /// Takes note of where connections to the server itself were made to.
    pub fn learn(&self, reached: &[IpAddr]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for address in reached {
            let zone = Zone::of(*address).unwrap_or(Zone::Public);
            *known = match *known {
                Known::Nothing => Known::At(zone),
                Known::At(before) => Known::At(before.min(zone)),
            };
        }
    }

    /// Whether a URL is of the server itself.
    pub(super) fn is_server(&self, url: &Url) -> bool {
        self.origin.as_ref() == Some(&url.origin())
    }

    /// How far inside the server is.
    pub fn zone(&self) -> Zone {
        match *self.known.lock().unwrap_or_else(PoisonError::into_inner) {
            Known::Nothing => Zone::Public,
            Known::At(zone) => zone,
        }
    }

    /// Returns whether what the server names may be at this URL, as far as the URL itself says where it leads.
    pub(crate) fn allows_url(&self, url: &Url) -> bool {
        match url.host() {
            _ if self.is_server(url) => true,
            Some(Host::Ipv4(address)) => self.allows(address.into()),
            Some(Host::Ipv6(address)) => self.allows(address.into()),
            Some(Host::Domain(_)) => !is_loopback(url) || self.zone() == Zone::Loopback,
            None => false,
        }
    }

    /// Whether what the server names may be at this address.
    pub fn allows(&self, address: IpAddr) -> bool {
        Zone::of(address).is_some_and(|zone| zone <= self.zone())
    }
}

/// Whether a name is this machine's by definition (RFC 6761, 6.3).
pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether the host of a URL is this machine by what is written there.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => Zone::of(address.into()) == Some(Zone::Loopback),
        Some(Host::Ipv6(address)) => Zone::of(address.into()) == Some(Zone::Loopback),
        Some(Host::Domain(name)) => is_localhost(name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(text: &str) -> Option<Zone> {
        Zone::of(text.parse().unwrap())
    }

    #[test]
    fn addresses_lie_where_they_lead() {
        let cases = [
            ("8.8.8.8", Some(Zone::Public)),
            ("172.15.0.1", Some(Zone::Public)),
            ("172.32.0.1", Some(Zone::Public)),
            ("2606:4700::1111", Some(Zone::Public)),
            ("10.0.0.1", Some(Zone::Private)),
            ("172.16.0.1", Some(Zone::Private)),
            ("192.168.1.1", Some(Zone::Private)),
            ("100.64.0.1", Some(Zone::Private)),
            ("fd00::1", Some(Zone::Private)),
            ("2001:db8::1", Some(Zone::Private)),
            ("2001::1", Some(Zone::Private)),
            ("64:ff9b:1::7f00:1", Some(Zone::Private)),
            ("169.254.169.254", Some(Zone::LinkLocal)),
            ("168.63.129.16", Some(Zone::LinkLocal)),
            ("168.63.129.17", Some(Zone::Public)),
            ("100.100.100.200", Some(Zone::LinkLocal)),
            ("192.0.0.192", Some(Zone::LinkLocal)),
            ("fd00:ec2::254", Some(Zone::LinkLocal)),
            ("fd20:ce::254", Some(Zone::LinkLocal)),
            ("fd00:ec2::255", Some(Zone::Private)),
            ("fe80::1", Some(Zone::LinkLocal)),
            ("127.8.8.8", Some(Zone::Loopback)),
            ("0.0.0.0", Some(Zone::Loopback)),
            ("::1", Some(Zone::Loopback)),
            ("::", Some(Zone::Loopback)),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("ff02::1", None),
            ("4000::1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(zone(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_inside_of_addresses_are_unwrapped() {
        for text in
            ["::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1"]
        {
            assert_eq!(zone(text), Some(Zone::LinkLocal), "{text}");
        }
        assert_eq!(zone("::ffff:127.0.0.1"), Some(Zone::Loopback));
        assert_eq!(zone("::ffff:0:127.0.0.1"), Some(Zone::Loopback));
        assert_eq!(zone("64:ff9b::10.1.2.3"), Some(Zone::Private));
        assert_eq!(zone("2002:0808:0808::1"), Some(Zone::Public));
    }

    #[test]
    fn a_name_says_nothing_until_somebody_was_met_there_and_the_outermost_place_counts() {
        let reach = |text: &str| Reach::of(&Url::parse(text).unwrap());
        assert_eq!(reach("https://mcp.example/").zone(), Zone::Public);
        assert_eq!(reach("https://10.0.0.1/").zone(), Zone::Private);
        assert_eq!(reach("http://localhost:80/").zone(), Zone::Loopback);
        assert_eq!(reach("http://[::1]/").zone(), Zone::Loopback);
        assert_eq!(reach("http://0x7f000001/").zone(), Zone::Loopback);

        let inside = reach("https://mcp.corp.example/");
        inside.learn(&["10.1.1.1".parse().unwrap()]);
        assert!(inside.allows("10.2.2.2".parse().unwrap()) && inside.allows("8.8.8.8".parse().unwrap()));
        assert!(!inside.allows("127.0.0.1".parse().unwrap()));
        assert!(!inside.allows("169.254.169.254".parse().unwrap()));

        // A name that leads outside first and inside later does not get inside by it.
        let rebound = reach("https://evil.example/");
        rebound.learn(&["203.0.114.1".parse().unwrap()]);
        rebound.clone().learn(&["127.0.0.1".parse().unwrap()]);
        assert_eq!(rebound.zone(), Zone::Public);
    }
}
