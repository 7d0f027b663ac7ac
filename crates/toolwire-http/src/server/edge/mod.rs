//! Which hosts a request may name and which web pages may send one.
//!
//! A page from anywhere can make a browser send requests to a server on the same machine or network, and with
//! a rebound DNS name it can even read the answers. Two headers that no page can forge stop that: `Host` must
//! name this server, and `Origin`, which only browsers send, must name a page that is trusted.
//!
//! A request has to name its host as the RFCs want it, or gets 400: in HTTP/1.1 by exactly one `Host`, in HTTP/2 by
//! `:authority`, by `Host`, or by both if they agree. A URL in the request line of HTTP/1 takes precedence over `Host`. Only
//! HTTP/1.0 may name none, as it knew none; no browser speaks it.

mod head;

use std::{borrow::Cow, net::IpAddr};

use http::{
    HeaderMap, StatusCode, Version,
    header::{self, AsHeaderName},
    request::Parts,
    uri::Authority,
};
use toolwire_protocol::RpcError;

use super::{Body, config::HttpConfig, response};

pub(crate) use head::{Head, UNREADABLE};

/// The checks, ready to be made.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(crate) struct Gate {
    hosts: Vec<Host<'static>>,
    any_host: bool,
    origins: Vec<Origin<'static>>,
    any_origin: bool,
    /// Whether pages of this machine are trusted: not by a service that the public uses.
    loopback_origins: bool,
}

/// A host as `Host` names it, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host<'a> {
    name: Cow<'a, str>,
    port: Option<u16>,
}

/// Where a web page comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin<'a> {
    scheme: Cow<'a, str>,
    host: Host<'a>,
}

/// Why a request was stopped at the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Host(String),
    Origin(String),
    /// The host is not named in a way that everybody understands in the same way.
    InvalidHost(Cow<'static, str>),
}

impl Gate {
    /// The gate of an endpoint without any setting: only this machine's names, and only its pages.
    pub(crate) const fn local() -> Self {
        Self {
            hosts: Vec::new(),
            any_host: false,
            origins: Vec::new(),
            any_origin: false,
            loopback_origins: true,
        }
    }

    /// Gives the entry that cannot be read, if there is one.
    pub(crate) fn new(config: &HttpConfig) -> Result<Self, String> {
        let host = |text: &String| Host::parse(text).map(Host::into_owned).ok_or_else(|| text.clone());
        let origin = |text: &String| Origin::parse(text).map(Origin::into_owned).ok_or_else(|| text.clone());
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

    /// Lets a request pass or says what is wrong with it. `local` is the address at which it came in, if known.
    pub(crate) fn check(&self, parts: &Parts, head: &Head<'_>, local: Option<IpAddr>) -> Result<(), Stopped> {
        let named = self.check_host(parts, head, local)?;
        self.check_origin(parts, head, named.as_ref())
    }

    /// The first half: the host that a request names, if it may.
    pub(crate) fn check_host<'a>(
        &self,
        parts: &'a Parts,
        head: &Head<'a>,
        local: Option<IpAddr>,
    ) -> Result<Option<Host<'a>>, Stopped> {
        match named_host(parts, head)? {
            Some((text, host)) if !self.allows_host(&host, local) => Err(Stopped::Host(text.to_owned())),
            named => Ok(named.map(|(_, host)| host)),
        }
    }

    /// The second half: the page that sends it; `named` is what the first has found.
    pub(crate) fn check_origin(
        &self,
        parts: &Parts,
        head: &Head<'_>,
        named: Option<&Host<'_>>,
    ) -> Result<(), Stopped> {
        for value in head.origin.values(&parts.headers, header::ORIGIN) {
            let text = value.to_str().unwrap_or("?");
            let allowed = self.any_origin
                || Origin::parse(text).is_some_and(|origin| self.allows_origin(&origin, named));
            if !allowed {
                return Err(Stopped::Origin(text.to_owned()));
            }
        }
        Ok(())
    }

    fn allows_host(&self, host: &Host<'_>, local: Option<IpAddr>) -> bool {
        self.any_host
            || host.is_loopback()
            // Nobody can rebind a bare address.
            || (local.is_some() && host.address() == local)
            || self.hosts.iter().any(|rule| rule.covers(host))
    }

    fn allows_origin(&self, origin: &Origin<'_>, named: Option<&Host<'_>>) -> bool {
        (self.loopback_origins && origin.host.is_loopback())
            // A page that this very host has served.
            || named.is_some_and(|named| origin.host.name == named.name && origin.port() == origin.port_of(named))
            || self.origins.iter().any(|rule| rule.scheme == origin.scheme
                && rule.host.name == origin.host.name
                && rule.port() == origin.port())
    }
}

