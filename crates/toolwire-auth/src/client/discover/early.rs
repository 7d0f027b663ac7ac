//! Servers of 2025-03-26, which are their own issuers.

use super::issuer::ServerMetadata;
use crate::{Endpoint, Issuer, fetch::NamedBy};

/// The issuer of a server without metadata: its origin.
pub fn issuer(server: &Endpoint) -> Option<Issuer> {
    Issuer::parse(&server.url().origin().ascii_serialization()).ok()
}

/// The endpoints of a server without any metadata. All servers of that revision have to know S256.
pub fn metadata(server: &Endpoint, issuer: Issuer) -> ServerMetadata {
    let at = |path| server.with_path(path, None);
    ServerMetadata {
        registration: Some(at("/register")),
        code_challenge_methods: Some(vec!["S256".to_owned()]),
        ..ServerMetadata::bare(issuer, at("/authorize"), at("/token"), NamedBy::Peer)
    }
}
