//! Whom a request is counted against.

use std::net::{IpAddr, Ipv6Addr};

use crate::{Extensions, Principal, PrincipalKey};

/// Whom a request is counted against: the principal, if it is known, or else the address it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallerKey(Key);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Principal(PrincipalKey),
    Address(IpAddr),
}

impl CallerKey {
    /// A caller who has proved who it is.
    pub fn principal(key: PrincipalKey) -> Self {
        Self(Key::Principal(key))
    }

    /// What a transport has found out of a caller: its principal, or else the key among the extensions.
    pub fn of(extensions: &Extensions) -> Option<Self> {
        Self::of_principal(extensions).or_else(|| extensions.get::<Self>().cloned())
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
    fn a_principal_is_never_an_address() {
        assert_ne!(CallerKey::principal(Principal::new("192.0.2.1").key()), key("192.0.2.1"));
    }
}
