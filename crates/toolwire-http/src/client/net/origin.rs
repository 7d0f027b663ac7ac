//! Who is talked to: scheme, host and port, and the forms in which an address is written into a request.

use std::{fmt, net::IpAddr};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use url::{Host, Url};

/// One server, as far as connections are concerned.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    https: bool,
    host: Host<String>,
    port: u16,
}

impl Origin {
    /// The origin of an address that begins with `http` or `https`.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let https = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        Some(Self { https, host: url.host()?.to_owned(), port: url.port_or_known_default()? })
    }

    pub(super) const fn is_https(&self) -> bool {
        self.https
    }

    pub(super) const fn host(&self) -> &Host<String> {
        &self.host
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port, as `CONNECT` wants them.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Whether it is this machine.
    pub(super) fn is_local(&self) -> bool {
        match &self.host {
            Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => IpAddr::from(*address).to_canonical().is_loopback(),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// An address in the forms that requests have it in.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Path and query, for a server.
    pub(super) path: Uri,
    /// All of it, for a proxy and for HTTP/2.
    pub(super) absolute: Uri,
    /// The header `Host`.
    pub(crate) host: HeaderValue,
}

impl Target {
    /// What a URL is in a request; `None` if it cannot be in one.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let host = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str()?),
            None => url.host_str()?.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let absolute = format!("{}://{host}{path}", url.scheme());
        Some(Self {
            path: path.parse().ok()?,
            absolute: absolute.parse().ok()?,
            host: HeaderValue::try_from(host).ok()?,
        })
    }
}

/// What user and password of an address are in the header `Authorization`.
pub(crate) fn basic_credentials(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut plain: Vec<u8> = percent_decode_str(url.username()).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(plain))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn an_address_is_written_without_what_is_not_for_the_server() {
        let target = Target::of(&url("http://user:secret@Host:8080/a b?c=d e#f")).unwrap();
        assert_eq!(target.path, "/a%20b?c=d%20e");
        assert_eq!(target.absolute, "http://host:8080/a%20b?c=d%20e");
        assert_eq!(target.host, "host:8080");
        assert_eq!(Target::of(&url("https://host:443")).unwrap().host, "host");
        assert_eq!(Target::of(&url("http://[::1]:3000/x")).unwrap().host, "[::1]:3000");
    }

    #[test]
    fn user_and_password_are_decoded_before_they_are_sent() {
        assert_eq!(basic_credentials(&url("http://host/")), None);
        let value = basic_credentials(&url("http://Aladdin:open%20sesame@host/")).unwrap();
        assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive());
        assert_eq!(basic_credentials(&url("http://token@host/")).unwrap(), "Basic dG9rZW46");
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for (address, local) in [
            ("http://127.0.0.1:80/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost:9/x", true),
            ("http://a.localhost/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(Origin::of(&url(address)).unwrap().is_local(), local, "{address}");
        }
        assert_eq!(Origin::of(&url("ftp://host/")), None);
    }
}
