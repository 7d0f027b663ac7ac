//! Identifiers, which are text, and endpoints, which are URLs.

use std::{error, fmt, sync::Arc};

use url::{Host, Url};

/// The longest issuer, resource or endpoint that is read.
pub const MAX_IDENTIFIER_BYTES: usize = 2_048;

/// An authorization server by its identifier: text that is compared byte for byte.
///
/// ```
/// use toolwire_auth::Issuer;
///
/// let issuer = Issuer::parse("https://login.example")?;
/// assert_ne!(issuer, Issuer::parse("https://login.example/")?);
/// # Ok::<(), toolwire_auth::InvalidText>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Issuer(Arc<str>);

impl Issuer {
    /// An identifier: an absolute `http` or `https` URL without userinfo, query and fragment. Whether it may be asked
    /// is for [`Endpoint`] to say.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let url = read(text)?;
        if text.contains('?') {
            return Err(InvalidText("has a query"));
        }
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(InvalidText("is not an http or https URL"));
        }
        Ok(Self(text.into()))
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the two differ by nothing but one final slash.
    pub fn differs_by_a_slash(&self, other: &Self) -> bool {
        let (one, two) = (self.as_str(), other.as_str());
        one.strip_suffix('/') == Some(two) || two.strip_suffix('/') == Some(one)
    }

    /// Returns whether the two are equal but for one final slash, so that their metadata are in the same places and speak for
    /// both.
    #[cfg(feature = "client")]
    pub(crate) fn is_or_differs_by_a_slash(&self, other: &Self) -> bool {
        self == other || self.differs_by_a_slash(other)
    }

    /// Returns whether the two are one URL, whose empty path is written with a slash in one of them and without in the
    /// other (RFC 3986, 6.2.3).
    #[cfg(feature = "client")]
    pub(crate) fn differs_by_the_slash_of_an_empty_path(&self, other: &Self) -> bool {
        let url = |issuer: &Self| Url::parse(issuer.as_str()).ok();
        self.differs_by_a_slash(other) && url(self).is_some_and(|own| Some(own) == url(other))
    }
}

/// A protected server by its identifier: text that is compared, and sent, byte for byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(Arc<str>);

impl Resource {
    /// An identifier: an absolute URI without fragment (RFC 8707), of any scheme.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        read(text)?;
        Ok(Self(text.into()))
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A URL that may be asked: `https`, or `http` on this machine or a trusted origin; without userinfo and fragment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint(Url);

impl Endpoint {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        Self::parse_trusting(text, &Origins::none())
    }

    /// Reads a URL that may be plain `http` if its origin is among those that are trusted.
    pub fn parse_trusting(text: &str, trusted: &Origins) -> Result<Self, InvalidText> {
        let url = read(text)?;
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) || trusted.contains(&url) => {}
            "http" => return Err(InvalidText("is plain http and not on this machine")),
            _ => return Err(InvalidText("is not an https URL")),
        }
        Ok(Self(url))
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// The whole text, with a query that may be nobody else's business.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The text without query, for logs and errors.
    pub fn shown(&self) -> String {
        without_query(&self.0)
    }

    /// Whether scheme, host and port are the same.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }

    /// Returns whether the hosts are the same, or one is a domain of the other. Two domains of one owner need not be.
    #[cfg(feature = "client")]
    pub(crate) fn same_site(&self, other: &Self) -> bool {
        let within = |inner: &str, outer: &str| {
            inner.strip_suffix(outer).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match (self.0.host(), other.0.host()) {
            (Some(Host::Domain(one)), Some(Host::Domain(two))) => within(one, two) || within(two, one),
            (one, two) => one.is_some() && one == two,
        }
    }

    /// Whether it is on this machine, by its name alone.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// The same with other parameters in the query; those of the same name are replaced, all others are kept.
    #[must_use]
    pub fn with_query(&self, parameters: &[(&str, &str)]) -> Self {
        self.with_query_instead_of(parameters, &[])
    }

    /// The same with other parameters in the query, and without those of some names.
    pub(crate) fn with_query_instead_of(&self, parameters: &[(&str, &str)], dropped: &[&str]) -> Self {
        let ours = |name: &str| dropped.contains(&name) || parameters.iter().any(|(known, _)| *known == name);
        let kept: Vec<(String, String)> =
            self.0.query_pairs().filter(|(name, _)| !ours(name)).map(|(n, v)| (n.into(), v.into())).collect();
        let mut url = self.0.clone();
        url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(parameters);
        if url.query() == Some("") {
            url.set_query(None);
        }
        Self(url)
    }

    /// The same host with another path and query, as `/path?query`. Both are ours or come from a URL.
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn with_path(&self, path: &str, query: Option<&str>) -> Self {
        let mut url = self.0.clone();
        url.set_path(path);
        url.set_query(query);
        Self(url)
    }
}

/// Origins that the application trusts though they would not be by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Arc<[url::Origin]>);

