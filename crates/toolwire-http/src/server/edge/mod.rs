//! Which hosts a request may name and which web pages may send one.
//!
//! A page from anywhere can make a browser send requests to a server on the same machine or network, and with
//! a rebound DNS name it can even read the answers. Two headers that no page can forge stop that: `Host` must
//! name this server, and `Origin`, which only browsers send, must name a page that is trusted.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, StatusCode, header, request::Parts, uri::Authority};
use toolwire_protocol::RpcError;

use super::{Body, config::HttpConfig, response};

/// The local address of a connection, among the extensions of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalAddr(pub(crate) SocketAddr);

/// The checks, ready to be made.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    hosts: Vec<Host>,
    any_host: bool,
    origins: Vec<Origin>,
    any_origin: bool,
    /// Whether pages of this machine are trusted: not by a service that the public uses.
    loopback_origins: bool,
}

/// A host as `Host` names it, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    name: String,
    port: Option<u16>,
}

/// Where a web page comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: String,
    host: Host,
}

/// Why a request was stopped at the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Host(String),
    Origin(String),
}

impl Gate {
    /// Gives the entry that cannot be read, if there is one.
    pub(crate) fn new(config: &HttpConfig) -> Result<Self, String> {
        let host = |text: &String| Host::parse(text).ok_or_else(|| text.clone());
        let origin = |text: &String| Origin::parse(text).ok_or_else(|| text.clone());
        let mut gate = Self {
            hosts: config.hosts.iter().map(host).collect::<Result<_, _>>()?,
            any_host: config.any_host,
            origins: config.origins.iter().map(origin).collect::<Result<_, _>>()?,
            any_origin: config.any_origin,
            loopback_origins: true,
        };
        if let Some(url) = &config.public_url {
            let public = Origin::of_url(url).ok_or_else(|| url.clone())?;
            gate.loopback_origins = public.host.is_loopback();
            gate.hosts.push(Host { port: None, ..public.host.clone() });
            gate.origins.push(public);
        }
        Ok(gate)
    }

    /// Lets a request pass or says what is wrong with it.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Stopped> {
        let local = parts.extensions.get::<LocalAddr>().map(|local| local.0.ip());
        // HTTP/2 names the host in the URL, HTTP/1 in a header, and some requests do both.
        let in_url = parts.uri.authority().map(Authority::as_str);
        let in_headers = parts.headers.get_all(header::HOST).iter();
        let mut named = None;
        for text in in_headers.map(|value| value.to_str().unwrap_or("?")).chain(in_url) {
            let host = Host::parse(text).filter(|host| self.allows_host(host, local));
            named = Some(host.ok_or_else(|| Stopped::Host(text.to_owned()))?);
        }
        for value in parts.headers.get_all(header::ORIGIN) {
            let text = value.to_str().unwrap_or("?");
            let allowed = self.any_origin
                || Origin::parse(text).is_some_and(|origin| self.allows_origin(&origin, named.as_ref()));
            if !allowed {
                return Err(Stopped::Origin(text.to_owned()));
            }
        }
        Ok(())
    }

    fn allows_host(&self, host: &Host, local: Option<IpAddr>) -> bool {
        self.any_host
            || host.is_loopback()
            // Nobody can rebind a bare address.
            || (local.is_some() && host.address() == local)
            || self.hosts.iter().any(|rule| rule.covers(host))
    }

    fn allows_origin(&self, origin: &Origin, named: Option<&Host>) -> bool {
        (self.loopback_origins && origin.host.is_loopback())
            // A page that this very host has served.
            || named.is_some_and(|named| origin.host.name == named.name && origin.port() == origin.port_of(named))
            || self.origins.iter().any(|rule| rule.scheme == origin.scheme
                && rule.host.name == origin.host.name
                && rule.port() == origin.port())
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        let port = match text.get(authority.host().len()..)? {
            "" => None,
            rest => Some(rest.strip_prefix(':')?.parse().ok()?),
        };
        Some(Self { name: authority.host().to_ascii_lowercase(), port })
    }

    fn is_loopback(&self) -> bool {
        matches!(&*self.name, "localhost" | "127.0.0.1" | "[::1]")
    }

    fn address(&self) -> Option<IpAddr> {
        self.name.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    fn covers(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        Some(Self { scheme: scheme.to_ascii_lowercase(), host: Host::parse(host)? })
    }

    /// The origin of a URL, whatever path it has.
    fn of_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?;
        matches!(scheme, "http" | "https").then(|| Self::parse(&format!("{scheme}://{host}")))?
    }

    fn port(&self) -> Option<u16> {
        self.port_of(&self.host)
    }

    /// The port of a host that is reached by this origin's scheme.
    fn port_of(&self, host: &Host) -> Option<u16> {
        host.port.or(match &*self.scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        })
    }
}

impl Stopped {
    pub(crate) fn response(&self) -> http::Response<Body> {
        let why = match self {
            Self::Host(host) => format!(
                "the host {host:?} is not one of this server's; if it should be, name it with allow_hosts, or \
                 give the address that clients use with public_url"
            ),
            Self::Origin(origin) => format!(
                "pages of the origin {origin:?} may not send requests; if they should, name it with allow_origins"
            ),
        };
        tracing::warn!("{why}");
        response::error(StatusCode::FORBIDDEN, None, &RpcError::invalid_request(why))
    }
}

/// The text of a header that may stand only once. One that stands twice or has other than visible characters
/// gives a text that equals nothing: two readers could understand different things by it.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    const UNREADABLE: &str = "\0";
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    Some(if values.next().is_some() { UNREADABLE } else { value.to_str().unwrap_or(UNREADABLE) })
}

#[cfg(test)]
mod tests;
