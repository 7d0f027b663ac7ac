//! The five dated revisions of the protocol, and the two eras they fall into.

use std::{fmt, str::FromStr};

/// A revision of the Model Context Protocol.
///
/// The order is the order of publication. A string that names no revision we know is an error
/// ([`UnknownVersion`]); versions are never compared as text.
///
/// ```
/// use toolwire_protocol::{Era, Version};
///
/// let version: Version = "2025-06-18".parse().unwrap();
/// assert_eq!(version.era(), Era::Legacy);
/// assert!(version < Version::LATEST);
/// assert!("2031-01-01".parse::<Version>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// 2024-11-05: the first revision.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, audio, tool annotations, batches.
    V2025_03_26,
    /// 2025-06-18: elicitation, structured output, resource links; no batches any more.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, sampling with tools, experimental tasks.
    V2025_11_25,
    /// 2026-07-28: stateless requests, multi round-trip requests, subscriptions.
    V2026_07_28,
}

/// The two families of revisions, which differ in how a conversation starts and who may ask whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "code that branches on the era must be told about a third one")]
pub enum Era {
    /// `initialize` handshake, sessions, requests from server to client.
    Legacy,
    /// Every request stands alone and carries its own metadata.
    Modern,
}

impl Era {
    /// What people call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Version {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision that starts with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era this revision belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether this revision belongs to the modern era.
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| UnknownVersion { requested: text.into() })
    }
}

impl serde::Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A version string that names no revision this build knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVersion {
    /// What was asked for.
    pub requested: Box<str>,
}

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown protocol version {:?}; known are", self.requested)?;
        Version::ALL.iter().try_for_each(|version| write!(f, " {version}"))
    }
}

impl std::error::Error for UnknownVersion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_survives_its_text_and_has_its_era() {
        for version in Version::ALL {
            assert_eq!(version.as_str().parse(), Ok(version));
        }
        assert_eq!(Version::ALL.map(Version::is_modern), [false, false, false, false, true]);
    }

    #[test]
    fn order_is_publication_order() {
        assert!(Version::ALL.is_sorted());
        assert_eq!(Version::ALL.last(), Some(&Version::LATEST));
        assert_eq!(Version::LATEST_LEGACY.era(), Era::Legacy);
    }

    #[test]
    fn an_unknown_version_is_named_in_the_error() {
        let error = "v999.0.0".parse::<Version>().unwrap_err();
        assert!(error.to_string().contains("v999.0.0"), "{error}");
        assert!(error.to_string().contains("2026-07-28"), "{error}");
    }
}