/// The host that a request names, as it stands there and read.
fn named_host<'a>(parts: &'a Parts, head: &Head<'a>) -> Result<Option<(&'a str, Host<'a>)>, Stopped> {
    let invalid = |why: &'static str| Stopped::InvalidHost(why.into());
    let parse = |text: &'a str| {
        let host = Host::parse(text);
        host.map(|host| (text, host))
            .ok_or_else(|| Stopped::InvalidHost(format!("the host {text:?} is not valid").into()))
    };
    let in_url = parts.uri.authority().map(Authority::as_str);
    if head.host.is_repeated() {
        return Err(invalid("Host is duplicated"));
    }
    let in_header = match head.host.first() {
        Some(value) => Some(value.to_str().map_err(|_| invalid("Host has characters that are not allowed"))?),
        None => None,
    };
    match (parts.version, in_url, in_header) {
        (Version::HTTP_09 | Version::HTTP_10, in_url, in_header) => {
            in_url.or(in_header).map(parse).transpose()
        }
        (Version::HTTP_11, _, None) => Err(invalid("a request of HTTP/1.1 needs the header Host")),
        (Version::HTTP_11, in_url, Some(in_header)) => parse(in_url.unwrap_or(in_header)).map(Some),
        (_, Some(in_url), Some(in_header)) => {
            let (named, other) = (parse(in_url)?, parse(in_header)?);
            let port = |host: &Host<'_>| host.port.or_else(|| default_port(parts.uri.scheme_str()?));
            if named.1.name == other.1.name && port(&named.1) == port(&other.1) {
                Ok(Some(named))
            } else {
                Err(invalid("Host and :authority name different hosts"))
            }
        }
        (_, Some(text), None) | (_, None, Some(text)) => parse(text).map(Some),
        (_, None, None) => Err(invalid("the request names no host")),
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

impl<'a> Host<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        Self::parse_plain(text).or_else(|| Self::parse_any(text))
    }

    /// Nearly all of them: a name in lower case or an address, and maybe a port. The whole check then takes
    /// 800 instructions instead of 2,600.
    fn parse_plain(text: &'a str) -> Option<Self> {
        let plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-');
        let length = text.bytes().take_while(plain).count();
        let (name, rest) = text.split_at_checked(length).filter(|(name, _)| !name.is_empty())?;
        let port = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':')?.parse().ok()?),
        };
        Some(Self { name: name.into(), port })
    }

    fn parse_any(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        let port = match text.get(authority.host().len()..)? {
            "" => None,
            rest => Some(rest.strip_prefix(':')?.parse().ok()?),
        };
        Some(Self { name: authority.host().to_ascii_lowercase().into(), port })
    }

    fn into_owned(self) -> Host<'static> {
        Host { name: self.name.into_owned().into(), port: self.port }
    }

    fn is_loopback(&self) -> bool {
        matches!(&*self.name, "localhost" | "127.0.0.1" | "[::1]")
    }

    fn address(&self) -> Option<IpAddr> {
        self.name.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    fn covers(&self, other: &Host<'_>) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        Some(Self { scheme: scheme.to_ascii_lowercase().into(), host: Host::parse(host)? })
    }

    /// The origin of a URL, whatever path it has.
    fn of_url(url: &str) -> Option<Origin<'static>> {
        let (scheme, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?;
        matches!(scheme, "http" | "https")
            .then(|| Origin::parse(&format!("{scheme}://{host}")).map(Origin::into_owned))?
    }

    fn into_owned(self) -> Origin<'static> {
        Origin { scheme: self.scheme.into_owned().into(), host: self.host.into_owned() }
    }

    fn port(&self) -> Option<u16> {
        self.port_of(&self.host)
    }

    /// The port of a host that is reached by this origin's scheme.
    fn port_of(&self, host: &Host<'_>) -> Option<u16> {
        host.port.or_else(|| default_port(&self.scheme))
    }
}

impl Stopped {
    pub(crate) fn response(&self) -> http::Response<Body> {
        let (status, why) = match self {
            Self::Host(host) => (
                StatusCode::FORBIDDEN,
                format!(
                    "the host {host:?} is not one of this server's; if it should be, name it with allow_hosts, or \
                     give the address that clients use with public_url"
                ),
            ),
            Self::Origin(origin) => (
                StatusCode::FORBIDDEN,
                format!(
                    "pages of the origin {origin:?} may not send requests; if they should, name it with allow_origins"
                ),
            ),
            Self::InvalidHost(why) => (StatusCode::BAD_REQUEST, why.clone().into_owned()),
        };
        tracing::warn!("{why}");
        response::error(status, None, &RpcError::invalid_request(why))
    }
}

/// The text of a header that may come only once. One that is duplicated or cannot be read gives a text that equals
/// nothing.
pub(crate) fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    Some(if values.next().is_some() { UNREADABLE } else { value.to_str().unwrap_or(UNREADABLE) })
}

#[cfg(test)]
mod tests;
