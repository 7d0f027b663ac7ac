//! The endpoints of the watched server, as one line of text.

use std::{fmt, str::FromStr};

/// A certificate for `localhost` and 127.0.0.1, trusted by this program alone.
pub(crate) const CERTIFICATE: &[u8] =
    include_bytes!("../../../crates/toolwire-http/tests/it/tls/certificate.pem");
pub(crate) const KEY: &[u8] = include_bytes!("../../../crates/toolwire-http/tests/it/tls/key.pem");

/// The address of each endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Doors {
    /// The URL of HTTP with every transport.
    pub(crate) plain: String,
    /// The URL of all transports with limits that a few clients reach.
    pub(crate) crowded: String,
    /// The URL of all transports over TLS.
    pub(crate) tls: String,
    /// The URL of a service that axum serves.
    pub(crate) mounted: String,
    /// The path of a unix socket.
    pub(crate) unix: String,
}

impl fmt::Display for Doors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plain, crowded, tls, mounted, unix } = self;
        write!(f, "{plain} {crowded} {tls} {mounted} {unix}")
    }
}

impl FromStr for Doors {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let mut words = line.splitn(5, ' ').map(str::to_owned);
        let mut next = || words.next().ok_or("the line names five endpoints");
        Ok(Self { plain: next()?, crowded: next()?, tls: next()?, mounted: next()?, unix: next()? })
    }
}
