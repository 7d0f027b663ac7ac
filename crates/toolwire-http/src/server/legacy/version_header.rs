//! What a client says about its protocol version, outside the body.

use http::HeaderMap;
use toolwire_protocol::Version;

use crate::server::edge::{self, MCP_PROTOCOL_VERSION};

/// What the header `MCP-Protocol-Version` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionHeader {
    Absent,
    Known(Version),
    Unknown,
}

impl VersionHeader {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        // One that is duplicated is none that is known: whoever stands in between may have read the other one.
        let Some(text) = edge::text(headers, MCP_PROTOCOL_VERSION) else { return Self::Absent };
        text.trim().parse().map_or(Self::Unknown, Self::Known)
    }

    pub(super) fn is_modern(self) -> bool {
        matches!(self, Self::Known(version) if version.is_modern())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_header_is_read() {
        for (text, expected) in [
            ("2025-06-18", VersionHeader::Known(Version::V2025_06_18)),
            (" 2026-07-28 ", VersionHeader::Known(Version::V2026_07_28)),
            ("1.0", VersionHeader::Unknown),
            ("", VersionHeader::Unknown),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("mcp-protocol-version", text.parse().unwrap());
            assert_eq!(VersionHeader::of(&headers), expected, "{text:?}");
        }
        assert_eq!(VersionHeader::of(&HeaderMap::new()), VersionHeader::Absent);
    }

    #[test]
    fn a_duplicated_header_names_no_version() {
        for other in ["2025-06-18", "2026-07-28", ""] {
            let mut headers = HeaderMap::new();
            headers.append("mcp-protocol-version", "2025-06-18".parse().unwrap());
            headers.append("mcp-protocol-version", other.parse().unwrap());
            assert_eq!(VersionHeader::of(&headers), VersionHeader::Unknown, "{other:?}");
        }
    }
}
