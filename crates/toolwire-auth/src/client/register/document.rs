//! The URL of a document that describes a client.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::Host;

use crate::{
    Endpoint,
    client::{AuthError, AuthErrorKind, Step},
};

/// The URL of a document that describes a client, and so is its identifier. The document itself is for issuers to read, who
/// may see another one than is seen from here.
///
/// ```
/// use toolwire_auth::client::register::ClientDocument;
///
/// assert!(ClientDocument::parse("https://notes.example/client.json").is_ok());
/// assert!(ClientDocument::parse("http://notes.example/client.json").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientDocument(String);

impl ClientDocument {
    /// A URL that issuers can read: `https`, with a path without dot segments, without userinfo and fragment, and not
    /// an address that only this network knows. Nothing is looked up.
    pub fn parse(text: &str) -> Result<Self, AuthError> {
        let fail = |why: &str| {
            let detail = format!("the URL of the client document {why}");
            Err(AuthError::new(AuthErrorKind::Misconfigured, Step::Identity, detail))
        };
        let endpoint = match Endpoint::parse(text) {
            Ok(endpoint) => endpoint,
            Err(why) => return fail(&why.to_string()),
        };
        let url = endpoint.url();
        if url.scheme() != "https" {
            return fail("is not an https URL");
        }
        if matches!(url.path(), "" | "/") {
            return fail("has no path");
        }
        // Asked of the text, since the parser resolves them.
        let path = text.split(['?', '#']).next().unwrap_or(text);
        let is_dots =
            |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if path.split('/').any(is_dots) {
            return fail("has dot segments");
        }
        if url.host().is_none_or(|host| is_inside(&host)) {
            return fail("has an address that issuers cannot reach");
        }
        Ok(Self(text.to_owned()))
    }

    /// The URL as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_inside(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
        }
        Host::Ipv4(address) => is_inside_v4(*address),
        Host::Ipv6(address) => address.to_ipv4_mapped().map_or_else(|| is_inside_v6(*address), is_inside_v4),
    }
}

fn is_inside_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || first & 0xfe00 == 0xfc00
        || first & 0xffc0 == 0xfe80
}

fn is_inside_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
}
