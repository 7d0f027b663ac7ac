//! What an endpoint offers, as far as classifying a message depends on it.

use std::collections::BTreeSet;

use crate::{ServerCapability, Version};

/// The versions and methods an endpoint serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Served {
    /// Every served version, oldest first.
    pub versions: Vec<Version>,
    /// What the server advertises.
    pub capabilities: CapabilitySet,
    /// Methods outside the table, for instance of extensions.
    pub custom_methods: BTreeSet<Box<str>>,
}

impl Served {
    /// Serves `versions`, in whatever order they are given.
    pub fn new(versions: impl IntoIterator<Item = Version>) -> Self {
        let given: Vec<_> = versions.into_iter().collect();
        Self {
            versions: Version::ALL.into_iter().filter(|version| given.contains(version)).collect(),
            capabilities: CapabilitySet::default(),
            custom_methods: BTreeSet::new(),
        }
    }

    /// Whether `version` is served.
    pub fn has(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }

    /// Whether a method outside the table is served.
    pub fn has_custom(&self, method: &str) -> bool {
        self.custom_methods.contains(method)
    }

    /// The newest served version that starts with `initialize`.
    pub fn latest_legacy(&self) -> Option<Version> {
        self.versions.iter().rev().copied().find(|version| !version.is_modern())
    }

    /// The version to answer an `initialize` with: the one asked for, or else our newest legacy one.
    pub fn negotiate(&self, requested: &str) -> Option<Version> {
        let asked =
            requested.parse().ok().filter(|version: &Version| !version.is_modern() && self.has(*version));
        asked.or_else(|| self.latest_legacy())
    }

    /// Every served version, newest first, so that the modern ones lead.
    pub fn modern_first(&self) -> Vec<Version> {
        self.versions.iter().rev().copied().collect()
    }

    /// The served modern versions, newest first.
    pub fn modern_only(&self) -> Vec<Version> {
        self.versions.iter().rev().copied().filter(|version| version.is_modern()).collect()
    }
}

/// Every version, no capabilities.
impl Default for Served {
    fn default() -> Self {
        Self::new(Version::ALL)
    }
}

/// A set of [`ServerCapability`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilitySet(u16);

impl CapabilitySet {
    /// Adds or removes a capability.
    pub fn set(&mut self, capability: ServerCapability, on: bool) {
        let bit = Self::bit(capability);
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }

    /// Whether the capability is in the set.
    pub fn has(self, capability: ServerCapability) -> bool {
        self.0 & Self::bit(capability) != 0
    }

    const fn bit(capability: ServerCapability) -> u16 {
        1 << capability as u16
    }
}

impl FromIterator<ServerCapability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = ServerCapability>>(capabilities: I) -> Self {
        let mut set = Self::default();
        for capability in capabilities {
            set.set(capability, true);
        }
        set
    }
}