impl Origins {
    /// No origin at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// These origins, each an `http` or `https` URL of which only scheme, host and port count.
    pub fn parse<'a>(origins: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidText> {
        let read = |text| match read(text)? {
            url if matches!(url.scheme(), "http" | "https") => Ok(url.origin()),
            _ => Err(InvalidText("is not an http or https URL")),
        };
        origins.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the origin of a URL is among them.
    pub fn contains(&self, url: &Url) -> bool {
        self.0.contains(&url.origin())
    }
}

/// An identifier or a URL that is none. The text itself is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidText(&'static str);

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl error::Error for InvalidText {}

/// Scheme, host, port and path of a URL, for people.
pub(crate) fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// What issuers, resources and endpoints have in common. The parser of URLs drops tabs, line ends and surrounding
/// spaces, and a text must not mean one thing to it and another to whoever compares bytes.
fn read(text: &str) -> Result<Url, InvalidText> {
    if text.len() > MAX_IDENTIFIER_BYTES {
        return Err(InvalidText("is too long"));
    }
    if text.bytes().any(|byte| !byte.is_ascii_graphic() || matches!(byte, b'\\' | b'"' | b'<' | b'>')) {
        return Err(InvalidText("has characters that no URL has"));
    }
    if text.contains('#') {
        return Err(InvalidText("has a fragment"));
    }
    let url = Url::parse(text).map_err(|_| InvalidText("is not an absolute URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidText("has a user name or password"));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

macro_rules! text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidText;

            fn from_str(text: &str) -> Result<Self, InvalidText> {
                Self::parse(text)
            }
        }
    )*};
}

text!(Issuer, Resource);

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({:?})", self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_compared_byte_for_byte() {
        let issuer = |text| Issuer::parse(text).unwrap();
        for other in ["https://login.example/", "https://LOGIN.example", "https://login.example:443"] {
            assert_ne!(issuer("https://login.example"), issuer(other), "{other}");
            assert_eq!(issuer(other).as_str(), other);
        }
        assert!(issuer("https://login.example").differs_by_a_slash(&issuer("https://login.example/")));
        assert!(!issuer("https://login.example").differs_by_a_slash(&issuer("https://login.example//")));
        assert!(!issuer("https://login.example").differs_by_a_slash(&issuer("https://login.example")));
    }

    #[cfg(feature = "client")]
    #[test]
    fn an_empty_path_may_have_its_slash() {
        let issuer = |text: &str| Issuer::parse(text).unwrap();
        for (one, two, expected) in [
            ("https://login.example", "https://login.example/", true),
            ("https://login.example:8443/", "https://login.example:8443", true),
            ("https://login.example", "https://login.example", false),
            ("https://login.example", "https://LOGIN.example/", false),
            ("https://login.example", "https://login.example:443/", false),
            ("https://login.example", "http://login.example/", false),
            ("https://login.example/", "https://login.example//", false),
            ("https://login.example/a", "https://login.example/a/", false),
        ] {
            let differs = issuer(one).differs_by_the_slash_of_an_empty_path(&issuer(two));
            assert_eq!(differs, expected, "{one} {two}");
        }
    }

    #[test]
    fn an_issuer_has_no_query_fragment_or_user() {
        for text in [
            "https://a.example?x",
            "https://a.example#x",
            "https://u@a.example",
            "https://u:p@a.example",
            "javascript:alert(1)",
            "login.example",
            "",
            "https://a.example/\t",
            " https://a.example",
            "https://a.example/\u{e9}",
            "https:\\\\a.example",
        ] {
            assert!(Issuer::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_resource_keeps_its_text() {
        for text in ["https://files.example", "https://files.example/mcp?tenant=1", "api://files"] {
            assert_eq!(Resource::parse(text).unwrap().as_str(), text);
        }
        assert!(Resource::parse("https://files.example/mcp#part").is_err());
        assert!(Resource::parse("/mcp").is_err());
    }

    #[test]
    fn endpoints_are_https_or_on_this_machine() {
        for text in ["https://a.example/x?y", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]:2/"] {
            assert!(Endpoint::parse(text).is_ok(), "{text}");
        }
        for text in [
            "http://a.example/",
            "http://10.0.0.1/",
            "http://localhost.a.example/",
            "https://u:p@a.example/",
            "https://a.example/#x",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "/token",
        ] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
        let trusted = Origins::parse(["http://keycloak:8080"]).unwrap();
        assert!(Endpoint::parse_trusting("http://keycloak:8080/token", &trusted).is_ok());
        assert!(Endpoint::parse_trusting("http://keycloak:8081/token", &trusted).is_err());
    }

    #[test]
    fn parameters_replace_those_of_the_same_name() {
        let endpoint = Endpoint::parse("https://a.example/authorize?tenant=1&resource=evil").unwrap();
        let url = endpoint.with_query(&[("resource", "https://b.example/mcp"), ("state", "a b")]);
        assert_eq!(
            url.as_str(),
            "https://a.example/authorize?tenant=1&resource=https%3A%2F%2Fb.example%2Fmcp&state=a+b"
        );
        assert_eq!(url.shown(), "https://a.example/authorize");
        assert_eq!(format!("{url:?}"), "Endpoint(\"https://a.example/authorize\")");
    }
}
