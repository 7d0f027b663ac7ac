//! Whom a request is counted against.

use std::net::{IpAddr, Ipv6Addr};

use toolwire_transport::LocalPeer;

use crate::{Extensions, Principal, PrincipalKey};

/// Whom a request is counted against: the principal, if it is known, or else the address or the user of this machine
/// it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallerKey(Key);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Principal(PrincipalKey),
    Address(IpAddr),
    User(u32),
}

impl CallerKey {
    /// A caller who has proved who it is.
    pub fn principal(key: PrincipalKey) -> Self {
        Self(Key::Principal(key))
    }

    /// Returns the key of a caller from what a transport has found out: its principal, or else the key among the extensions, or else the
    /// user of the process at the other end.
    pub fn of(extensions: &Extensions) -> Option<Self> {
        Self::of_principal(extensions).or_else(|| extensions.get::<Self>().cloned()).or_else(|| {
            let peer = extensions.get::<LocalPeer>()?;
            peer.uid.map(Self::user)
        })
    }

    /// The principal among the extensions, and nothing else.
    pub(crate) fn of_principal(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Principal>().map(|principal| Self::principal(principal.key()))
    }

    /// It as bytes, which no other caller has.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Key::Principal(key) => [b"p".as_slice(), key.as_bytes()].concat(),
            Key::Address(address) => format!("a{address}").into_bytes(),
            Key::User(uid) => format!("u{uid}").into_bytes(),
        }
    }

    /// A caller of whom nothing is known but its address. All addresses of an IPv6 network of 64 bits count as
    /// one, because whoever has one of them has all of them.
    pub fn address(address: IpAddr) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 @ IpAddr::V4(_) => v4,
        };
        Self(Key::Address(network))
    }

    /// A process of this user of the machine.
    pub const fn user(uid: u32) -> Self {
        Self(Key::User(uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str) -> CallerKey {
        CallerKey::address(address.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_network_are_one_caller() {
        assert_eq!(key("2001:db8:1:2:3::4"), key("2001:db8:1:2:ffff::1"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
    }

    #[test]
    fn processes_of_one_user_are_one_caller_unless_more_is_known() {
        let mut extensions = Extensions::default();
        extensions.insert(LocalPeer::new());
        assert_eq!(CallerKey::of(&extensions), None);
        extensions.insert(LocalPeer::with_uid(7));
        assert_eq!(CallerKey::of(&extensions), Some(CallerKey::user(7)));
        assert_ne!(CallerKey::user(7).to_bytes(), CallerKey::user(8).to_bytes());
        extensions.insert(key("192.0.2.1"));
        assert_eq!(CallerKey::of(&extensions), Some(key("192.0.2.1")));
    }

    #[test]
    fn a_principal_is_never_an_address() {
        assert_ne!(CallerKey::principal(Principal::new("192.0.2.1").key()), key("192.0.2.1"));
    }
}
