//! What servers turned out to speak, so that they need not be asked again.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

use toolwire_protocol::Version;

use crate::lock::lock;

/// How many servers an [`EraCache`] remembers.
const MAX_REMEMBERED_SERVERS: usize = 256;

/// The versions that servers spoke, by what they are known as, such as their command.
///
/// Share one between clients: a legacy server that is known is not asked for what it does not understand. When
/// a server has changed its mind, it is asked again. Of more than 256 servers, the oldest is forgotten.
#[derive(Debug, Default)]
pub struct EraCache {
    state: Mutex<State>,
}

/// What an [`EraCache`] knows of a server, for programs that keep it beyond their own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remembered {
    /// The version it spoke.
    pub version: Version,
    /// Whether it does not survive `server/discover`; see
    /// [`Client::dies_on_discover`](crate::Client::dies_on_discover).
    pub dies_on_discover: bool,
}

impl Remembered {
    /// A server that spoke this version.
    pub const fn new(version: Version) -> Self {
        Self { version, dies_on_discover: false }
    }

    /// Says whether it does not survive `server/discover`.
    #[must_use]
    pub const fn dies_on_discover(mut self, dies: bool) -> Self {
        self.dies_on_discover = dies;
        self
    }
}

impl From<Version> for Remembered {
    fn from(version: Version) -> Self {
        Self::new(version)
    }
}

#[derive(Debug, Default)]
struct State {
    servers: HashMap<String, Remembered>,
    order: VecDeque<String>,
}

impl EraCache {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The version the server spoke.
    pub fn version(&self, key: &str) -> Option<Version> {
        self.get(key).map(|remembered| remembered.version)
    }

    /// What is known of the server.
    pub fn get(&self, key: &str) -> Option<Remembered> {
        lock(&self.state).servers.get(key).copied()
    }

    /// Remembers the version of a server, or more about it.
    pub fn remember(&self, key: impl Into<String>, server: impl Into<Remembered>) {
        let key = key.into();
        let mut state = lock(&self.state);
        if state.servers.insert(key.clone(), server.into()).is_none() {
            state.order.push_back(key);
        }
        if state.servers.len() > MAX_REMEMBERED_SERVERS
            && let Some(oldest) = state.order.pop_front()
        {
            state.servers.remove(&oldest);
        }
    }

    /// Forgets a server.
    pub fn forget(&self, key: &str) {
        let mut state = lock(&self.state);
        state.servers.remove(key);
        state.order.retain(|other| other != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let eras = EraCache::new();
        for number in 0..=MAX_REMEMBERED_SERVERS {
            eras.remember(number.to_string(), Version::LATEST);
        }
        assert_eq!(eras.version("0"), None);
        assert_eq!(eras.version("1"), Some(Version::LATEST));
        eras.remember("1", Version::V2025_06_18);
        assert_eq!(eras.version("1"), Some(Version::V2025_06_18));
        eras.forget("1");
        assert_eq!(eras.version("1"), None);
    }
}
